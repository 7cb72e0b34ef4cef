"""The definitions of a project, collected from modules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from servo.define.asset import Asset, Source
from servo.define.automation import PollSensor, Schedule, Sensor
from servo.define.checks import CheckFunction

Definition = Asset[..., Any] | Source | Schedule | Sensor | PollSensor[..., Any] | CheckFunction[..., Any]
KINDS = (Asset, Source, Schedule, Sensor, PollSensor, CheckFunction)


@dataclass(slots=True)
class Project:
    assets: list[Asset[..., Any]] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    sensors: list[Sensor | PollSensor[..., Any]] = field(default_factory=list)
    checks: list[CheckFunction[..., Any]] = field(default_factory=list)
    # Module and name of each definition that was found in a module, by the definition's id.
    places: dict[int, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, definitions: Iterable[Definition]) -> Project:
        """Each definition counts once, however many names it has."""
        project = cls()
        seen: set[int] = set()
        for definition in definitions:
            if id(definition) not in seen:
                seen.add(id(definition))
                project._add(definition)
        return project

    @classmethod
    def of_modules(cls, modules: Iterable[ModuleType]) -> Project:
        """Every definition that is a module-level name of these modules."""
        found = [
            (value, (module.__name__, name))
            for module in modules
            for name, value in vars(module).items()
            if isinstance(value, KINDS)
        ]
        project = cls.of(value for value, _ in found)
        for value, place in found:
            project.places.setdefault(id(value), place)
        return project

    def _add(self, definition: Definition) -> None:
        match definition:
            case Asset():
                self.assets.append(definition)
            case Source():
                self.sources.append(definition)
            case Schedule():
                self.schedules.append(definition)
            case CheckFunction():
                self.checks.append(definition)
            case Sensor() | PollSensor():
                self.sensors.append(definition)
