"""Definitions to the manifest of the planner, byte for byte, or to all of their faults."""
