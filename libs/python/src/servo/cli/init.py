"""``servo init``"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import click

from . import show
from .commands import Argument
from .exit_codes import AlreadyThere
from .show import AsJson

NewFolder = Annotated[Path, Argument(help="The project's folder; created if it does not exist.")]

TEMPLATE = Path(__file__).resolve().parent.parent / "template"
# Package builders leave out files that begin with a dot.
_RENAMED = {"gitignore": ".gitignore"}
_NEXT = """
  cd {folder}{install}
  servo dev                                                      # in its own terminal
  servo run '+shop/daily_revenue' --partition latest:3 --wait    # in another
  servo assets preview shop/daily_revenue"""


def init_command(folder: NewFolder = Path(), as_json: AsJson = False) -> None:
    """Create a project: a small shop whose orders become daily revenue."""
    files = template_files()
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise AlreadyThere(f"{folder / there[0]} already exists: name another folder, `servo init FOLDER`")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if as_json:
        return show.print_json({"folder": str(folder.resolve()), "files": sorted(files)})
    following = _NEXT.format(folder=quote(str(folder)), install=_install())
    return click.echo(f"made {show.counted(len(files), 'file')} in {folder.resolve()}\n{following}")


def _install() -> str:
    """The line that installs the extra, because the project works on tables."""
    from servo.execute.packages import install_command, missing_tables

    missing = missing_tables()
    return f"\n  {install_command(missing[0])}" if missing else ""


def template_files() -> dict[str, bytes]:
    """The template's files by their names in a new project."""
    found = (path for path in TEMPLATE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    names = {path: path.relative_to(TEMPLATE) for path in found}
    return {str(name.with_name(_RENAMED.get(name.name, name.name))): path.read_bytes() for path, name in names.items()}
