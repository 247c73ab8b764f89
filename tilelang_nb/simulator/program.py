"""A thread program, translated once and run on NumPy arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tvm

from ..lowering.hopper.persistent import MULTIPROCESSORS, count_of
from ..lowering.hopper.tensor_maps import TensorMap, check_outline, tensor_maps_of
from ..lowering.launches import check_clusters, cluster_of
from .findings import Findings
from .machine.arithmetic import NAMESPACE, strided
from .machine.block_order import Meetings
from .machine.machine import GlobalArray, Machine, StepLimit, Stopped
from .machine.repetition import NoEnd
from .machine.requests import Counting
from .machine.shadow import Epochs, Shadow
from .machine.strand import Strand
from .machine.tensor_copies import TensorView
from .machine.waits import Deadlock
from .report import Counters, KeptOut, Report, Traffic
from .translation.edges import Guard, guarded
from .translation.inspection import evaluate
from .translation.translator import Translator
from .translation.values import NUMPY, is_float

LANES = 1 << 16  # threads in flight
ELEMENTS = 1 << 22  # threads in flight times the iterations that run as an array axis
REGISTERS = 1 << 27  # bytes
SHARED = 1 << 26  # bytes; the shadow of the checks takes 8 bytes and more for each element
RESIDENT_THREADS, RESIDENT_BLOCKS = 2048, 32  # of a multiprocessor
STEPS = 1 << 21  # loop turns of the blocks in flight before a launch counts as endless


class Program:
    """A thread program for one launch.

    checks: find races, missing initialisation, and count; bounds, assertions and deadlocks are found in any case.
    step_limit: loop turns after which a launch counts as endless.
    guards: accesses that the lowering put under conditions at the edges of buffers; what they keep out is counted.
    Raises `Unsupported`, with the name of the node, for what the simulated device does not execute.
    """

    def __init__(
        self, func: Any, *, checks: bool = True, step_limit: int = STEPS, guards: frozenset[Guard] = frozenset()
    ):
        self.func, self.checks, self.step_limit, self.guards = func, checks, step_limit, guards
        self._variants: dict[tuple[bool, bool], tuple[Translator, str, Callable[..., Any]]] = {}
        self.source = self._variant(False)[1]

    def _variant(self, aliased: bool, apart: bool = False) -> tuple[Translator, str, Callable[..., Any]]:
        """The translation for arrays that do not overlap, or for those that do.

        apart: that in which threads that wait for different things run apart; it counts accesses as the other one.
        """
        key = aliased, apart
        if key not in self._variants:
            like = self._variant(aliased)[0] if apart else None
            translator = Translator(self.func, self.checks, aliased, self.guards, like)
            source = translator.translate()
            namespace = dict(NAMESPACE)
            exec(compile(source, "<simulated kernel>", "exec"), namespace)
            self._variants[key] = translator, source, namespace["kernel"]
        return self._variants[key]

    def run(
        self,
        arguments: Mapping[str, Any],
        sizes: Mapping[Any, int] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Report:
        """Run on arguments by parameter name: arrays, which are written in place, and numbers.

        sizes: values of symbolic sizes (by variable) that no extent or stride is on its own.  The arguments must fit
        the parameters; that is the caller's to check.  progress: told from time to time which part of the work is done,
        from 0 to 1; where it raises, the launch ends there.
        """
        with np.errstate(all="ignore"):
            return _Launch(self, arguments, sizes or {}, progress).run()


class _Launch:
    """One run of a program."""

    def __init__(
        self,
        program: Program,
        arguments: Mapping[str, Any],
        sizes: Mapping[Any, int],
        progress: Callable[[float], None] | None = None,
    ):
        self.program, self.checks, self.progress = program, program.checks, progress
        self.done = 0.0
        maps = {one.variable: one for one in tensor_maps_of(program.func)}
        count = count_of(program.func)
        params = [param for param in program.func.params if param not in maps and param not in (count,)]
        arrays = {param: arguments[param.name] for param in params if hasattr(param.ty, "shape")}
        self.copies: list[tuple[np.ndarray, np.ndarray]] = []  # (given, contiguous copy)
        self.sizes = {**_sizes(arrays), **{variable: int(size) for variable, size in sizes.items()}}
        if count is not None:
            self.sizes[count] = MULTIPROCESSORS
        overlapping = _overlaps(list(arrays.values()))
        self.overlapping, self.apart = overlapping, False
        self.translator, _, self.kernel = program._variant(overlapping)
        self.epochs = Epochs()
        self.findings = Findings(self.translator.sites)
        self.counting = Counting()
        self.printed: list[str] = []
        self.parameters: dict[str, Any] = {}
        labels = self.translator.labels
        for param in params:
            if param in arrays:
                self.parameters[labels[param]] = self._array(param, arrays[param])
            else:
                dtype, value = str(param.ty.dtype), arguments[param.name]
                self.parameters[labels[param]] = _scalar(dtype, value)
                self.sizes[param] = float(_scalar(dtype, value)) if is_float(dtype) else int(value)
        for variable, label in labels.items():
            if label not in self.parameters and variable not in maps:
                if variable not in self.sizes:
                    raise ValueError(f"the size `{variable.name}` does not follow from the arrays: pass it in `sizes`")
                self.parameters[label] = self.sizes[variable]
        for variable, tensor in maps.items():
            self.parameters[labels[variable]] = self._tensor_view(tensor)
        if self.checks:
            self._cast_shadows([(param, self.parameters[labels[param]]) for param in arrays])

    def _array(self, param: Any, array: np.ndarray) -> GlobalArray:
        strided = bool(len(param.ty.strides or ()))
        if strided:
            data = _flat_view(array)
        elif array.flags.c_contiguous:
            data = array.reshape(-1)
        else:
            copy = np.ascontiguousarray(array)
            self.copies.append((array, copy))
            data = copy.reshape(-1)
        return GlobalArray(param.name, data, None)

    def _tensor_view(self, tensor: TensorMap) -> TensorView:
        """A tensor map, which on a GPU the host encodes."""
        array = self.parameters[self.translator.labels[tensor.buffer]]
        dims, strides = ([evaluate(extent, self.sizes) for extent in part] for part in (tensor.dims, tensor.strides))
        check_outline(tensor.buffer.name, dims, strides)
        return TensorView(array, dims, strides, tensor.box, tensor.swizzle)

    def _cast_shadows(self, arrays: list[tuple[Any, GlobalArray]]) -> None:
        """A shadow for every array that is written; arrays that overlap in memory share one."""
        reads, writes = self.translator.accessed
        groups: list[list[tuple[Any, GlobalArray]]] = []
        for param, array in arrays:
            mine = [group for group in groups if any(_share(array.data, other.data) for _, other in group)]
            groups = [group for group in groups if group not in mine]
            groups.append([(param, array), *(member for group in mine for member in group)])
        for group in groups:
            if not any(param in writes for param, _ in group):
                continue
            if len({array.data.itemsize for _, array in group}) > 1:
                continue  # elements of two sizes have no common cell
            read = any(param in reads for param, _ in group)
            starts = [array.data.__array_interface__["data"][0] for _, array in group]
            size = group[0][1].data.itemsize
            ends = [start // size + array.data.size for start, (_, array) in zip(starts, group)]
            shadow = Shadow(max(max(ends) - min(starts) // size, 1), True, read)
            for start, (_, array) in zip(starts, group):
                array.shadow, array.first = shadow, (start - min(starts)) // size

    def run(self) -> Report:
        t = self.translator
        grid = {axis: evaluate(extent, self.sizes) for axis, extent in t.grid.items()}
        block = {axis: evaluate(extent, self.sizes) for axis, extent in t.block.items()}
        threads, blocks = int(np.prod(list(block.values()), initial=1)), int(np.prod(list(grid.values()), initial=1))
        cluster = cluster_of(self.program.func)
        check_clusters(str(self.program.func.attrs["global_symbol"]), [grid.get(axis, 1) for axis in "xyz"], cluster)
        table = _by_clusters(grid, cluster) if blocks else np.zeros((0, 1), np.int64)
        step = max(self._blocks_in_flight(threads) // table.shape[1], 1)
        self.meetings = Meetings(blocks, threads)
        try:
            for first in range(0, len(table), step):
                if self.progress is not None:
                    self.progress(max(self.done, first / len(table)))
                self._batch(table[first : first + step], grid, block)
        except Stopped:
            pass
        for given, copy in self.copies:
            given[...] = copy
        return Report(self.findings.diagnostics(), self._counters(), tuple(self.printed))

    def _blocks_in_flight(self, threads: int) -> int:
        t = self.translator
        limits = [LANES // threads, ELEMENTS // (threads * t.largest_vector)]
        if t.asks:  # blocks may wait for any that a device has at the same time
            limits = [max(min(limits), MULTIPROCESSORS * min(RESIDENT_THREADS // threads, RESIDENT_BLOCKS))]
        limits.append(REGISTERS // max(t.register_bytes * threads, 1))
        limits.append(SHARED // (8 if self.checks else 1) // max(t.shared_bytes, 1))
        return max(min(limits), 1)

    def _batch(self, ids: np.ndarray, grid: dict[str, int], block: dict[str, int]) -> None:
        """Run some clusters; where they wait for each other in a way that single ones do not, one after the other.

        ids: numbers of blocks, (clusters, blocks of one).
        """
        t = self.translator
        saved = self._saved() if t.can_wait else []
        known, epoch, printed = self.findings.kept(), self.epochs.last, len(self.printed)
        try:
            self._blocks(ids, grid, block)
        except Deadlock as stuck:
            if not self.apart and self._run_apart():
                self._again(saved, known, epoch, printed)
                self._batch(ids, grid, block)
                return
            if not t.can_wait or t.asks or len(ids) == 1:
                self._stuck(stuck, saved, known, epoch, printed, (ids, grid, block))
                raise Stopped from None
            self._again(saved, known, epoch, printed)
            for number in range(len(ids)):
                self._batch(ids[number : number + 1], grid, block)
            return
        except NoEnd as endless:
            self.findings.same_turns(endless.site, endless.turns)
            raise Stopped from None
        except StepLimit as endless:
            self.findings.endless(endless.site, self.program.step_limit)
            raise Stopped from None
        if saved and self.checks and self.findings.unwritten(known):
            self._other_way(saved, known, epoch, printed, (ids, grid, block))

    def _run_apart(self) -> bool:
        """From here on threads that wait for different things run apart; False where there are none."""
        self.apart = True
        translator, source, kernel = self.program._variant(self.overlapping, True)
        if "S.run_apart(" not in source:
            return False
        self.translator, self.kernel = translator, kernel
        return True

    def _stuck(self, stuck: Deadlock, saved: Any, known: Any, epoch: int, printed: int, batch: Any) -> None:
        self.findings.deadlock(stuck.site, stuck.lack)
        if saved and self.checks and self.findings.unwritten(known):
            self._other_way(saved, known, epoch, printed, batch)

    def _other_way(self, saved: Any, known: Any, epoch: int, printed: int, batch: Any) -> None:
        """Shared memory was read before it was written: where roles run in another order, a copy or store into it may
        be under way.  That is what is told then: nobody waited for it.
        """
        found, after, said = self.findings.kept(), self._saved(), self.printed[printed:]
        missing = self.findings.unwritten(known)
        self._again(saved, known, epoch, printed)
        try:
            self._blocks(*batch, backwards=True)
        except Deadlock as stuck:
            self.findings.deadlock(stuck.site, stuck.lack)
        except (StepLimit, NoEnd, Stopped):
            pass
        if not missing & self.findings.races(known):
            self.findings.put_back(found)
            self._restore(after)
            self.printed[printed:] = said

    def _again(self, saved: Any, known: Any, epoch: int, printed: int) -> None:
        """The arrays and what was found are as they were before the last run of blocks."""
        self._restore(saved)
        self.findings.put_back(known)
        del self.printed[printed:]
        for value in self.parameters.values():
            if isinstance(value, GlobalArray) and value.shadow is not None:
                value.shadow.forget(epoch)

    def _blocks(self, ids: np.ndarray, grid: dict[str, int], block: dict[str, int], backwards: bool = False) -> None:
        t = self.translator
        blocks = math.prod(grid.values())

        def told(loop: int, part: float) -> None:
            # Until the loops are known to differ, each counts as the same share of a block.
            share = (loop + part) / t.outer_loops
            self.done = max(self.done, (int(ids[0, 0]) + ids.size * share) / blocks)
            self.progress(self.done)  # type: ignore[misc]

        machine = Machine(
            block=block,
            grid=grid,
            blocks=ids.size,
            ranks=ids.shape[1],
            backwards=backwards,
            shared_bytes=t.shared_bytes,
            granule=t.granule,
            sites=t.sites,
            details=t.site_details,
            checks=self.checks,
            findings=self.findings,
            counters=self.counting,
            steps=self.program.step_limit,
            epochs=self.epochs,
            meetings=self.meetings,
            printed=self.printed,
            sizes=self.sizes,
            watched=t.asks,
            progress=told if self.progress is not None else None,
        )
        threads = np.arange(machine.threads)
        step = 1 if t.asks else len(ids)
        strands = [
            Strand(machine, ids[first : first + step, rank], threads, rank * len(ids) + first)
            for rank in range(ids.shape[1])
            for first in range(0, len(ids), step)
        ]
        if len(strands) == 1:
            machine.run(self.kernel(strands[0], self.parameters))
        else:
            machine.run_together([(strand, self.kernel(strand, self.parameters)) for strand in strands])
        machine.end()

    def _saved(self) -> list[tuple[np.ndarray, np.ndarray]]:
        arrays = [value.data for value in self.parameters.values() if isinstance(value, GlobalArray)]
        return [(array, array.copy()) for array in arrays]

    def _restore(self, saved: list[tuple[np.ndarray, np.ndarray]]) -> None:
        for array, copy in saved:
            array[...] = copy

    def _counters(self) -> Counters:
        t = self.translator
        operations = dict(self.counting.operations)
        for kinds, number in t.tallies.items():
            for kind, times in kinds:
                operations[kind] = operations.get(kind, 0) + times * self.counting.tallies[number]
        tables: dict[str, dict[tuple[Any, ...], list[int]]] = {"shared": {}, "global": {}}
        for site, counts in self.counting.sites.items():
            here = t.sites[site]
            key = (here.span[0] if here.span else None, here.buffer, here.kind)
            row = tables[here.space].setdefault(key, [0, 0, 0])
            for position, count in enumerate(counts):
                row[position] += count
        rows = {
            space: tuple(Traffic(*key, *counts) for key, counts in sorted(table.items(), key=lambda item: str(item[0])))
            for space, table in tables.items()
        }
        operations = {kind: number for kind, number in operations.items() if number}
        return Counters(operations, rows["shared"], rows["global"], self._kept_out())

    def _kept_out(self) -> tuple[KeptOut, ...]:
        """Accesses beyond the edges of buffers, by line."""
        found: Counter[tuple[int | None, str, str]] = Counter()
        for number, count in self.counting.kept_out.items():
            site = self.translator.sites[number]
            kind = guarded(site.kind, site.buffer, site.span, self.program.guards)
            if kind:
                found[site.span[0] if site.span else None, site.buffer, kind] += count
        return tuple(KeptOut(*key, count) for key, count in sorted(found.items(), key=lambda item: str(item[0])))


def _by_clusters(grid: dict[str, int], cluster: tuple[int, int, int]) -> np.ndarray:
    """Numbers of blocks, (clusters, blocks of one), both in the order of x, y and z."""
    x, y, z = (grid.get(axis, 1) for axis in "xyz")
    wide, high, deep = cluster
    numbers = np.arange(x * y * z).reshape(z // deep, deep, y // high, high, x // wide, wide)
    return numbers.transpose(0, 2, 4, 1, 3, 5).reshape(-1, wide * high * deep)


def _scalar(dtype: str, value: Any) -> Any:
    """A scalar argument in the form that generated programs compute with."""
    if dtype == "bool":
        return bool(value)
    return eval(NUMPY[dtype], dict(NAMESPACE))(value) if is_float(dtype) else int(value)


def _sizes(arrays: Mapping[Any, np.ndarray]) -> dict[Any, int]:
    """Symbolic extents and strides from the arrays."""
    sizes: dict[Any, int] = {}
    for param, array in arrays.items():
        strides = [stride // array.itemsize for stride in array.strides]
        for symbols, numbers in ((param.ty.shape, array.shape), (param.ty.strides or (), strides)):
            for symbol, number in zip(symbols, numbers, strict=False):
                if isinstance(symbol, tvm.ir.Var):
                    sizes.setdefault(symbol, int(number))
    return sizes


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(a.size and b.size and np.may_share_memory(a, b))


def _overlaps(arrays: list[np.ndarray]) -> bool:
    return any(_share(a, b) for position, a in enumerate(arrays) for b in arrays[position + 1 :])


def _flat_view(array: np.ndarray) -> np.ndarray:
    """All memory between the first and the last element of a strided array, as a flat view."""
    if not array.size:
        return array.reshape(-1)
    if any(stride < 0 or stride % array.itemsize for stride in array.strides):
        raise ValueError("arrays with negative or uneven strides")
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    return strided(array, (last // array.itemsize + 1,), (array.itemsize,))
