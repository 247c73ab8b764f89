"""State of Python objects that code outside the walk can change: globals, closures, attributes, contents, arrays,
random numbers.

`Watch` notes the state of everything that can be reached from some objects, tells later what changed, and can put the
old state back.  Not seen: arrays above 1 MiB, what lies behind C extensions and the objects of libraries, files, and
anything beyond the first 10,000 objects.
"""

from __future__ import annotations

import argparse
import array
import collections
import contextlib
import functools
import gc
import itertools
import random
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..source.interrupts import pass_on_interrupt
from ..source.wording import with_article
from .bindings import CONTAINERS
from .user_code import (
    all_plain,
    bases,
    facts,
    global_names,
    is_library_file,
    is_plain,
    is_user_class,
    own_attributes,
)

OBJECTS = 10_000  # objects that one watch follows
ARRAY_BYTES = 1 << 20  # of an array that is compared
MISSING = object()
_RECORDS = (types.SimpleNamespace, argparse.Namespace, collections.UserDict, collections.UserList, threading.local)
_VALUES = (int, float, complex, bool, str, bytes)
_ITERATORS = (map, filter, zip, enumerate, reversed, *(type(iter(made)) for made in ([], (), {}, set(), "")))
_ITERATORS += tuple(k for k in vars(itertools).values() if isinstance(k, type) and k.__module__ == "itertools")
_ITERATORS += (type(iter(range(0))), type(iter({}.values())), type(iter({}.items())))


class Watch:
    """The state of what can be reached from objects, at the time they are added.

    compared: whether the state is noted; without it a watch only knows which objects there are.
    """

    def __init__(self, roots: Iterable[Any] = (), compared: bool = True):
        self.compared = compared
        self.known: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self.places: dict[tuple[int, str], tuple[Any, str, Any]] = {}  # a global or attribute of a module
        self.add(roots)

    def add(self, roots: Iterable[Any]) -> None:
        pending = [value for value in roots if not is_plain(value)]
        while pending and len(self.known) < OBJECTS:
            value = pending.pop()
            if id(value) in self.known or is_plain(value):
                continue
            state = tuple([part() for part in _state(value)]) if self.compared else ()
            self.known[id(value)] = (value, state)
            pending.extend(self._parts(value))

    def __contains__(self, value: Any) -> bool:
        return id(value) in self.known

    def changes(self) -> Iterator[tuple[Any, str]]:
        """(object, what changed): the object is None for a global."""
        for known, name, before in self.places.values():
            if not _same(dict.get(known, name, MISSING), before):
                yield None, f"the global `{name}` changes"
        for value, before in self.known.values():
            now = tuple(part() for part in _state(value))
            if len(now) != len(before) or not all(map(_same_state, now, before)):
                yield value, described_change(value, now, before)

    def restore(self) -> None:
        """Put the state back that was noted; what refuses to take it stays as it is."""
        for known, name, before in self.places.values():
            if not _same(dict.get(known, name, MISSING), before):
                known.pop(name, None) if before is MISSING else known.__setitem__(name, before)
        for value, before in list(self.known.values()):
            for part, then in zip(_state(value), before):
                if not _same_state(part(), then):
                    with contextlib.suppress(Exception):
                        part.put_back(then)

    def _parts(self, value: Any) -> list[Any]:
        """Objects that this one leads to; the globals of its code are noted."""
        found: list[Any] = []
        kind = type(value)
        if kind is types.FunctionType:
            if is_library_file(value.__code__.co_filename):
                return found
            found = [*(value.__closure__ or ()), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
            found += self._globals(value, value.__code__, value.__globals__)
        elif kind is types.GeneratorType:
            frame = value.gi_frame
            if frame is not None and not is_library_file(value.gi_code.co_filename):
                found = [*frame.f_locals.values(), *self._globals(value, value.gi_code, frame.f_globals)]
        elif kind is types.MethodType:
            found = [value.__func__, value.__self__]
        elif kind is types.BuiltinMethodType:
            found = [] if type(value.__self__) is types.ModuleType else [value.__self__]
        elif issubclass(kind, functools.partial):
            found = [value.func, *value.args, *value.keywords.values()]
        elif issubclass(kind, functools._lru_cache_wrapper):
            found = [value.__wrapped__]
        elif kind in (staticmethod, classmethod):
            found = [value.__func__]
        elif kind is property:
            found = [value.fget, value.fset, value.fdel]
        elif kind is types.CellType:
            found = [_contents(value)]
        elif issubclass(kind, _ITERATORS):
            found = gc.get_referents(value)
        elif issubclass(kind, np.ndarray):
            found = list(value.flat) if value.dtype == object and value.size < OBJECTS else []
        elif issubclass(kind, type):
            if is_user_class(value):
                found = [*own_attributes(value).values(), *bases(value)[1:], kind]
        else:
            found = _contained(value)
            if is_user_class(kind) or issubclass(kind, _RECORDS):
                found += [kind, *(_attributes(value) or {}).values(), *(v for _, v in _slots(value))]
        return found

    def _globals(self, value: Any, code: Any, known: dict[str, Any]) -> list[Any]:
        found = []
        for home, name in global_names(value):
            held = dict.get(home, name)
            if type(home) is dict:  # the names of a kernel, which its lambdas see, have their own rules
                self.places.setdefault((id(home), name), (home, name, held))
            found.append(held)
        names = facts(code).names
        if type(known) is dict:
            wanted = known.keys() if names & {"globals", "exec", "eval"} else facts(code).names
            for name in wanted:  # it may be bound for the first time
                self.places.setdefault((id(known), name), (known, name, dict.get(known, name, MISSING)))
        if "random" in names or any(held is random for held in found):
            found += random_sources()
        return found


def random_sources() -> list[Any]:
    """The generators behind `random.random()` and `np.random.rand()`."""
    return [random._inst, np.random.mtrand._rand]  # type: ignore[attr-defined]


def is_random(value: Any) -> bool:
    """A generator of random numbers."""
    kinds = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
    return issubclass(type(value), kinds)


def described_change(value: Any, now: tuple[Any, ...], before: tuple[Any, ...]) -> str:
    """What a message says about an object whose state is another one."""
    kind = type(value)
    if kind is types.CellType:
        return "a variable of an enclosing function changes"
    if is_random(value):
        return "random numbers are drawn"
    if issubclass(kind, np.ndarray):
        return "a NumPy array changes"
    if kind in (types.GeneratorType, *_ITERATORS):
        return f"{with_article(kind.__name__)} gives its items"
    for held, held_before in zip(now, before):
        if isinstance(held, _Attributes) and not _same_state(held, held_before):
            names = [n for n in {**held, **held_before} if not _same(held.get(n, MISSING), held_before.get(n, MISSING))]
            owner = f"class {value.__name__}" if isinstance(value, type) else with_article(kind.__name__)
            return f"the attribute `{names[0]}` of {owner} changes"
    return f"{with_article(kind.__name__)} changes"


# -- the state of one object -------------------------------------------------------------------------------------------
class _Attributes(dict):
    """Attributes by name."""


class _Exact(tuple):
    """A state of numbers only, compared by `==`."""


class _Part:
    """One part of the state of an object: calling it reads it, `put_back` writes it."""

    __slots__ = ("put_back", "read")

    def __init__(self, read: Callable[[], Any], put_back: Callable[[Any], Any]):
        self.read, self.put_back = read, put_back

    def __call__(self) -> Any:
        try:
            return self.read()
        except BaseException as error:  # an object that does not let itself be read
            pass_on_interrupt(error)
            return None


def state_of(value: Any) -> list[Any]:
    """The state of one object now, part by part: contents, attributes by name, bytes of an array."""
    return [part() for part in _state(value)]


def _state(value: Any) -> Iterator[_Part]:
    kind = type(value)
    if kind is types.CellType:
        yield _Part(lambda: (_contents(value),), lambda then: _fill(value, then[0]))
    elif issubclass(kind, array.array):
        yield _Part(
            lambda: array.array.tobytes(value), lambda then: value.__setitem__(slice(None), _array(value, then))
        )
    elif issubclass(kind, bytearray):
        yield _Part(lambda: bytes(value), lambda then: value.__setitem__(slice(None), then))
    elif issubclass(kind, CONTAINERS):
        yield _Part(lambda: tuple(_items(value)), lambda then: _refill(value, then))
    elif issubclass(kind, np.ndarray):
        if value.dtype == object:
            yield _Part(lambda: tuple(value.flat), lambda then: value.flat.__setitem__(slice(None), list(then)))
        elif value.nbytes <= ARRAY_BYTES:
            yield _Part(
                lambda: np.ndarray.tobytes(value),
                lambda then: value.__setitem__(..., np.frombuffer(then, value.dtype).reshape(value.shape)),
            )
    elif issubclass(kind, random.Random):
        yield _Part(lambda: _Exact(value.getstate()), value.setstate)
    elif issubclass(kind, np.random.RandomState):
        yield _Part(lambda: _frozen(value.get_state(legacy=False)), lambda then: value.set_state(_thawed(then)))
    elif issubclass(kind, np.random.Generator):
        yield from _state(value.bit_generator)
    elif issubclass(kind, np.random.BitGenerator):
        yield _Part(lambda: _frozen(value.state), lambda then: setattr(value, "state", _thawed(then)))
    elif kind is types.GeneratorType:
        yield _Part(lambda: (value.gi_frame.f_lasti, *value.gi_frame.f_locals.values()), _nothing)
    elif issubclass(kind, itertools.count):
        yield _Part(lambda: repr(value), _nothing)
    elif issubclass(kind, _ITERATORS):
        yield _Part(lambda: value.__length_hint__() if hasattr(kind, "__length_hint__") else None, _nothing)
    if kind is types.FunctionType:
        if not is_library_file(value.__code__.co_filename):
            yield _Part(lambda: _Attributes(value.__dict__), lambda then: _renew(value.__dict__, then))
    elif issubclass(kind, type):
        if is_user_class(value):
            yield _Part(lambda: _class_attributes(value), lambda then: _renew_class(value, then))
    elif is_user_class(kind) or issubclass(kind, _RECORDS):
        yield _Part(lambda: _instance_attributes(value), lambda then: _renew_instance(value, then))


def _contained(value: Any) -> list[Any]:
    """What a container holds; nothing where none of it can change, which is told fast."""
    if type(value) in (list, tuple, set, frozenset, dict) and all_plain(value):
        return [] if type(value) is not dict or all_plain(value.values()) else list(value.values())
    return _items(value)


def _items(value: Any) -> list[Any]:
    """What a container holds, whatever its class makes of iteration."""
    for kind in (list, tuple, set, frozenset, collections.deque):
        if issubclass(type(value), kind):
            return list(kind.__iter__(value))
    if issubclass(type(value), dict):
        return [part for pair in dict.items(value) for part in pair]
    if type(value) in (types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items())):
        return gc.get_referents(value)
    return []


def _refill(value: Any, then: tuple[Any, ...]) -> None:
    kind = next(kind for kind in CONTAINERS if issubclass(type(value), kind))
    kind.clear(value)
    if kind is dict:
        dict.update(value, zip(then[::2], then[1::2]))
    else:
        (set.update if kind is set else kind.extend)(value, then)  # type: ignore[attr-defined]


def _array(like: Any, held: bytes) -> Any:
    return array.array(like.typecode, held)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING


def _fill(cell: Any, value: Any) -> None:
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _attributes(value: Any) -> dict[str, Any] | None:
    try:
        own = type(value) is threading.local  # the attributes that this thread sees
        found = value.__dict__ if own else object.__getattribute__(value, "__dict__")
    except BaseException as error:
        pass_on_interrupt(error)
        return None
    return found if type(found) is dict else None


def _slots(value: Any) -> Iterator[tuple[Any, Any]]:
    for kind in bases(type(value)):
        for member in own_attributes(kind).values():
            if type(member) is types.MemberDescriptorType:
                try:
                    yield member, member.__get__(value)
                except AttributeError:  # not bound yet
                    continue


def _instance_attributes(value: Any) -> _Attributes:
    """Attributes of an instance; one that `functools.cached_property` keeps is no change."""
    kept = {n for k in bases(type(value)) for n, a in own_attributes(k).items() if type(a) is functools.cached_property}
    found = _Attributes({member.__name__: held for member, held in _slots(value)})
    for name, held in (_attributes(value) or {}).items():
        if name not in kept:
            found[name] = held
    return found


def _renew_instance(value: Any, then: _Attributes) -> None:
    slots = {member.__name__: member for member, _ in _slots(value)}
    for name, member in slots.items():
        if name in then:
            member.__set__(value, then[name])
        else:
            member.__delete__(value)
    attributes = _attributes(value)
    if attributes is not None:
        _renew(attributes, {name: held for name, held in then.items() if name not in slots})


def _class_attributes(value: type) -> _Attributes:
    """Attributes that the text of a class, or code, has given it; not those that Python adds when asked."""
    own = own_attributes(value).items()
    return _Attributes({name: held for name, held in own if not name.startswith(("__", "_abc_"))})


def _renew_class(value: type, then: _Attributes) -> None:
    now = _class_attributes(value)
    for name in now.keys() - then.keys():
        type.__delattr__(value, name)
    for name, held in then.items():
        if now.get(name, MISSING) is not held:
            type.__setattr__(value, name, held)


def _renew(attributes: dict[str, Any], then: dict[str, Any]) -> None:
    attributes.clear()
    attributes.update(then)


def _nothing(then: Any) -> None:
    """The position of an iterator cannot be put back."""


def _frozen(state: Any) -> Any:
    if isinstance(state, dict):
        return tuple((name, _frozen(held)) for name, held in state.items())
    return (state.dtype.str, state.tobytes()) if isinstance(state, np.ndarray) else state


def _thawed(state: Any) -> Any:
    if isinstance(state, tuple) and state and isinstance(state[0], tuple):
        return {name: _thawed(held) for name, held in state}
    return np.frombuffer(state[1], state[0]) if isinstance(state, tuple) else state


# -- comparison --------------------------------------------------------------------------------------------------------
def _same(now: Any, before: Any) -> bool:
    """The same object, or the same number or text: no code of the user runs."""
    return now is before or (type(now) is type(before) and type(now) in _VALUES and now == before)


def _same_state(now: Any, before: Any) -> bool:
    if now is before:
        return True
    if type(now) is _Exact:
        return now == before
    if type(now) is tuple and type(before) is tuple:
        return len(now) == len(before) and all(map(_same_state, now, before))
    if type(now) is _Attributes and type(before) is _Attributes:
        return now.keys() == before.keys() and all(_same(held, before[name]) for name, held in now.items())
    return _same(now, before)
