"""From definitions to the manifest that the planner takes, byte for byte, or to everything that is wrong with them."""
