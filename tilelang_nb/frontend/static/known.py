"""What is known of a value before anything runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    """A tensor parameter.  shape: its extents as text; None where the rank is not known."""

    name: str
    shape: tuple[str, ...] | None


@dataclass(frozen=True)
class Device:
    """A scalar known when the kernel runs.  element_of: the tensor that it was read from."""

    element_of: str | None = None


@dataclass(frozen=True)
class Number:
    """A whole number.  value: None where it is not known."""

    value: int | None = None


@dataclass(frozen=True)
class Path:
    """A module, or something that a module holds: `tilelang.language.copy`, `builtins.len`."""

    name: str

    @property
    def operation(self) -> str | None:
        """The name in `T`; None for what does not lie there."""
        owner, _, name = self.name.rpartition(".")
        return name if owner == "tilelang.language" else None

    @property
    def builtin(self) -> str | None:
        """The name of a built-in."""
        owner, _, name = self.name.rpartition(".")
        return name if owner == "builtins" else None


@dataclass(frozen=True)
class Unknown:
    """Anything."""


UNKNOWN = Unknown()
DEVICE = Device()
Known = Tensor | Device | Number | Path | Unknown
