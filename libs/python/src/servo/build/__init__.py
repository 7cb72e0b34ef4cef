"""Builds a project folder into manifest, sources and locked requirements, each named by its sha256."""
