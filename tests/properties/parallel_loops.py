"""Random loops over the elements of a tile: `T.Parallel` in its forms, and what an iteration does by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from properties.typed_expressions import FLOATS, SMALL, WRAPPING, Memory, Scope

if TYPE_CHECKING:
    from properties.tile_kernels import TileKernel


class ParallelLoop:
    """A loop that writes `target`, perhaps a second tile too.

    ready: the target has been written before.  whole: what is written are integers up to `limit`.
    """

    def __init__(self, kernel: TileKernel, target: Memory, ready: bool, whole: bool, limit: int):
        self.kernel, self.target, self.ready, self.whole, self.limit = kernel, target, ready, whole, limit
        self.scratch: list[Memory] = []
        self.may_continue = ready

    def put(self, indent: int) -> None:
        kernel = self.kernel
        indices, body, place = self._heads(indent)
        scope = kernel.scope()
        scope.indices = indices
        written = {self.target.name: place}
        second = [
            one
            for one in kernel.tiles
            if one is not self.target and one.shape == self.target.shape and one.memory != "local" and one.ready
        ]
        more = kernel.pick(*second) if second and kernel.chance(0.2) and not self.whole else None
        if more is not None:
            written[more.name] = place
        scope.own = written
        if not self.ready:
            scope.memories = [one for one in scope.memories if one is not self.target]
        scope.memories = [one for one in scope.memories if one.memory != "local"]
        scope = self._start(body, scope)
        if more is not None:
            kernel.put(
                body, f"{more.name}[{place}] = {kernel.fitted(*kernel.number(more.dtype, scope), more.dtype)[0]}"
            )
        self._store(body, scope, place)
        for one in self.scratch:
            kernel.put(indent, f"for c in T.unroll({one.shape[0]}):")
            kernel.put(indent + 1, f"{one.name}[c] = {kernel.literal(one.dtype)[0]}")

    def _heads(self, indent: int) -> tuple[list[tuple[str, int]], int, str]:
        """The loop variables with their extents, the indent of the body, and the index of the element."""
        kernel, shape = self.kernel, self.target.shape
        i, j = kernel.fresh("i"), kernel.fresh("j")
        if len(shape) == 1:
            extent = shape[0]
            form = kernel.pick("plain", "plain", "turned", "rotated", *["part", "dynamic", "split"] * self.ready)
            if form == "part" and extent > 1:
                first = kernel.random.randint(1, extent - 1)
                kernel.put(indent, f"for {i} in T.Parallel({extent - first}):")
                return [(i, extent - first)], indent + 1, f"{i} + {first}"
            if form == "dynamic":
                kernel.put(indent, f"for {i} in T.Parallel(T.min(n + 1, {extent})):")
                return [(i, extent)], indent + 1, i
            if form == "split" and extent % 4 == 0:
                kernel.put(indent, f"for {i} in T.Parallel({extent // 4}):")
                inner = kernel.pick("T.vectorized(4)", "range(4)", "T.unroll(4)")
                self.may_continue = "vectorized" not in inner
                kernel.put(indent + 1, f"for {j} in {inner}:")
                return [(i, extent // 4), (j, 4)], indent + 2, f"{i} * 4 + {j}"
            kernel.put(indent, f"for {i} in T.Parallel({extent}):")
            place = {"turned": f"{extent - 1} - {i}", "rotated": f"({i} + 3) % {extent}"}.get(form, i)
            return [(i, extent)], indent + 1, place
        rows, columns = shape
        forms = ["plain", "plain", "plain", "columns_first", "flat", "rows", "nested", "turned"]
        form = kernel.pick(*forms, *["part", "dynamic", "grid"] * self.ready)
        place, body = f"{i}, {j}", indent + 1
        if form == "columns_first":
            kernel.put(indent, f"for {j}, {i} in T.Parallel({columns}, {rows}):")
        elif form == "flat":
            at = kernel.fresh("l")
            kernel.put(indent, f"for {at} in T.Parallel({rows * columns}):")
            kernel.put(body, f"{i} = {at} // {columns}")
            kernel.put(body, f"{j} = {at} % {columns}")
        elif form == "rows":
            kernel.put(indent, f"for {i} in {kernel.pick('range', 'T.serial', 'T.unroll')}({rows}):")
            kernel.put(body, f"for {j} in T.Parallel({columns}):")
            body += 1
        elif form == "nested":
            kernel.put(indent, f"for {i} in T.Parallel({rows}):")
            kernel.put(body, f"for {j} in {kernel.pick('T.Parallel', 'range', 'T.serial')}({columns}):")
            body += 1
        elif form == "part":
            part = kernel.random.randint(1, rows)
            first = kernel.random.randint(0, rows - part)
            kernel.put(indent, f"for {i}, {j} in T.Parallel({part}, {columns}):")
            return [(i, part), (j, columns)], body, f"{i} + {first}, {j}"
        elif form == "dynamic":
            kernel.put(indent, f"for {i}, {j} in T.Parallel(T.min(n, {rows}), {columns}):")
        elif form == "grid" and rows * columns <= 96:
            kernel.put(indent, f"for {i} in T.Parallel({rows}):")
            kernel.put(body, f"for {j} in T.serial({columns - 1}, -1, -1):")
            body += 1
        else:
            kernel.put(indent, f"for {i}, {j} in T.Parallel({rows}, {columns}):")
            if form == "turned":
                place = f"{rows - 1} - {i}, {j}"
        return [(i, rows), (j, columns)], body, place

    # -- an iteration ----------------------------------------------------------------------------------------------
    def _start(self, indent: int, scope: Scope) -> Scope:
        """Names of the iteration; what it does before it stores."""
        kernel = self.kernel
        names = []
        for stem in kernel.pick("", "p", "pq", "pqr"):
            name = kernel.fresh(stem)
            dtype = kernel.pick(*kernel.dtypes_here)
            value, _ = kernel.fitted(*kernel.number(dtype, scope), dtype)
            kernel.put(indent, f"{name} = {value}")
            names.append((name, dtype, 2**32 if dtype in WRAPPING else SMALL))
            scope = scope.with_numbers(names[-1])
        for _ in range(kernel.pick(0, 1, 1, 2) if names else 0):
            self._step(indent, scope, names, 0)
        own = [one for one in kernel.tiles if one.memory == "local"]
        if own and kernel.chance(0.25):
            one, c = own[0], kernel.fresh("c")
            inner = Scope([*scope.indices, (c, 4)], scope.numbers, scope.memories, {**scope.own, one.name: c})
            kernel.put(indent, f"for {c} in {kernel.pick('range(4)', 'T.unroll(4)', 'T.vectorized(4)')}:")
            kernel.put(indent + 1, f"{one.name}[{c}] = {kernel.fitted(*kernel.number(one.dtype, inner), one.dtype)[0]}")
            self.scratch.append(one)
            scope = Scope(scope.indices, scope.numbers, [*scope.memories, one], scope.own)
        if self.may_continue and kernel.chance(0.15):
            kernel.put(indent, f"if {kernel.condition(scope)}:")
            kernel.put(indent + 1, "continue")
        return scope

    def _step(self, indent: int, scope: Scope, names: list[tuple[str, str, int]], depth: int) -> None:
        kernel = self.kernel
        name, dtype, _ = kernel.pick(*names)
        kinds = ["set", "augment", "swap", "list"] + ["if", "loop", "while", "items"] * (depth < 2)
        kind = kernel.pick(*kinds)
        if kind == "augment":
            value, _ = kernel.fitted(*kernel.number(dtype, scope, 1), dtype)
            operators = ["+", "-", "*", *(["&", "|", "^", "%", "//", ">>"] if dtype not in FLOATS else [])]
            operator = kernel.pick(*operators)
            value = "2" if operator in ("%", "//", ">>") else value
            kernel.put(indent, f"{name} {operator}= {value}")
            kernel.put(indent, f"{name} = {kernel.fitted(name, SMALL * SMALL, dtype)[0]}")
        elif kind == "swap":
            same = [one for one in names if one[1] == dtype and one[0] != name]
            other = same[0][0] if same else name
            value, _ = kernel.fitted(*kernel.number(dtype, scope, 1), dtype)
            kernel.put(indent, f"{name}, {other} = {other}, {value}" if same else f"{name} = {value}")
        elif kind == "list":
            text = self._list(scope, dtype)
            kernel.put(indent, f"{name} = {kernel.fitted(text, SMALL * 9, dtype)[0]}")
        elif kind == "if":
            kernel.put(indent, f"if {kernel.condition(scope)}:")
            self._steps(indent + 1, scope, names, depth)
            if kernel.chance(0.4):
                kernel.put(indent, f"elif {kernel.condition(scope)}:")
                self._steps(indent + 1, scope, names, depth)
            if kernel.chance(0.4):
                kernel.put(indent, "else:")
                self._steps(indent + 1, scope, names, depth)
        elif kind in ("loop", "items"):
            turn = kernel.fresh("r")
            heads = ["range(3)", "range(n)", "range(m, -1, -2)", "T.serial(2)", "T.unroll(3)"]
            if kind == "items":
                heads = ["(1, 3)", "[v for v in range(4) if v != 2]", "zip((1, 2), (3, 4))", "range(5, 1, -2)"]
            head = kernel.pick(*heads)
            target = f"{turn}, {turn}_" if "zip" in head else turn
            kernel.put(indent, f"for {target} in {head}:")
            own = (f"T.int32({turn})", "int32", 5)
            if kind == "loop" and kernel.chance(0.3):
                kernel.put(indent + 1, f"if {kernel.condition(scope.with_numbers(own))}:")
                kernel.put(indent + 2, kernel.pick("break", "continue"))
            self._steps(indent + 1, scope.with_numbers(own), names, depth)
        elif kind == "while":
            count = kernel.fresh("u")
            kernel.put(indent, f"{count} = 0")
            kernel.put(indent, f"while {count} < {kernel.pick('3', 'n', '2')} and {kernel.condition(scope)}:")
            kernel.put(indent + 1, f"{count} += 1")
            self._steps(indent + 1, scope.with_numbers((count, "int32", 5)), names, depth)
        else:
            kernel.put(indent, f"{name} = {kernel.fitted(*kernel.number(dtype, scope), dtype)[0]}")

    def _steps(self, indent: int, scope: Scope, names: list[tuple[str, str, int]], depth: int) -> None:
        for _ in range(self.kernel.pick(1, 1, 2)):
            self._step(indent, scope, names, depth + 1)

    def _list(self, scope: Scope, dtype: str) -> str:
        """Values that are built while the kernel is built."""
        kernel = self.kernel
        p, q = (kernel.fitted(*kernel.number(dtype, scope, 1), dtype)[0] for _ in range(2))
        return kernel.pick(
            f"sum(v * {p} for v in (1, 2, 3))",
            f"sum([{p}, {q}, {p}])",
            f"max(v + {p} for v in (1, 2))",
            f"[{p} if v == 1 else {q} for v in range(3)][1]",
            f"sum(v * w for v, w in zip(({p}, {q}), (2, 1)))",
            f"[w - v for v, w in enumerate([{p}, {q}])][1]",
            f"min([{p}, {q}])",
            f"list(map(lambda v: v + {q}, ({p}, {p})))[0]",
            f"clip({p}, {q})",
        )

    def _store(self, indent: int, scope: Scope, place: str) -> None:
        kernel, target = self.kernel, self.target
        element = f"{target.name}[{place}]"
        if self.whole:
            kernel.put(indent, f"{element} = {kernel.whole(target.dtype, scope, 2, self.limit)}")
            return
        value, _ = kernel.fitted(*kernel.number(target.dtype, scope), target.dtype)
        kind = kernel.pick("set", "set", "set", *["augment", "branch", "both"] * self.ready, "both")
        if kind == "augment":
            kernel.put(indent, f"{element} {kernel.pick('+', '-', '*')}= {value}")
            kernel.put(indent, f"{element} = {kernel.fitted(element, SMALL * SMALL, target.dtype)[0]}")
        elif kind in ("branch", "both"):
            kernel.put(indent, f"if {kernel.condition(scope)}:")
            kernel.put(indent + 1, f"{element} = {value}")
            if kind == "both":
                other, _ = kernel.fitted(*kernel.number(target.dtype, scope), target.dtype)
                kernel.put(indent, "else:")
                kernel.put(indent + 1, f"{element} = {other}")
        else:
            kernel.put(indent, f"{element} = {value}")
