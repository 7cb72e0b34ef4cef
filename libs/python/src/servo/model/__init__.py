"""Values of the domain, the same as in ``libs/model``: no IO, no clock, no randomness.

Every text from here is compared byte by byte with Rust's (``tests/vectors``).
"""
