"""The name of an asset: ``namespace/name`` for machines, ``namespace.name`` for people."""

from __future__ import annotations

from dataclasses import dataclass

from servo.errors import InvalidValue

from .limits import NAME_BYTES_MAX
from .text import excerpt, is_name


@dataclass(frozen=True, slots=True, order=True)
class AssetKey:
    """``str()`` is the canonical form, for storing, hashing and comparing."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        for part, given in (("namespace", self.namespace), ("name", self.name)):
            if not (isinstance(given, str) and is_name(given)):
                raise InvalidValue(
                    f"the {part} `{excerpt(str(given))}` of an asset is refused: write 1 to {NAME_BYTES_MAX} "
                    "lower-case letters, digits and `_`, not beginning with a digit"
                )

    @classmethod
    def parse(cls, text: str) -> AssetKey:
        """Reads ``namespace/name``."""
        return cls._split(text, "/")

    @classmethod
    def parse_display(cls, text: str) -> AssetKey:
        """Reads ``namespace.name``, as users type it."""
        return cls._split(text, ".")

    @classmethod
    def _split(cls, text: str, separator: str) -> AssetKey:
        namespace, found, name = text.partition(separator)
        if not found:
            raise InvalidValue(f"`{excerpt(text)}` is not an asset key: write namespace{separator}name")
        return cls(namespace, name)

    @property
    def display(self) -> str:
        return f"{self.namespace}.{self.name}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
