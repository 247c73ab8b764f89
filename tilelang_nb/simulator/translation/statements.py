"""TIR statements -> Python suites: loops, masks, break and continue, forks.

Masks are three-valued at run time: None (all lanes), False (none: the suite is skipped) or an array of booleans.  A
condition on uniform values is a Python `if`.  `gone` collects the lanes that left an iteration by break or continue,
`broken` those that left the loop.

An `if` on thread indices around a wait becomes a fork: each branch is a generator function over its own, compacted
threads. Everything else stays in lockstep, where a block barrier costs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tvm.ir.prim import expr as pe

from . import hopper_calls, matrix_calls  # noqa: F401  (fill the table of statements)
from .accesses import VectorAxis
from .apart import Apart, waits
from .endless import asks, leaving, registers_of_turns
from .inspection import constant, has_jump, jumps_out
from .suites import Nested, Suite, Tracked
from .tally import operations
from .values import B_AXIS, BYTES, NUMPY, T_AXIS, Storage, Unsupported, Value, dtype_of, integer_range, is_float
from .vector_loops import is_wide, nesting, runs_as_axis

SHORT_LOOP = 16  # turns; a loop that is known to be shorter is not counted against the step limit


@dataclass(frozen=True)
class OpenLoop:
    """Masks of a loop that breaks or continues; None for a loop without jumps."""

    gone: str
    broken: str


class Statements(Apart):
    """`statement(node)` emits."""

    loops: list[OpenLoop | None]

    def statement(self, node: Any) -> None:
        outer, self.span = self.span, node.span if node.span is not None else self.span
        method = getattr(self, "statement_" + type(node).__name__, None)
        if method is None:
            raise Unsupported(f"statement {type(node).__name__}", self.span)
        method(node)
        self.span = outer

    def statement_SeqStmt(self, node: Any) -> None:
        opened, done = 0, 0
        for at, child in enumerate(node.seq):
            if at < done:
                continue
            together = self.region(list(node.seq[at:])) if self.apart else 0
            if together:
                self.emit_region(list(node.seq[at : at + together]))
                done = at + together
                continue
            self.statement(child)
            loop = self.loops[-1] if self.loops else None
            if loop and jumps_out(child):  # the rest runs for the lanes that are still here
                mask = self.assign("m", f"S.minus({self.mask}, {loop.gone})")
                self.mask, outer = mask, self.mask
                self._left.append(outer)
                self.open()
                opened += 1
        for _ in range(opened):
            inner = self.mask
            self.mask = self._left.pop()
            self.close(f"if {inner} is not False:")

    def statement_AttrStmt(self, node: Any) -> None:
        if node.attr_key == "thread_extent":
            self._bind_axis(node)
        self.statement(node.body)

    def _bind_axis(self, node: Any) -> None:
        tag = str(node.node.thread_tag)
        kind, axis = tag.split(".") if "." in tag else (tag, "x")
        if kind not in ("blockIdx", "threadIdx"):
            raise Unsupported(f"thread axis {tag}", self.span)
        table, letter, bit = (self.grid, "b", B_AXIS) if kind == "blockIdx" else (self.block, "t", T_AXIS)
        extent = constant(node.value)
        if extent is None and kind == "threadIdx":
            raise Unsupported("a number of threads that is not constant", self.span)
        table[axis] = node.value
        name = letter + axis
        high = extent - 1 if extent else integer_range("int32")[1]
        dtype = dtype_of(node.node.var)
        value = Value(name, "int32", 0 if extent == 1 else bit, 0, True, True, 0, high)
        if extent == 1:
            value = Value("0", "int32", atom=True, low=0, high=0)
        self.define(name)
        self.names[node.node.var] = value if dtype == "int32" else self.cast(value, dtype)

    def statement_AllocBuffer(self, node: Any) -> None:
        buffer = node.buffer
        shape, dtype, scope = tuple(buffer.ty.shape), str(buffer.ty.dtype), str(buffer.ty.storage_scope)
        if dtype not in NUMPY or any(constant(extent) is None for extent in shape):
            raise Unsupported(f"allocation of {buffer.name}: {dtype}, shape {list(shape)}", self.span)
        name = self.fresh(buffer.name)
        if scope.startswith("shared"):
            storage = Storage("shared", name, buffer.name, shape, dtype, -(-self.shared_bytes // 1024) * 1024)
            self.shared_bytes = storage.base + storage.count * BYTES[dtype]
            if dtype != "uint8":  # the bytes of an untyped arena are not what is read and written
                self.granule = min(self.granule, BYTES[dtype])
            self.buffers[buffer] = storage
        elif scope.startswith("local"):
            depth = self.function_depth
            if buffer in self.accumulators:
                self.varying.add(name)
            storage = Storage("local", name, buffer.name, shape, dtype, depth=depth)
            function = self.suites[depth]
            function.names |= {name, name + "_state"}
            function.lines.append(f"{name} = S.registers({storage.count}, {NUMPY[dtype]})")
            self.register_bytes += storage.count * BYTES[dtype]
            self.buffers[buffer] = storage
            if self.checks:
                function.lines.append(Tracked(name, f"{name}_state = S.register_state({name})"))
            self.emit_tracked(name, f"{name}_state[...] = 0")
        else:
            raise Unsupported(f"memory scope {scope}", self.span)

    def statement_DeclBuffer(self, node: Any) -> None:
        buffer, dtype = node.buffer, str(node.buffer.ty.dtype)
        source, offset = self.pointer(node.data)
        origin = self.storage(source)
        shape = tuple(buffer.ty.shape)
        if origin.space == "global":
            text = f"S.view_global({origin.name}, {NUMPY[dtype]}, {offset.text})"
            name = self.at_depth(buffer.name, text, offset.depth)
            strides = tuple(buffer.ty.strides or ())
            self.buffers[buffer] = Storage("global", name, buffer.name, shape, dtype, 0, strides)
            self.global_views[buffer] = self.global_views.get(source, source)
            return
        if origin.space != "shared" or offset.low is None or offset.low != offset.high:
            raise Unsupported(f"a view of {origin.space} memory at a run-time offset", self.span)
        self.granule = min(self.granule, BYTES[dtype])
        self.buffers[buffer] = Storage("shared", self.fresh(buffer.name), buffer.name, shape, dtype, offset.low)

    def statement_Bind(self, node: Any) -> None:
        value = self.expression(node.value)
        if not value.pure:
            # a register load is a view: copy it, or a later store would change the variable
            copied = f"np.array({value.text})" if value.axes else value.text
            name = self.assign(node.var.name, copied)
            value = Value(name, value.dtype, value.axes, self.depth, True, True, value.low, value.high)
        elif not value.atom:
            name = self.at_depth(node.var.name, value.text, value.depth)
            value = Value(name, value.dtype, value.axes, value.depth, True, True, value.low, value.high)
        self.names[node.var] = value

    def statement_BufferStore(self, node: Any) -> None:
        storage, indices = self.storage(node.buffer), list(node.indices)
        if self.checks:
            self._count(node.value)
        value = node.value
        in_place = (pe.Add, pe.Sub, pe.Mul)
        if storage.space == "local" and self.mask is None and isinstance(value, in_place) and is_float(dtype_of(value)):
            a, b = self.expression(value.a), self.expression(value.b)
            function = {pe.Add: "np.add", pe.Sub: "np.subtract", pe.Mul: "np.multiply"}[type(value)]
            operator = {pe.Add: "+", pe.Sub: "-", pe.Mul: "*"}[type(value)]
            result = self.make(f"({a.text} {operator} {b.text})", dtype_of(value), a, b)
            out = None if result.atom else f"{function}({a.text}, {b.text}"
            self._store_register(storage, indices, result.text, out)
            return
        self.store(node.buffer, indices, self.expression(value))

    def _count(self, expression: Any) -> None:
        """Count the arithmetic of a stored value: one call with the number of lanes that run it."""
        kinds = operations(expression)
        if kinds:
            repeats = 1
            for axis in self.vectors.values():
                repeats *= axis.extent
            self.emit(f"S.count_operations({self.tally(kinds)}, {repeats}, {self.mask})")

    def tally(self, kinds: tuple[tuple[str, int], ...]) -> int:
        if kinds not in self.tallies:
            self.tallies[kinds] = len(self.tallies)
        return self.tallies[kinds]

    # ---- jumps ----
    def statement_Break(self, node: Any) -> None:
        self.jump(True)

    def statement_Continue(self, node: Any) -> None:
        self.jump(False)

    def jump(self, leave: bool) -> None:
        loop = self.loops[-1] if self.loops else None
        if loop is None:
            raise Unsupported("break or continue outside a loop", self.span)
        self.emit(f"{loop.gone} = S.plus({loop.gone}, {self.mask})")
        if leave:
            self.emit(f"{loop.broken} = S.plus({loop.broken}, {self.mask})")

    def statement_Evaluate(self, node: Any) -> None:
        name = getattr(getattr(node.value, "op", None), "name", "")
        if name in ("tirx.break_loop", "tirx.continue_loop"):
            self.jump(name == "tirx.break_loop")
        else:
            super().statement_Evaluate(node)

    # ---- loops ----
    def statement_For(self, node: Any) -> None:
        if node.step is not None and constant(node.step) != 1:
            raise Unsupported("a loop step other than 1", self.span)
        if constant(node.extent) == 1 and not has_jump(node.body):
            self.names[node.loop_var] = self.expression(node.min)
            self.statement(node.body)
        elif not has_jump(node.body) and runs_as_axis(node, self.buffers.get, self.open_vectors, self.aliased):
            self._vector_loop(node)
        else:
            self._python_loop(node)

    def _vector_loop(self, node: Any) -> None:
        low, extent = self.expression(node.min), constant(node.extent)
        assert extent is not None
        if not self.open_vectors:
            self._next_position = nesting(node) - 1
        position = self._next_position
        dtype = dtype_of(node.loop_var)
        ones = ", None" * (position + 2)
        text = f"np.arange({extent}, dtype={NUMPY[dtype]})[:{ones}]"
        depth = self.function_depth
        axis = VectorAxis(position, extent, is_wide(node))
        name = self.at_depth("v", text, depth)
        value = Value(name, dtype, self.axis_bit(axis), depth, True, True, 0, extent - 1)
        outer = self.vectors.get(name)
        self.vectors[name] = axis
        self.open_vectors.append((node.loop_var, extent))
        self.largest_vector = max(self.largest_vector, self._open_extent())
        self._next_position -= 1
        if low.atom and low.text == "0":
            self.names[node.loop_var] = value
        else:
            self.shifted[node.loop_var] = (node.min, value)
            self.names[node.loop_var] = self.sum_of([(1, low), (1, value)], dtype)
        self.statement(node.body)
        self._next_position += 1
        self.open_vectors.pop()
        if outer is None:
            del self.vectors[name]
        else:
            self.vectors[name] = outer

    def _open_extent(self) -> int:
        total = 1
        for _, extent in self.open_vectors:
            total *= extent
        return total

    def _python_loop(self, node: Any) -> None:
        low, extent = self.expression(node.min), self.expression(node.extent)
        dtype = dtype_of(node.loop_var)
        name = self.fresh(node.loop_var.name)
        jumps, outer = has_jump(node.body), self.mask
        counter = name if low.axes == 0 else name + "_k"
        if not low.pure and not low.atom:
            low = Value(self.assign("low", low.text), low.dtype, low.axes, self.depth, False, True, low.low, low.high)
        start = low.text if low.axes == 0 else "0"
        short = extent.high is not None and extent.high <= SHORT_LOOP
        loop: OpenLoop | None = None
        if extent.axes or jumps:
            turns, live = self.assign("n", extent.text), self.fresh("m")
            loop = OpenLoop(self.fresh("gone"), self.fresh("broken")) if jumps else None
            if loop:
                self.emit(f"{loop.broken} = False")
                self.define(loop.broken)
            if extent.axes:  # the loop runs to the largest trip count; the counter stays uniform
                header = f"for {counter} in range({start}, {start} + S.most_turns({turns}, {outer})):"
            else:
                header = f"for {counter} in range({start}, {start} + {turns}):"
            self.open(counter, live)
            if not short:
                self.emit(f"S.take_step({self.site('counted loop')})")
            self.emit(
                f"{live} = S.both({outer}, {counter} - {start} < {turns})" if extent.axes else f"{live} = {outer}"
            )
            if loop:
                self.define(loop.gone)
                self.emit(f"{live} = S.minus({live}, {loop.broken})")
                self.emit(f"{loop.gone} = False")
            self.emit(f"if {live} is False: break")
            self.mask = live
        else:
            stop = extent.text if start == "0" else f"{start} + {extent.text}"
            if not short:
                turns = self.assign("n", extent.text)
                stop = turns if start == "0" else f"{start} + {turns}"
                self.emit(f"S.take_steps({turns}, {self.site('counted loop')})")
            header = f"for {counter} in range({start}, {stop}):"
            self.open(counter)
        if not self.loops and not extent.axes:
            done = counter if start == "0" else f"{counter} - {start}"
            self.emit(f"S.take_turn({self.outer_loops}, {done}, {extent.text})")
            self.outer_loops += 1
        self.loops.append(loop)
        known = low.low is not None and low.high is not None and extent.high is not None
        bounds = (low.low, low.high + max(extent.high - 1, 0)) if known else (None, None)  # type: ignore[operator]
        if low.axes:
            self.emit(f"{name} = {low.text} + {NUMPY[dtype]}({counter})")
            self.define(name)
        self.names[node.loop_var] = Value(name, dtype, low.axes, self.depth, True, True, *bounds)
        self.statement(node.body)
        self.loops.pop()
        self.mask = outer
        self.close(header)

    def statement_While(self, node: Any) -> None:
        outer, jumps = self.mask, has_jump(node.body)
        running = self.assign("running", str(outer))
        loop = OpenLoop(self.fresh("gone"), self.fresh("broken")) if jumps else None
        if loop:
            self.emit(f"{loop.broken} = False")
            self.define(loop.broken)
        live = self.fresh("m")
        registers = registers_of_turns(node, self.buffers)
        watch, step, kind = ("asking", "yield from ", "asking loop") if asks(node) else ("turns_of", "", "loop")
        question = self._question(node, running, loop.broken if loop else "False") if step else ""
        turns = None if registers is None else self.assign("turns", f"S.{watch}({self.site(kind)}{question})")
        self.open(live)
        self.emit(f"S.take_step({self.site(kind)})")
        if turns:
            state = [running, *([loop.broken] if loop else []), *(registers or [])]
            self.emit(f"{step}{turns}.turn_begins({', '.join(state)})")
        if loop:
            self.define(loop.gone)
            self.emit(f"{live}, {loop.gone} = S.minus({running}, {loop.broken}), False")
            self.emit(f"if {live} is False: break")
        else:
            self.emit(f"{live} = {running}")
        self.mask = live
        condition = self.truth(node.condition)
        if condition.axes:
            self.emit(f"{live} = {running} = S.both({live}, {condition.text})")
            self.emit(f"if {live} is False: break")
        else:
            self.emit(f"if not {condition.text}: break")
        self.loops.append(loop)
        self.statement(node.body)
        self.loops.pop()
        self.mask = outer
        self.close("while True:")
        if turns and step:
            self.emit(f"{turns}.ends()")

    def _question(self, node: Any, running: str, broken: str) -> str:
        """What tells whether a loop that only asks goes on, without another turn of it; "" where it does more."""
        found = leaving(node)
        if found is None:
            return ""
        self.peeking = True
        texts = [self.truth(condition).text for condition in found]
        self.peeking = False
        return f", lambda: S.goes_on(({', '.join(texts)},), {running}, {broken})"

    # ---- conditions ----
    def statement_IfThenElse(self, node: Any) -> None:
        condition, outer = self.truth(node.condition), self.mask
        cases = ((node.then_case, "both"), (node.else_case, "without"))
        if condition.axes == 0:
            self.count_kept_store(node, condition, self.mask)
            text = condition.text if condition.atom or node.else_case is None else self.assign("c", condition.text)
            # Both suites are written before either is placed: what the second one hoists must not come between them.
            suites = []
            for case in (node.then_case, node.else_case):
                if case is not None:
                    self.open()
                    self.statement(case)
                    suites.append(self.suites.pop())
            for header, suite in zip((f"if {text}:", "else:"), suites):
                self.suites[-1].lines.append(Nested(header, suite.lines))
            return
        if condition.axes == T_AXIS and condition.pure and waits(node):
            self._fork(node, condition)
            return
        name = condition.text if condition.atom else self.assign("c", condition.text)
        for case, join in cases:
            if case is None:
                continue
            self.mask = self.assign("m", f"S.{join}({outer}, {name})")
            self.count_kept_store(node, condition, outer)
            self.open()
            self.statement(case)
            self.close(f"if {self.mask} is not False:")
            self.mask = outer

    def _fork(self, node: Any, condition: Value) -> None:
        """Each branch becomes a generator function; what it uses from outside is passed, cut to its threads."""
        outer, branches = self.mask, []
        taken = ((node.then_case, condition.text), (node.else_case, f"np.logical_not({condition.text})"))
        for case, test in taken:
            if case is None:
                continue
            function = self.fresh("role")
            self.suites.append(Suite(function=True))
            loops, self.loops = self.loops, []
            self.roles += 1
            self.statement(case)
            self.roles -= 1
            self.loops = loops
            suite = self.suites.pop()
            visible = self.names_from_outside(suite.lines)
            inner = suite.lines if suite.lines else ["pass"]
            self.suites[-1].lines.append(
                Nested(f"def {function}({', '.join(['S', *visible])}):", ["if False: yield", *inner])
            )
            branches.append(f"({function}, {test}, ({''.join(name + ', ' for name in visible)}))")
        self.mask = outer
        self.emit(f"yield from S.fork(({', '.join(branches)},))")

    def names_from_outside(self, lines: list[Any]) -> list[str]:
        """Names that the lines of a function use; it is given them, cut to its threads, the mask among them."""
        words = set(_words(lines))
        visible = sorted({name for enclosing in self.suites for name in enclosing.names} & words - {"S"})
        self.tracked |= {name.removesuffix("_state") for name in visible if name.endswith("_state")}
        return visible


def _words(lines: list[Any]) -> list[str]:
    """Identifiers of a suite that is not rendered yet."""
    found: list[str] = []
    for line in lines:
        if isinstance(line, Nested):
            found += re.findall(r"[A-Za-z_]\w*", line.header) + _words(line.lines)
        else:
            found += re.findall(r"[A-Za-z_]\w*", getattr(line, "line", line))
    return found
