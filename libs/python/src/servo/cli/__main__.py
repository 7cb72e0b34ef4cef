"""``python -m servo.cli``: the command with the interpreter that runs it."""

from .main import main

main()
