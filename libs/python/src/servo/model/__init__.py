"""The values everybody speaks about, the same ones as in ``libs/model``: no IO, no clock, no randomness.

Every text that comes out of here is compared byte by byte with what Rust writes (``tests/vectors``).
"""
