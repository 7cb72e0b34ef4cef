"""Running one function of the user: what goes in, what comes out, what went wrong. Shared by every way to run."""
