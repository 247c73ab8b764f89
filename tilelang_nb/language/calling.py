"""How a T function takes its arguments: a wrong, missing or misspelt one is TL004 and names the nearest real one.

Every public function carries `checked_call`.  Its `requires` is the signature alone, so the text of the function stays
the
only place where its parameters are written.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from ..source import catalogue as say
from ..source.diagnostic import Refusal

F = TypeVar("F", bound=Callable[..., Any])


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like `name`, as a person mistypes it; None where nothing is near."""
    candidates = sorted(set(names))
    found = difflib.get_close_matches(name, candidates, 1, 0.6)
    if found:
        return found[0]
    folded = {candidate.lower().replace("_", ""): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower().replace("_", ""), list(folded), 1, 0.7)
    return folded[close[0]] if close else None


def bad_argument(problem: str, remedy: str, word: str = "", near: str | None = None) -> NoReturn:
    """TL004.  word, near: a misspelt word of the call and the nearest real one."""
    raise Refusal(say.BadArgument(problem=problem, remedy=remedy, word=word, near=near or ""))


def checked_call(function: F, name: str | None = None) -> F:
    """`function`, refusing arguments that do not fit its signature with TL004 instead of Python's TypeError.

    name: what messages call it after `T.`; default the function's own name.
    """
    signature = inspect.signature(function)
    called = "T." + (name or function.__name__)
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
        skipped = 1
    else:
        skipped = 0
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_POSITIONAL]
    positional = [p for p in positional if p.kind is not p.VAR_KEYWORD]
    keywords = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    fewest = sum(p.default is p.empty for p in positional) + skipped
    needs_keyword = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    most = 1 << 30 if starred else len(positional) + skipped

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or needs_keyword or not fewest <= len(args) <= most:
            check(args, kwargs)
        return function(*args, **kwargs)

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for key in kwargs:
            if key not in keywords:
                near = nearest(key, keywords)
                takes = f"its keywords are {_listed(keywords)}" if keywords else "it takes no keywords"
                remedy = f"did you mean `{near}`?" if near else takes
                bad_argument(f"`{called}` has no argument `{key}`", remedy, key, near)
        if len(args) > most:
            given, limit = len(args) - skipped, most - skipped
            only = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
            more = f"; write {_listed([f'{k}=' for k in only])} with the name" if only else ""
            bad_argument(
                f"`{called}` takes {limit} positional argument{'s' * (limit != 1)}, {given} given",
                f"its arguments are {_listed([p.name for p in positional])}{more}",
            )
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            given_names = {p.name for p, _ in zip(positional, args[skipped:])}
            twice = next((key for key in kwargs if key in given_names), None)
            if twice is not None:
                bad_argument(f"`{called}` is given `{twice}` twice", f"give `{twice}` once")
            missing = [
                p.name
                for p in parameters
                if p.default is p.empty
                and p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY, p.KEYWORD_ONLY)
                and p.name not in given_names
                and p.name not in kwargs
            ]
            bad_argument(f"`{called}` needs {_listed(missing)}", f"write `{called}{_shown(parameters)}`")

    return call  # type: ignore[return-value]


def _listed(names: Iterable[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}" if quoted else "nothing"


def _shown(parameters: list[inspect.Parameter]) -> str:
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return f"({', '.join(needed)})"
