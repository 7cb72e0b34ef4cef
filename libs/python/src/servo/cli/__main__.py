"""``python -m servo.cli``: the command under the current interpreter."""

from .main import main

main()
