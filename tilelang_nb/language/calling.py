"""How a T function takes its arguments: a wrong, missing or misspelt one is TL004 and names the nearest real one.

Every public function carries `checked_call`.  Its `requires` is the signature alone, so the text of the function stays
the
only place where its parameters are written.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ..source import catalogue as say
from ..source.calls import CallSignature
from ..source.diagnostic import Refusal
from ..source.wording import nearest
from .building import is_building, on_host

__all__ = ["bad_argument", "checked_call", "nearest"]

F = TypeVar("F", bound=Callable[..., Any])


def bad_argument(problem: str, remedy: str, word: str = "", near: str | None = None) -> NoReturn:
    """TL004.  word, near: a misspelt word of the call and the nearest real one."""
    raise Refusal(say.BadArgument(problem=problem, remedy=remedy, word=word, near=near or ""))


def checked_call(function: F, name: str | None = None) -> F:
    """`function`, refusing arguments that do not fit its signature with TL004 instead of Python's TypeError.

    name: what messages call it after `T.`; default the function's own name, for `__init__` that of its class.
    """
    parameters = list(inspect.signature(function).parameters.values())
    skipped = int(bool(parameters) and parameters[0].name == "self")
    *_, owner, own = ("", *function.__qualname__.split("."))
    called = name or (owner if own == "__init__" else function.__name__)
    signature = CallSignature(f"T.{called}", tuple(parameters[skipped:]))
    fewest, most, needs_keyword = signature.fewest + skipped, signature.most + skipped, signature.needs_keyword

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs or needs_keyword or not fewest <= len(args) <= most:
                mistake = signature.mistake(len(args) - skipped, kwargs)
                if mistake is not None:
                    raise Refusal(mistake)
            return function(*args, **kwargs)
        except Refusal as refusal:
            if is_building() or hasattr(refusal, "diagnostics"):  # its place is known, or will be
                raise
            raise on_host(refusal, signature.called, (*args, *kwargs.values())) from None

    call.call_signature = signature  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]
