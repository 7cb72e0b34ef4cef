"""Commands from annotated functions, on top of click.

A parameter ``name: Annotated[str, Option("--name", "-n", help="…")] = ""`` becomes an option, one
with ``Argument`` a positional argument. Click has no dependencies of its own; the libraries that
offer the same bring more packages than the rest of Servo.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

import click

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Argument:
    help: str
    min: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class Option:
    names: tuple[str, ...]
    help: str
    min: int | None
    envvar: str | None

    def __init__(self, *names: str, help: str, min: int | None = None, envvar: str | None = None) -> None:  # noqa: A002
        for field, value in (("names", names), ("help", help), ("min", min), ("envvar", envvar)):
            object.__setattr__(self, field, value)


class Group(click.Group):
    """A group of commands; its commands are listed in the order of their definition."""

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        super().__init__(name, **{"no_args_is_help": True, **settings})

    def add(self, name: str) -> Callable[[Function], Function]:
        """Decorates a function to be the command ``name`` of this group."""

        def decorate(function: Function) -> Function:
            self.add_command(command(name, function))
            return function

        return decorate

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.commands)
            hint = f" Did you mean {' or '.join(repr(each) for each in near)}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


def command(name: str, function: Function, help: str | None = None) -> click.Command:  # noqa: A002
    """A click command with an option or argument for each parameter of the function."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return _Command(
        name,
        params=[_click_parameter(each) for each in parameters],
        callback=_with_lists(function),
        help=help or inspect.getdoc(function),
    )


class _Argument(click.Argument):
    """An argument with a description; older releases of click have help texts for options only."""

    def __init__(self, *args: Any, description: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.description = description


class _Command(click.Command):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        arguments = [each for each in self.params if isinstance(each, _Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(each.make_metavar(ctx).strip("[]"), each.description) for each in arguments])
        super().format_options(ctx, formatter)


def _click_parameter(parameter: inspect.Parameter) -> click.Parameter:
    kind, declared = get_args(parameter.annotation)
    kind = _without_none(kind)
    several = get_origin(kind) is list
    given = None if parameter.default is inspect.Parameter.empty else parameter.default
    required = parameter.default is inspect.Parameter.empty
    settings: dict[str, Any] = {"type": _click_type(get_args(kind)[0] if several else kind, declared.min)}
    if not several:
        settings["default"] = given
    if isinstance(declared, Argument):
        nargs = -1 if several else 1
        return _Argument([parameter.name], required=required, nargs=nargs, description=declared.help, **settings)
    dashed = f"--{parameter.name.replace('_', '-')}"
    names = declared.names or ((f"{dashed}/--no-{dashed[2:]}",) if kind is bool else (dashed,))
    if kind is bool:
        settings = {"is_flag": True, "default": given}
    return click.Option(
        [*names, parameter.name],
        required=required,
        multiple=several,
        help=declared.help,
        envvar=declared.envvar,
        show_envvar=declared.envvar is not None,
        show_default=kind is not bool and given not in (None, ""),
        **settings,
    )


def _click_type(kind: Any, least: int | None) -> Any:
    if kind is Path:
        return click.Path(path_type=Path)
    if kind is int:
        return click.INT if least is None else click.IntRange(min=least)
    if kind is float:
        return click.FLOAT if least is None else click.FloatRange(min=least)
    return click.STRING


def _with_lists(function: Function) -> Function:
    """Click passes tuples; the functions declare lists."""

    def call(**values: Any) -> Any:
        return function(**{name: list(each) if isinstance(each, tuple) else each for name, each in values.items()})

    return call


def _without_none(kind: Any) -> Any:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if isinstance(kind, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    return kind
