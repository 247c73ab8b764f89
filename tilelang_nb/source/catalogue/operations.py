"""TL2xx: operands, shapes, types and launches of operations."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostic import Message, for_edits

__all__ = [
    "WrongNumberOfIndices",
    "NoIndices",
    "OneElement",
    "IndexOutOfBounds",
    "SliceStep",
    "ShapeMismatch",
    "DtypeMismatch",
    "NoSuchDtype",
    "IntegerPower",
    "SymbolicTileShape",
    "MissingAnnotation",
    "LaunchConfiguration",
    "OutsideLaunch",
    "BlockNames",
    "SharedMemoryExceeded",
    "ThreadMapping",
    "ThreadsApart",
    "UninitialisedRead",
    "ImplicitFloatToInteger",
    "SerialisedProducts",
    "SpilledRegisters",
    "UnwaitedCopy",
    "ArrayInMemory",
    "RegistersNotDivided",
]


@dataclass(frozen=True)
class WrongNumberOfIndices(Message):
    """Wrong number of indices."""

    code, slug = "TL201", "wrong-number-of-indices"
    text = "wrong number of indices for `{buffer}` of shape {shape}: {given} instead of {rank}"
    label = "one index per dimension"
    advice = "write `{example}`"

    buffer: str
    rank: str
    shape: str
    given: str
    example: str


@dataclass(frozen=True)
class NoIndices(WrongNumberOfIndices):
    """A buffer or region where only a number can stand."""

    text = "{what} of shape {shape} is used as a number"
    label = "a kernel computes with elements"
    advice = "write `{example}`, in a loop over the elements{loop}"

    what: str = "a buffer"
    loop: str = ""


@dataclass(frozen=True)
class OneElement(NoIndices):
    """A buffer of one element where only a number can stand."""

    advice = "write `{example}`"


@dataclass(frozen=True)
class IndexOutOfBounds(Message):
    """A constant index or region outside the buffer."""

    code, slug = "TL202", "index-out-of-bounds"
    text = "{problem}"
    label = "outside the buffer"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class SliceStep(Message):
    """A slice step other than 1."""

    code, slug = "TL203", "slice-step"
    text = "a slice of `{buffer}` with step {step}"
    label = "a region leaves nothing out"
    advice = "take every element with step 1, or loop: `for i in T.Parallel(n)`"

    buffer: str
    step: str


@dataclass(frozen=True)
class ShapeMismatch(Message):
    """Operand shapes do not fit.

    keyword: an argument with which they do, as `transpose_B=True`.  tile, shape, wanted: a tile, the shape that it is
    allocated with, and one with which they do.
    """

    code, slug = "TL204", "shape-mismatch"
    text = "{problem}"
    label = "the shapes do not fit"
    advice = "{remedy}"

    problem: str
    remedy: str
    keyword: str = for_edits()
    tile: str = for_edits()
    shape: str = for_edits()
    wanted: str = for_edits()


@dataclass(frozen=True)
class DtypeMismatch(Message):
    """Operand types do not fit."""

    code, slug = "TL205", "dtype-mismatch"
    text = "{problem}"
    label = "the types do not fit"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class NoSuchDtype(DtypeMismatch):
    """There is no such dtype.  word: what was given, near: the nearest real one."""

    label = "no such dtype"

    word: str = for_edits()
    near: str = for_edits()


@dataclass(frozen=True)
class IntegerPower(DtypeMismatch):
    """An integer to a power that is not multiplied out."""

    label = "only exponents from 0 to 8 are multiplied out"


@dataclass(frozen=True)
class SymbolicTileShape(Message):
    """A tile dimension must be a constant."""

    code, slug = "TL206", "symbolic-tile-shape"
    text = "the tile dimension `{extent}` is known only when the kernel runs"
    label = "a tile has a constant shape"
    advice = "use a constant block size and guard the edge"

    extent: str


@dataclass(frozen=True)
class MissingAnnotation(Message):
    """A kernel parameter without T.Tensor or dtype."""

    code, slug = "TL207", "missing-annotation"
    text = "{problem}"
    label = "a parameter needs `T.Tensor` or a dtype"
    advice = "write `{example}`"

    problem: str
    example: str


@dataclass(frozen=True)
class LaunchConfiguration(Message):
    """Threads outside 1..1024, a bad grid."""

    code, slug = "TL208", "launch-configuration"
    text = "{problem}"
    label = "this launch is not possible"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class OutsideLaunch(LaunchConfiguration):
    """Something of the threads where no thread runs."""

    label = "no thread runs here"


@dataclass(frozen=True)
class BlockNames(LaunchConfiguration):
    """More or fewer names for the block indices than the grid has axes."""

    label = "one name for each axis of the grid"


@dataclass(frozen=True)
class SharedMemoryExceeded(Message):
    """More shared memory than the device has."""

    code, slug = "TL209", "shared-memory-exceeded"
    text = "a block needs {needed} bytes of shared memory, {arch} has {available}"
    label = "too much shared memory"
    advice = "make a tile smaller; the biggest: {biggest}"

    needed: str
    arch: str
    available: str
    biggest: str


@dataclass(frozen=True)
class ThreadMapping(Message):
    """A fragment access or tile operation that no thread layout can serve."""

    code, slug = "TL210", "thread-mapping"
    text = "{problem}"
    label = "no thread layout serves this access"
    advice = "{remedy}"

    problem: str
    remedy: str


@dataclass(frozen=True)
class ThreadsApart(ThreadMapping):
    """Work that all threads do together, where not all of them get."""

    label = "every thread of the block has to get here"


@dataclass(frozen=True)
class UninitialisedRead(Message):
    """A buffer is read before anything writes it."""

    code, slug = "TL211", "uninitialised-read"
    severity = "warning"
    text = "`{buffer}` is read before anything writes it"
    label = "holds whatever memory held"
    advice = "write it first, with `T.clear({buffer})` or `T.copy`"

    buffer: str


@dataclass(frozen=True)
class ImplicitFloatToInteger(Message):
    """A float device value stored into an integer buffer."""

    code, slug = "TL212", "implicit-float-to-integer"
    severity = "warning"
    text = "a {source} value is stored into `{buffer}`, which holds {dtype}"
    label = "the fraction is dropped"
    advice = 'say so: `T.cast(value, "{dtype}")`'

    source: str
    buffer: str
    dtype: str


@dataclass(frozen=True)
class SerialisedProducts(Message):
    """The assembler does not let products of warp groups run beside other instructions."""

    code, slug = "TL213", "serialised-products"
    severity = "warning"
    text = "products of warp groups do not run on: {cause}"
    label = "each is waited for at once"
    advice = "{remedy}"

    cause: str
    remedy: str


@dataclass(frozen=True)
class SpilledRegisters(Message):
    """The assembler keeps values in memory, as a thread has too few registers."""

    code, slug = "TL214", "spilled-registers"
    severity = "warning"
    text = "{cause}: {stored} bytes of them go to memory, {loaded} bytes come back"
    label = "slower than it could be"
    advice = "{remedy}"

    cause: str
    stored: str
    loaded: str
    remedy: str


@dataclass(frozen=True)
class UnwaitedCopy(Message):
    """Nothing waits for an asynchronous copy before the kernel ends."""

    code, slug = "TL215", "unwaited-copy"
    severity = "warning"
    text = "nothing waits for this copy into `{buffer}` before the kernel ends"
    label = "still under way when the kernel ends"
    advice = "{remedy}"

    buffer: str
    remedy: str


@dataclass(frozen=True)
class ArrayInMemory(Message):
    """The assembler keeps an array of each thread in memory, as registers have no addresses."""

    code, slug = "TL216", "array-in-memory"
    severity = "warning"
    text = "{array} lies in memory, {bytes} bytes for each thread: {cause}"
    label = "each access is a trip to memory"
    advice = "{remedy}"

    array: str
    bytes: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class RegistersNotDivided(Message):
    """The assembler leaves `setmaxnreg` out, and every thread keeps what the launch began with."""

    code, slug = "TL217", "registers-not-divided"
    severity = "warning"
    text = "the parts of `T.ws` keep the registers that the launch gives them: {cause}"
    label = "not carried out"
    advice = "ask for more registers in the part that computes, or make its tiles smaller"

    cause: str
