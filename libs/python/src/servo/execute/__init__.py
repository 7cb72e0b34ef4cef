"""Runs one user function: inputs, outputs, errors. Shared by the worker and by local runs."""
