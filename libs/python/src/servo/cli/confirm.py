"""Confirmation before changes that affect others."""

from __future__ import annotations

import sys

import click

from servo.errors import InvalidValue

from .exit_codes import STOPPED


def confirm(question: str) -> None:
    """Exits unless the user agrees. Asks on stderr, because a program may read stdout."""
    if not sys.stdin.isatty():
        raise InvalidValue("stdin is not a terminal, so there is nobody to confirm; give --yes")
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        click.echo("nothing was done", err=True)
        raise click.exceptions.Exit(STOPPED)
