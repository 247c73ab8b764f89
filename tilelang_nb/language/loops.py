"""Device loops: `for i in T.serial(n)` and its kinds.

A constructor checks its arguments and gives a `DeviceLoop`; the front end turns it into a loop.
Outside a kernel's own text a
`DeviceLoop` cannot be iterated (TL111): the helper needs `@T.macro`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import number_text, with_article
from .building import on_host
from .calling import bad_argument, checked_call
from .fragment_layouts import Fragment
from .operands import choice, content, described, flag, integer
from .promotion import is_integer
from .protocols import text_refused
from .values import Buffer, Region, Value, is_building, number

LOOP_LAYOUT = "loop_layout"  # the option of `T.Parallel`
THREAD_TAGS = ("threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x", "blockIdx.y", "blockIdx.z")


@dataclass(frozen=True)
class DeviceLoop:
    """A loop of the kernel.

    kind: serial, unroll, parallel, vectorized, pipelined, grid, persistent or thread_binding.
    dims: (start, stop, step) per loop variable, ints or integer Values; `persistent` has the extents of its domain.
    annotations: options by name.
    """

    kind: str
    dims: tuple[tuple[Any, Any, Any], ...]
    annotations: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        if is_building():
            raise Refusal(text_refused())
        return f"<device loop of {len(self.dims)} variable{'s' * (len(self.dims) != 1)}, {self.kind}>"

    def __iter__(self) -> Any:
        what = f"a loop `T.{_WRITTEN.get(self.kind, self.kind)}` in a function that is no kernel"
        refusal = Refusal(say.NotIterable(what=what, remedy="put `@T.prim_func` or `@T.macro` above its `def`"))
        raise refusal if is_building() else on_host(refusal)


_WRITTEN = {"parallel": "Parallel", "pipelined": "Pipelined", "persistent": "Persistent"}


def _bound(value: Any, called: str, name: str) -> Any:
    value = content(value)
    if isinstance(value, Value):
        if not is_integer(value.dtype):
            bad_argument(f"`{name}` of `{called}` is {with_article(value.dtype)} value", "cast it to int32")
        return value
    if isinstance(value, (Buffer, Region)):
        raise Refusal(say.NotIterable(what=described(value), remedy=f"use an extent: `{called}(buffer.shape[0])`"))
    found = number(value)
    if found is None or isinstance(found, (float, bool)):
        problem = f"`{name}` of `{called}` is {described(value)}"
        remedy = "divide with `//`, or round with `T.ceildiv`" if isinstance(found, float) else "give an integer"
        bad_argument(problem, remedy)
    check_bound(found, f"`{name}` of `{called}`")
    return found


def check_bound(bound: int, what: str = "a loop bound") -> None:
    """TL004 for an integer that no loop variable holds."""
    if not -(2**63) <= bound < 2**63:
        bad_argument(f"{what} is {number_text(bound)}", "keep it in -2**63..2**63-1, the range of int64")


def _range(start: Any, stop: Any, step: Any, called: str) -> tuple[Any, Any, Any]:
    if stop is None:
        start, stop = 0, start
    first, last = _bound(start, called, "start"), _bound(stop, called, "stop")
    stride = 1 if step is None else _bound(step, called, "step")
    if isinstance(stride, int) and stride == 0:
        raise Refusal(say.ZeroStep())
    return (first, last, stride)


def _options(annotations: Any, called: str, **options: Any) -> dict[str, Any]:
    """Options given by keyword; `annotations` adds to them and takes precedence, as upstream."""
    if annotations is not None and not isinstance(annotations, dict):
        bad_argument(f"`annotations` of `{called}` is {described(annotations)}", "give a dict, or leave it out")
    found = {name: value for name, value in options.items() if value is not None}
    given = {name: value for name, value in (annotations or {}).items() if isinstance(name, str) and _plain(value)}
    return found | given


def _plain(value: Any) -> bool:
    """A loop in the IR carries numbers, text and lists of them; other options are hints for upstream's passes."""
    if isinstance(value, (list, tuple)):
        return all(_plain(item) for item in value)
    return isinstance(value, (bool, float, str)) or (isinstance(value, int) and -(2**63) <= value < 2**63)


@checked_call
def serial(start: Any, stop: Any = None, step: Any = None, *, annotations: dict | None = None) -> DeviceLoop:
    """`for i in T.serial(start, stop, step)`: turns one after another, with `range`'s meaning.

    Bounds and step may be device values.  `break` and `continue` are allowed.
    Errors: TL004 (a bound that is no integer), TL111 (a buffer), TL141 (step 0).
    Source: `spec` of `range`; upstream `tilelang/language/loop.py`.
    """
    return DeviceLoop("serial", (_range(start, stop, step, "T.serial"),), _options(annotations, "T.serial"))


@checked_call
def Serial(start: Any, stop: Any = None, step: Any = None, *, annotations: dict | None = None) -> DeviceLoop:
    """`T.serial` by its tile-level name.  Errors (TL004, TL111, TL141) and source as there."""
    return DeviceLoop("serial", (_range(start, stop, step, "T.Serial"),), _options(annotations, "T.Serial"))


def _unroll(
    called: str, start: Any, stop: Any, step: Any, explicit: Any, unroll_factor: Any, annotations: Any
) -> DeviceLoop:
    if unroll_factor is not None:
        unroll_factor = integer(unroll_factor, called, "unroll_factor", 1)
        if flag(explicit, called, "explicit"):
            bad_argument(f"`{called}` with both `explicit` and `unroll_factor`", "give one of them")
    options = _options(
        annotations, called, explicit=flag(explicit, called, "explicit") or None, unroll_factor=unroll_factor
    )
    return DeviceLoop("unroll", (_range(start, stop, step, called),), options)


@checked_call
def unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: int | None = None,
    annotations: dict | None = None,
) -> DeviceLoop:
    """`for i in T.unroll(start, stop, step)`: a serial loop whose body the device compiler repeats.

    explicit: repeat it in the IR already.  unroll_factor: repeat it this many times.  Results are those of `T.serial`.
    Errors: TL004 (bounds, both options at once), TL111 (a buffer), TL141 (step 0).
    Source: upstream `tilelang/language/loop.py`.
    """
    return _unroll("T.unroll", start, stop, step, explicit, unroll_factor, annotations)


@checked_call
def Unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: int | None = None,
    annotations: dict | None = None,
) -> DeviceLoop:
    """`T.unroll` by its tile-level name.  Errors (TL004, TL111, TL141) and source as there."""
    return _unroll("T.Unroll", start, stop, step, explicit, unroll_factor, annotations)


@checked_call
def vectorized(start: Any, stop: Any = None, *, annotations: dict | None = None) -> DeviceLoop:
    """`for i in T.vectorized(start, stop)`: turns that the device may run as one vector instruction.

    Results are those of `T.serial`; where no vector form is right the loop stays scalar.
    Errors: TL004 (bounds), TL111 (a buffer).  Source: upstream `tilelang/language/loop.py`.
    """
    return DeviceLoop("vectorized", (_range(start, stop, None, "T.vectorized"),), _options(annotations, "T.vectorized"))


@checked_call
def Vectorized(start: Any, stop: Any = None, *, annotations: dict | None = None) -> DeviceLoop:
    """`T.vectorized` by its tile-level name.  Errors (TL004, TL111) and source as there."""
    return DeviceLoop("vectorized", (_range(start, stop, None, "T.Vectorized"),), _options(annotations, "T.Vectorized"))


def _parallel(called: str, extents: tuple[Any, ...], options: dict[str, Any]) -> DeviceLoop:
    if len(extents) == 1 and isinstance(extents[0], (tuple, list)):
        extents = tuple(extents[0])
    if not extents:
        bad_argument(f"`{called}` needs at least one extent", f"write `{called}(n)`")
    return DeviceLoop("parallel", tuple([_range(extent, None, None, called) for extent in extents]), options)


@checked_call
def Parallel(
    *extents: Any,
    coalesced_width: int | None = None,
    loop_layout: Any = None,
    prefer_async: bool | None = None,
    annotations: dict | None = None,
) -> DeviceLoop:
    """`for i, j in T.Parallel(m, n)`: iterations without order, spread over the threads of the block.

    extents: one per loop variable; integers or device values.
    coalesced_width: the vector width to aim for, in elements.
    loop_layout: a `T.Fragment` of their shape that says which threads run which iteration; several that run one leave
    memory to the first of them, and in a part of `T.ws` they are counted from its first thread.  Results do not depend
    on it.  Where the fragments of the loop do not allow it, it is not taken, and the report says why.  prefer_async: a
    hint.
    `continue` skips an iteration; `break` is refused (TL119).
    Carrying a scalar from one iteration to another is TL134.
    Errors: TL004 (extents, options, a thread that there is not), TL111 (a buffer), TL204 (shape of `loop_layout`).
    Source: upstream `tilelang/language/loop.py`.
    """
    if coalesced_width is not None:
        coalesced_width = integer(coalesced_width, "T.Parallel", "coalesced_width", 1)
    if loop_layout is not None and not isinstance(loop_layout, Fragment):
        bad_argument(f"`loop_layout` of `T.Parallel` is {described(loop_layout)}", "give a `T.Fragment`")
    options = {"coalesced_width": coalesced_width, "prefer_async": prefer_async, LOOP_LAYOUT: loop_layout}
    return _parallel("T.Parallel", extents, _options(annotations, "T.Parallel", **options))


@checked_call
def parallel(start: Any, stop: Any = None, *, annotations: dict | None = None) -> DeviceLoop:
    """`for i in T.parallel(start, stop)`: one parallel loop with a start, otherwise as `T.Parallel`.

    Errors: TL004 (bounds), TL111 (a buffer).  Source: TVM's `T.parallel`.
    """
    return DeviceLoop("parallel", (_range(start, stop, None, "T.parallel"),), _options(annotations, "T.parallel"))


@checked_call
def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: int = 0,
    order: list | None = None,
    stage: list | None = None,
    sync: list | None = None,
    group: list | None = None,
    annotations: dict | None = None,
) -> DeviceLoop:
    """`for k in T.Pipelined(n, num_stages=3)`: a serial loop whose copies may run ahead of their use.

    num_stages: versions of each tile that is copied ahead; 0 and 1 do not overlap.  A copy from global to shared memory
    runs ahead (from sm_80) where that cannot change a result; what shared memory cannot hold gets fewer stages.
    order, stage: a schedule by hand, one entry per statement of the loop (those of a macro count), or per list of
    `group`, which has the numbers of statements from 0; -1 for a copy that another engine makes.  Without `num_stages`,
    it gives as many stages as it spans; statements keep the order of the text.
    sync, group: hints.  Results are those of `T.serial`.  `break` and `continue` are allowed.
    Errors: TL004 (bounds, options, entries for more or fewer statements), TL111 (a buffer).
    Source: upstream `tilelang/language/loop.py`.
    """
    called = "T.Pipelined"
    options: dict[str, Any] = {"num_stages": integer(num_stages, called, "num_stages", 0)}
    for name, given in (("order", order), ("stage", stage), ("sync", sync), ("group", group)):
        if given is not None and not isinstance(given, (list, tuple)):
            bad_argument(f"`{name}` of `{called}` is a list, {described(given)} given", f"write `{name}=[0, 1]`")
        if given:
            options[name] = _schedule(given, name, called)
    if order and stage and len(order) != len(stage):
        bad_argument(
            f"`{called}` with {len(order)} entries of `order` and {len(stage)} of `stage`", "give one per statement"
        )
    for name, given in (("order", order), ("stage", stage)):
        if given and group and len(given) != len(group):
            bad_argument(
                f"`{called}` with {len(given)} entries of `{name}` and {len(group)} of `group`", "give one per group"
            )
    return DeviceLoop("pipelined", (_range(start, stop, None, called),), _options(annotations, called, **options))


def _schedule(given: Any, name: str, called: str) -> list[Any]:
    """One entry of a schedule by hand for each statement.

    TL004: `order` or `stage` holds something else than integers from 0, or -1, or `order` a place twice.
    """
    if name not in ("order", "stage"):
        return list(given)
    for entry in given:
        if isinstance(entry, bool) or not isinstance(number(entry), int):
            bad_argument(
                f"`{name}` of `{called}` is a list of integers and holds {described(entry)}", f"write `{name}=[0, 1]`"
            )
    entries = [integer(entry, called, name) for entry in given]
    if min(entries) < -1:
        bad_argument(
            f"`{name}` of `{called}` counts from 0, {min(entries)} given", "write -1 for a copy that is left out"
        )
    twice = [entry for entry in entries if name == "order" and entry >= 0 and entries.count(entry) > 1]
    if twice:
        bad_argument(f"two statements have place {twice[0]} in `order` of `{called}`", "give each a place of its own")
    return entries


@checked_call
def Persistent(
    domain: Any,
    wave_size: Any,
    index: Any,
    group_size: Any = 8,
    num_stages: int = 0,
    *,
    annotations: dict | None = None,
) -> DeviceLoop:
    """`for bx, by in T.Persistent([m, n], wave_size, index)`: the tiles of a domain that fall to this block.

    domain: extents of the tile grid.  wave_size: blocks that work at a time.  index: which of them this block is.
    group_size: tiles of the last dimension that are visited together, for the second-level cache.
    Every tile belongs to exactly one index below `wave_size`.
    Errors: TL004 (domain, options).  Source: upstream `T.Persistent` (`PersistentFor`).
    """
    called = "T.Persistent"
    extents = tuple(domain) if isinstance(domain, (list, tuple)) else (domain,)
    if not extents:
        bad_argument(f"`{called}` needs at least one extent", f"write `{called}([m, n], wave_size, index)`")
    dims = tuple([(0, _bound(extent, called, "domain"), 1) for extent in extents])
    options = {
        "wave_size": _bound(wave_size, called, "wave_size"),
        "index": _bound(index, called, "index"),
        "group_size": 8 if group_size is None else _bound(group_size, called, "group_size"),
        "num_stages": integer(num_stages, called, "num_stages", 0),
    }
    return DeviceLoop("persistent", dims, _options(annotations, called, **options))


def persistent_waves(loop: DeviceLoop) -> Any:
    """The number of turns of a `T.Persistent` loop, as an int or Value."""
    padded = 1
    for extent in _grouped(loop):
        padded = padded * extent
    wave = loop.annotations["wave_size"]
    return (padded + wave - 1) // wave


def persistent_tile(loop: DeviceLoop, wave: Any) -> tuple[Any, tuple[Any, ...]]:
    """Whether turn `wave` of a `T.Persistent` loop has a tile, and its coordinates.

    The domain is visited with the last dimension split in groups: group first, then the other dimensions, then inside
    the group.
    """
    grouped = _grouped(loop)
    rest = wave * loop.annotations["wave_size"] + loop.annotations["index"]
    coordinates: list[Any] = []
    for extent in reversed(grouped[1:]):
        coordinates.insert(0, rest % extent)
        rest = rest // extent
    last = rest * grouped[-1] + coordinates[-1]
    extent = loop.dims[-1][1]
    inside = last < extent
    return inside, (*coordinates[:-1], last)


def _grouped(loop: DeviceLoop) -> list[Any]:
    from .integers import ceildiv
    from .selection import max_of, min_of

    extents = [stop for _, stop, _ in loop.dims]
    group = max_of(1, min_of(loop.annotations["group_size"], extents[-1]))
    return [ceildiv(extents[-1], group), *extents[:-1], group]


@checked_call
def grid(*extents: Any) -> DeviceLoop:
    """`for i, j in T.grid(m, n)`: nested serial loops, the last one innermost.

    Errors: TL004 (extents), TL111 (a buffer).  Source: TVM's `T.grid`.
    """
    if not extents:
        bad_argument("`T.grid` needs at least one extent", "write `T.grid(m, n)`")
    return DeviceLoop("grid", tuple([_range(extent, None, None, "T.grid") for extent in extents]))


@checked_call
def thread_binding(
    start: Any, stop: Any = None, thread: str | None = None, *, annotations: dict | None = None
) -> DeviceLoop:
    """`for t in T.thread_binding(n, thread="threadIdx.x")`: the variable is the index of the executing thread or block.

    thread: threadIdx.x/y/z or blockIdx.x/y/z.  Inside a launch the extent must be that of the launch along the same
    axis.
    Errors: TL004 (no thread, unknown one), TL111 (a buffer).  Source: TVM's `T.thread_binding`.
    """
    called = "T.thread_binding"
    if isinstance(stop, str) and thread is None:
        stop, thread = None, stop
    tag = choice(thread, called, "thread", THREAD_TAGS)
    return DeviceLoop("thread_binding", (_range(start, stop, None, called),), _options(annotations, called, thread=tag))
