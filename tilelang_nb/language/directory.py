"""The operations of the language as a list to read: names, arguments and a sentence each, by subject."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import __all__ as NAMES

NOT_HERE = "Not lowered by this version"
WIDTH, ARGUMENTS = 118, 44  # characters of a line, and of the arguments in it
_SENTENCE = re.compile(r"((?:`[^`]*`|[^`])+?[.;])(?:\s|$)", re.S)


@dataclass(frozen=True)
class Operation:
    """name: as `copy` of `T.copy`.  arguments: its parameters with their defaults.  says: one sentence.  subject: of
    the group that it stands in.
    """

    name: str
    arguments: str
    says: str
    subject: str

    def __str__(self) -> str:
        text = f"T.{self.name}{self.arguments}  {self.says}"
        return text if len(text) <= WIDTH else text[: WIDTH - 3].rstrip() + "..."


def operations(word: str = "") -> tuple[Operation, ...]:
    """Those that this version has, by subject and name.  word: only those whose name, arguments or sentence hold it."""
    found = [one for name in NAMES for one in _operation(name)]
    wanted = [one for one in found if word.lower() in f"{one.name}{one.arguments} {one.says}".lower()]
    return tuple(sorted(wanted, key=lambda one: (one.subject, one.name.lower())))


def listing(word: str = "") -> str:
    """The list as text; a line that says so where nothing holds the word."""
    found = operations(word)
    if not found:
        return f"no operation of `T` speaks of {word!r}\n"
    groups: dict[str, list[str]] = {}
    for one in found:
        groups.setdefault(one.subject, []).append(f"  {one}")
    return "\n\n".join("\n".join([subject, *lines]) for subject, lines in groups.items()) + "\n"


def _operation(name: str) -> Iterator[Operation]:
    import tilelang_nb.language as language

    value = getattr(language, name)
    text = inspect.getdoc(value) or ""
    if not (inspect.isfunction(value) or inspect.isclass(value)) or text.startswith(NOT_HERE) or not text:
        return
    sentence = _SENTENCE.match(text)
    says = " ".join((sentence[1] if sentence else text).split()).removesuffix(";")
    says = says if says.endswith(".") else says + "."
    subject = (sys.modules[value.__module__].__doc__ or "").split("\n\n")[0]
    subject = re.split(r"[:.(;]", " ".join(subject.split()))[0].strip()
    arguments = "" if says.startswith(("`T.", "`with T.", "`for ")) else _arguments(value)
    yield Operation(name, arguments, says, subject)


def _arguments(value: Any) -> str:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown: list[str] = []
    for parameter in parameters:
        text = str(parameter.replace(annotation=parameter.empty))
        if len(", ".join([*shown, text])) > ARGUMENTS or parameter.name in ("span", "annotations"):
            shown.append("...")
            break
        shown.append(text)
    return f"({', '.join(shown)})" if shown != ["..."] else ""
