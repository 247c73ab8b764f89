"""Compile-time objects that change or are used up under device control flow.

While building, a body under device control flow is walked once; Python would run it once per turn and thread, or not
at all.  So there it may change only what it made itself, and take items only from iterators that it made itself
(TL133).  Changes that the text shows are refused by their syntax; around a call of code that this walk does not see
the state is compared that the call can reach (`python_state`), unless the code stores nothing (`user_code`).

Not seen: what `python_state` does not see, clocks, random numbers of the system (`os.urandom`, `uuid`, generators that
seed themselves), and state that a library keeps.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from types import GeneratorType
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import of_type
from .bindings import CONTAINERS
from .names import Hidden, Plain
from .python_state import Watch, is_random, random_sources
from .restarts import items_of
from .user_code import is_plain, is_user_class

OTHERWISE = "use a buffer, or make the object in this block"
OTHERWISE_GLOBAL = "call it once before this block and use the result, or keep the value in a buffer"
OTHERWISE_RANDOM = "draw the numbers before this block, or pass them in a buffer"


def reaches(roots: list[Any], target: Any) -> bool:
    """Whether an object is one of these or nested in their containers."""
    pending, seen = list(roots), set()
    while pending and len(seen) < 10000:
        value = pending.pop()
        if value is target:
            return True
        if issubclass(type(value), (*CONTAINERS, tuple)) and id(value) not in seen and type(value) is not bytearray:
            seen.add(id(value))
            pending.extend(items_of(value))
    return False


def held(walker: Any) -> list[Any]:
    """What the names of the kernel or macro at hand hold, whether they may be read here or not."""
    states = walker.frame.states.values()
    hidden = [s.outside.value for s in states if isinstance(s, Hidden) and isinstance(s.outside, Plain)]
    return [*walker.frame.names.values(), *hidden]


def check_used_up(walker: Any, iterator: Any) -> None:
    """An iterator may give items under device control flow only if this scope made it (TL133)."""
    if not hasattr(type(iterator), "__next__"):
        return
    if id(iterator) in walker.half_used:
        what = f"what is left of {of_type(iterator)} depends on a condition of the device"
        raise Refusal(say.CompileTimeObjectChanged(what=what, remedy="make a list of it first, and use the list twice"))
    if not (walker.scope.device or walker.builder.guard):
        return
    frame = walker.frame
    own = [] if walker.builder.guard else [frame.names.get(name) for f, name in walker.scope.saved if f is frame]
    if reaches(own, iterator):
        note_unseen(walker, [iterator])
        return
    if id(iterator) in walker.shared.iterators or reaches(held(walker), iterator):
        what = f"{of_type(iterator)} gives its items under runtime control flow"
        remedy = "make a list of it before, or make it in this block"
        raise Refusal(say.CompileTimeObjectChanged(what=what, remedy=remedy))
    note_unseen(walker, [iterator])


def noting(walker: Any, iterator: Any, items: Iterable[Any]) -> Iterator[Any]:
    """The items of an iterator.  What is left of it after it gave some under a condition is known to no one."""
    guard = walker.builder.guard
    taken = iter(items)
    while True:
        if walker.builder.guard > guard:
            _note_half_used(walker, iterator)
        try:
            item = next(taken)
        except StopIteration:
            return
        yield item


def _note_half_used(walker: Any, iterator: Any) -> None:
    """An iterator, and those that it takes its items from, are used up to a point that depends on a condition."""
    pending = [iterator]
    while pending:
        value = pending.pop()
        if type(value) is tuple:  # `map` and `zip` hold their iterators so
            pending.extend(value)
        if not hasattr(type(value), "__next__") or id(value) in walker.half_used:
            continue
        walker.half_used[id(value)] = value
        if isinstance(value, GeneratorType):
            pending.extend(value.gi_frame.f_locals.values() if value.gi_frame is not None else ())
        else:
            pending.extend(gc.get_referents(value))


# -- what a scope may change -------------------------------------------------------------------------------------------
def device_scope(walker: Any) -> Any:
    """The innermost scope of device control flow, or None."""
    scope = walker.scope
    while scope is not None and not scope.device:
        scope = scope.parent
    return scope


def made_outside(walker: Any) -> Watch:
    """Everything that names led to when the innermost device scope was opened; in a guarded operand, lead to now."""
    guarded, scope = bool(walker.builder.guard), device_scope(walker)
    if not guarded and scope.outside is not None and scope.outside[0] == len(walker.shared.roots):
        return scope.outside[1]
    saved: dict[Any, Any] = {}
    inner = walker.scope
    while not guarded and inner is not scope.parent:
        saved.update(inner.saved)  # the outermost of them knows what a name held before
        inner = inner.parent
    roots, frame = list(walker.shared.roots), walker.frame
    while frame is not None:
        for name in {**frame.names, **frame.states}:
            binding = saved[frame, name] if (frame, name) in saved else frame.binding(name)
            if isinstance(binding, Hidden):
                binding = binding.outside
            if isinstance(binding, Plain):
                roots.append(binding.value)
        frame = frame.caller
    found = Watch(roots, compared=False)
    if not guarded:
        scope.outside = (len(walker.shared.roots), found)
    return found


def check_change(walker: Any, owner: Any) -> None:
    """An object is about to change: in an operand under a condition none may, else what the scope made (TL133)."""
    guarded = walker.builder.guard
    if not guarded and device_scope(walker) is None:
        return
    if guarded or owner in made_outside(walker):
        raise _refusal(walker, f"{of_type(owner)} changes", OTHERWISE)


def _refusal(walker: Any, what: str, remedy: str) -> Refusal:
    if walker.builder.guard:
        what += " in an operand that runs only under a condition"
        return Refusal(say.CompileTimeObjectChanged(what=what, remedy="use a buffer and an `if` statement"))
    return Refusal(say.CompileTimeObjectChanged(what=f"{what} under runtime control flow", remedy=remedy))


# -- code that the walk does not see -----------------------------------------------------------------------------------
def watched(walker: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[[], Any]) -> Any:
    """The result of `call`, which calls `function`; TL133 where that changed what it may not."""
    arguments = [*args, *kwargs.values()]
    if walker.shared.quiet_calls.are(function, arguments):
        return call()
    watch = Watch([function, *arguments])
    result = call()
    refusal = _change_in(walker, watch)
    if refusal is not None:
        scope = walker.scope
        while scope is not None:  # it is said here: not once more where the scope ends
            scope.unseen, scope = None, scope.parent
        raise refusal
    return result


def _change_in(walker: Any, watch: Watch) -> Refusal | None:
    outside: Watch | None = None
    lasting: Watch | None = None
    for changed, what in watch.changes():
        if changed is None:
            return _refusal(walker, what, OTHERWISE_GLOBAL)
        outside = outside or made_outside(walker)
        if lasting is None:
            held_by_globals = [before for _, _, before in watch.places.values()]
            lasting = Watch([*held_by_globals, *random_sources()], compared=False)
        if changed in outside or changed in lasting:
            return _refusal(walker, what, OTHERWISE_RANDOM if is_random(changed) else OTHERWISE)
    return None


def note_unseen(walker: Any, values: Iterable[Any]) -> None:
    """Code of these objects may run without a call in the text: compare what it can reach when the scope ends."""
    scope = device_scope(walker)
    if scope is not None and scope.unseen is not None:
        scope.unseen.add(value for value in values if not is_plain(value))


def objects_with_code(walker: Any) -> list[Any]:
    """Objects of the user's classes that names lead to: operators, subscripts and properties run their code."""
    named = [*walker.frame.names.values(), *walker.shared.roots]
    return [value for value in named if not is_plain(value) and is_user_class(type(value))]


def check_unseen(walker: Any, scope: Any) -> None:
    """The scope ends: report what code that no call shows has changed."""
    if scope.unseen is not None and scope.unseen.known:
        refusal = _change_in(walker, scope.unseen)
        if refusal is not None:
            walker.report(refusal, scope.node)
