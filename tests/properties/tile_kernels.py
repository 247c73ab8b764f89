"""Random kernels over tiles: parallel loops, copies, reductions, scans, atomics, products in software pipelines.

`TileKernel(source)` has the text and the arguments of some launches.  Statements outside of parallel loops give every
thread the same, and an iteration of a parallel loop touches nothing that another one writes.
"""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
from properties.parallel_loops import ParallelLoop
from properties.tile_products import Products
from properties.typed_expressions import FLOATS, INTEGERS, MACROS, SMALL, WRAPPING, Expressions, Memory, Scope

SHAPES = ((8, 16), (16, 16), (4, 32), (13, 5), (1, 40), (32, 4), (6, 10), (3, 64))
THREADS = (32, 64, 128, 128, 96, 256, 48)
SCALARS = ((3, 5), (0, 1), (5, -3), (1, 2))


class TileKernel(Expressions):
    """text: of the cell.  launches: (tensors, scalars, symbols) of each launch, new arrays at every call."""

    def __init__(self, source: int | random.Random):
        super().__init__(random.Random(source) if isinstance(source, int) else source)
        self.lines: list[str] = []
        self.count = 0
        self.rows, self.columns = self.pick(*SHAPES)
        self.threads = self.pick(*THREADS)
        self.blocks = self.pick(1, 1, 1, 2, 3)
        self.floats = self.pick(*FLOATS)
        self.integers = self.pick(*INTEGERS)
        self.dtypes_here = ("int32", self.integers, self.floats, "float32")
        self.symbolic = self.chance(0.4)
        self.scalars: list[tuple[str, str, int]] = []  # names that are bound again and again
        self.turns: list[tuple[str, str, int]] = []  # variables of the loops around
        self.tiles: list[Memory] = []
        self.inputs = [
            Memory("A", (self.rows, self.columns), self.floats, "global", 8, True),
            Memory("B", (self.rows, self.columns), self.pick(*self.dtypes_here), "global", 8, True),
            Memory("I", (self.columns,), "int32", "global", 8, True),
        ]
        if self.symbolic:
            shape, dtype = (self.rows, self.columns), self.pick(*self.dtypes_here)
            self.inputs.append(Memory("D", shape, dtype, "global", 8, True, ragged=True))
        self.parameters: list[tuple[Memory, int | None]] = []  # with the largest value of what goes in
        self.text = self._text()

    # -- names -----------------------------------------------------------------------------------------------------
    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def scope(self) -> Scope:
        numbers = [*self.scalars, *self.turns, ("n", "int32", 5), ("m", "int32", 5)]
        if self.blocks > 1:
            numbers.append(("bx", "int32", 3))
        return Scope([], numbers, [*self.tiles_to_read(), *self.inputs], {})

    def tiles_to_read(self) -> list[Memory]:
        return [one for one in self.tiles if one.ready]

    def uniform(self) -> Scope:
        """What statements outside of parallel loops may read; fragments and local arrays belong to threads."""
        scope = self.scope()
        scope.memories = [one for one in scope.memories if one.memory in ("global", "shared")]
        return scope

    def of_names(self) -> Scope:
        """What the condition of a loop may read that its body may leave: no memory that threads exchange data through."""
        scope = self.uniform()
        scope.memories = [one for one in scope.memories if one.memory == "global"]
        return scope

    # -- the whole text --------------------------------------------------------------------------------------------
    def _text(self) -> str:
        self._allocate()
        for _ in range(self.random.randint(3, 7)):
            self.statement(2, 0)
        self._results()
        ragged = f"(R, {self.columns})"
        parameters = [
            f'{one.name}: T.Tensor({ragged if one.ragged else one.shape}, "{one.dtype}")' for one in self.inputs
        ]
        parameters += [f'{one.name}: T.Tensor({one.shape}, "{one.dtype}")' for one, _ in self.parameters]
        head = ["import tilelang.language as T", *(['R = T.dynamic("R")'] if self.symbolic else []), MACROS]
        launch = f"    with T.Kernel({self.blocks}, threads={self.threads}) as bx:"
        definition = f"def k({', '.join(parameters)}, n: T.int32, m: T.int32):"
        return "\n".join([*head, "@T.prim_func", definition, launch, *self.lines]) + "\n"

    def _allocate(self) -> None:
        for name, dtype in (("x", "int32"), ("y", "int32"), ("f", "float32"), ("g", self.floats), ("h", self.integers)):
            value, _ = self.fitted(*self.number(dtype, Scope([], [("n", "int32", 5), ("m", "int32", 5)]), 1), dtype)
            form = self.pick(f"{name} = {value}", f"{name}: T.{dtype} = {value}")
            if self.chance(0.25):
                form = f'{name} = T.alloc_var("{dtype}", init={self.literal(dtype)[0]})'
            self.put(2, form)
            self.scalars.append((name, dtype, 2**32 if dtype not in ("int32", "int64", *FLOATS) else SMALL))
        for at in range(self.random.randint(2, 4)):
            dtype, memory = self.pick(*self.dtypes_here), self.pick("shared", "fragment", "fragment")
            self.tile(f"t{at}", (self.rows, self.columns), dtype, memory)
        for at, extent in enumerate((self.rows, self.columns)):
            self.tile(f"v{at}", (extent,), self.pick(*self.dtypes_here), self.pick("fragment", "fragment", "shared"))
        if self.chance(0.5):
            self.tile("w", (4,), self.pick(*self.dtypes_here), "local")

    def tile(self, name: str, shape: tuple[int, ...], dtype: str, memory: str, ready: bool = True) -> Memory:
        one = Memory(name, shape, dtype, memory)
        self.put(2, f'{name} = T.alloc_{memory}({shape}, "{dtype}")')
        if ready and memory == "local":
            self.put(2, f"for c in T.unroll({shape[0]}):")
            self.put(3, f"{name}[c] = {self.literal(dtype)[0] if dtype in FLOATS else 'c'}")
        elif ready:
            self.first_write(2, one)
        self.tiles.append(one)
        return one

    def first_write(self, indent: int, one: Memory) -> None:
        same = [other for other in self.inputs if other.shape == one.shape and not other.ragged]
        kind = self.pick("clear", "fill", "loop", *["copy", "copy"] * bool(same))
        if kind == "copy" and self._may_copy(same[0], one):
            self.put(indent, f"T.copy({self.pick(*same).name}, {one.name})")
        elif kind == "fill":
            value = self.random.randrange(5) if one.dtype not in FLOATS else self.literal(one.dtype)[0]
            self.put(indent, f"T.fill({one.name}, {value})")
        elif kind == "loop":
            self.elementwise(indent, one, ready=False)
        else:
            self.put(indent, f"T.clear({one.name})")

    def _may_copy(self, source: Memory, target: Memory) -> bool:
        """What the source holds is small, or wraps in the target too; a float is no integer."""
        if source.dtype in FLOATS:
            return target.dtype in FLOATS
        if source.memory == "global" or source.dtype not in WRAPPING:
            return True
        return target.dtype in WRAPPING or (source.dtype in ("int8", "uint8") and target.dtype != "float16")

    def _results(self) -> None:
        """Every tile and name leaves what it has."""
        for one in self.tiles:
            if one.memory == "local":
                continue
            out = Memory(f"{one.name}_out", (self.blocks, *one.shape), one.dtype, "global")
            self.parameters.append((out, None))
            index = ", ".join(["bx", *(":" for _ in one.shape)])
            self.put(
                2,
                self.pick(
                    f"T.copy({one.name}, {out.name}[{index}])",
                    f"T.copy({one.name}, {out.name}[{index.replace(':', '0')}])",
                ),
            )
        for name, dtype, _ in self.scalars:
            self.parameters.append((Memory(f"{name}_out", (self.blocks,), dtype, "global"), None))
            self.put(2, f"{name}_out[bx] = {name}")
        for one in self.tiles:
            if one.memory == "local":
                self.parameters.append(
                    (Memory(f"{one.name}_out", (self.blocks, *one.shape), one.dtype, "global"), None)
                )
                self.put(2, f"for c in range({one.shape[0]}):")
                self.put(3, f"{one.name}_out[bx, c] = {one.name}[c]")

    # -- statements of the block -----------------------------------------------------------------------------------
    def statement(self, indent: int, depth: int) -> None:
        simple = ["elementwise"] * 4 + ["move", "move", "scalar", "scalar", "reduce", "scan", "atomic", "local", "fill"]
        simple += ["pair", "transpose", "fragment", "quantified"]
        nested = ["branch", "serial", "serial", "compile_time", "turns", "pipeline", "pipeline"] if depth < 2 else []
        whole = ["product", "product"] if depth == 0 else []
        getattr(self, "put_" + self.pick(*simple, *nested, *whole))(indent, depth)

    def block(self, indent: int, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth)

    def put_elementwise(self, indent: int, depth: int) -> None:
        one = self.pick(*[tile for tile in self.tiles if tile.memory != "local"])
        self.elementwise(indent, one)

    def put_fill(self, indent: int, depth: int) -> None:
        one = self.pick(*[tile for tile in self.tiles if tile.memory != "local"])
        value, _ = self.fitted(*self.number(one.dtype, self.uniform(), 1), one.dtype)
        self.put(indent, f"T.fill({one.name}, {value})")

    def put_scalar(self, indent: int, depth: int) -> None:
        name, dtype, _ = self.pick(*self.scalars)
        value, limit = self.number(dtype, self.uniform())
        kind = self.pick("set", "set", "augment", "branch")
        if kind == "augment":
            p, more = self.number(dtype, self.uniform(), 1)
            operator = self.pick("+", "-", "*", *(["|", "^", "&"] if dtype not in FLOATS else []))
            p, more = self.fitted(p, more, dtype)
            self.put(indent, f"{name} {operator}= {p}")
            value, limit = name, SMALL * SMALL
        if kind == "branch":
            self.put(indent, f"if {self.condition(self.uniform())}:")
            indent += 1
        self.put(indent, f"{name} = {self.fitted(value, limit, dtype)[0]}")

    def put_pair(self, indent: int, depth: int) -> None:
        x, y = self.random.sample(["x", "y"], 2)
        value = self.fitted(*self.number("int32", self.uniform(), 1), "int32")[0]
        self.put(indent, self.pick(f"{x}, {y} = {y}, {x}", f"{x}, {y} = {y}, {value}", f"({x}, {y}) = [{value}, {x}]"))

    def put_local(self, indent: int, depth: int) -> None:
        """Per-thread arrays outside of parallel loops, where all threads do the same."""
        own = [tile for tile in self.tiles if tile.memory == "local"]
        if not own:
            self.put_scalar(indent, depth)
            return
        one, variable = self.pick(*own), self.fresh("c")
        self.put(
            indent, f"for {variable} in {self.pick('range(4)', 'T.unroll(4)', 'T.vectorized(4)', 'T.serial(0, 4, 2)')}:"
        )
        scope = self.uniform()
        scope.memories.append(one)
        scope.indices = [(variable, 4)]
        scope.own = {one.name: variable}
        self.put(indent + 1, f"{one.name}[{variable}] = {self.fitted(*self.number(one.dtype, scope, 2), one.dtype)[0]}")

    def put_fragment(self, indent: int, depth: int) -> None:
        """An element of a fragment by itself."""
        tiles = [tile for tile in self.tiles if tile.memory == "fragment"]
        if not tiles:
            self.put_scalar(indent, depth)
            return
        one = self.pick(*tiles)
        place = f"{one.name}[{', '.join(str(self.random.randrange(n)) for n in one.shape)}]"
        scope = self.uniform()
        self.put(indent, f"{place} = {self.fitted(*self.number(one.dtype, scope, 1), one.dtype)[0]}")

    def put_quantified(self, indent: int, depth: int) -> None:
        shared = [tile for tile in self.tiles if tile.memory == "shared"]
        if not shared:
            self.put_scalar(indent, depth)
            return
        self.put(indent, f"x = T.{self.pick('any_of', 'all_of')}({self.pick(*shared).name}) * 3 + y % 5")

    def put_branch(self, indent: int, depth: int) -> None:
        self.put(indent, f"if {self.condition(self.uniform())}:")
        self.block(indent + 1, depth + 1)
        if self.chance(0.3):
            self.put(indent, f"elif {self.condition(self.uniform())}:")
            self.block(indent + 1, depth + 1)
        if self.chance(0.5):
            self.put(indent, "else:")
            self.block(indent + 1, depth + 1)

    def put_serial(self, indent: int, depth: int) -> None:
        variable = self.fresh("k")
        head = self.pick(
            "range(n)", "range(3)", "T.serial(m)", "T.serial(1, 6, 2)", "range(4, 0, -2)", "T.unroll(2)", "range(x % 3)",
            "T.serial(0, n, m * m + 1)", "T.Pipelined(3, num_stages=2)", "T.Pipelined(n, num_stages=3)",
        )  # fmt: skip
        self.put(indent, f"for {variable} in {head}:")
        self.inside(indent + 1, depth, (variable, "int32", 5), "Pipelined" not in head)

    def inside(self, indent: int, depth: int, number: tuple[str, str, int], may_leave: bool) -> None:
        """The body of a loop, which may read its variable and not bind it."""
        self.turns.append(number)
        if may_leave and self.chance(0.3):
            self.put(indent, f"if {self.condition(self.uniform())}:")
            self.put(indent + 1, self.pick("break", "continue"))
        self.block(indent, depth + 1)
        self.turns.pop()

    def put_turns(self, indent: int, depth: int) -> None:
        """A loop with a counter."""
        count = self.fresh("i")
        self.put(indent, f"{count} = {self.pick(0, 1, 'n % 2')}")
        self.put(
            indent,
            f"while {count} < {self.pick(3, 'n', 'm')}{self.pick('', f' and {self.condition(self.of_names())}')}:",
        )
        self.put(indent + 1, f"{count} += 1")
        self.inside(indent + 1, depth, (count, "int32", 5), True)

    def put_compile_time(self, indent: int, depth: int) -> None:
        tiles = [tile for tile in self.tiles if len(tile.shape) == 2]
        kind = self.pick("numbers", "tiles", "zip")
        if kind == "numbers" or len(tiles) < 2:
            variable = self.fresh("c")
            items = self.pick(
                "(1, 2)", "[v * 2 for v in range(2)]", "reversed((3, 1))", "{4: 0, 2: 1}", "(v for v in (2, 5))"
            )
            self.put(indent, f"for {variable} in {items}:")
            self.inside(indent + 1, depth, (f"T.int32({variable})", "int32", 5), False)
            return
        first, second = self.random.sample(tiles, 2)
        if first.dtype != second.dtype:
            second = first
        name = self.fresh("each")
        names = f"{first.name}, {second.name}" if second is not first else f"{first.name},"
        head = f"for {name} in ({names}):" if kind == "tiles" else f"for at{name}, {name} in enumerate([{names}]):"
        self.put(indent, head)
        memory = "shared" if "shared" in (first.memory, second.memory) else "fragment"
        alias = Memory(name, first.shape, first.dtype, memory)
        hidden = [one for one in self.tiles if one not in (first, second)]
        before, self.tiles = self.tiles, [*hidden, alias]
        self.elementwise(indent + 1, alias)
        self.tiles = before

    # -- tile operations -------------------------------------------------------------------------------------------
    def put_move(self, indent: int, depth: int) -> None:
        tiles = [tile for tile in self.tiles if len(tile.shape) == 2]
        target = self.pick(*tiles)
        sources = [one for one in (*tiles, *self.inputs[:2]) if one is not target and self._may_copy(one, target)]
        if not sources:
            self.put_elementwise(indent, depth)
            return
        source = self.pick(*sources)
        rows, columns = self.random.randint(1, self.rows), self.random.randint(1, self.columns)
        row, column = (
            self.random.randint(0, whole - part) for whole, part in ((self.rows, rows), (self.columns, columns))
        )
        other_row = self.random.randint(0, self.rows - rows)
        name = source.name
        self.put(indent, self.pick(
            f"T.copy({name}, {target.name})",
            f"T.copy({source.name}[{row}:{row + rows}, {column}:{column + columns}], {target.name}[{other_row}:{other_row + rows}, {column}:{column + columns}])",
            f"T.copy({source.name}[{row}, 0:{columns}], {target.name}[{other_row}, {self.columns - columns}:])",
            f"T.copy({source.name}[{row}:{row + rows}, {column}], {target.name}[{other_row}:{other_row + rows}, {self.columns - 1}])",
            *([f"T.copy({source.name}[n % 3 - 1, {column}], {target.name})"] * 2 if source.memory == "global" and self.rows > 1 else []),
        ))  # fmt: skip

    def put_transpose(self, indent: int, depth: int) -> None:
        tiles = [tile for tile in self.tiles if len(tile.shape) == 2 and tile.memory == "shared"]
        if len(tiles) < 2 or self.rows != self.columns or tiles[0].dtype != tiles[1].dtype:
            self.put_move(indent, depth)
            return
        self.put(indent, f"T.transpose({tiles[0].name}, {tiles[1].name})")

    def put_reduce(self, indent: int, depth: int) -> None:
        """Into a row or column; of floats whose sums are exact."""
        tiles = [tile for tile in self.tiles if len(tile.shape) == 2]
        vectors = [tile for tile in self.tiles if len(tile.shape) == 1 and tile.memory != "local"]
        source, at = self.pick(*tiles), self.random.randrange(2)
        target = vectors[1 - at]
        if source.dtype != target.dtype and not (source.dtype in FLOATS and target.dtype == "float32"):
            self.put_elementwise(indent, depth)
            return
        bitwise = ["bitand", "bitor", "bitxor"] if source.dtype in INTEGERS else []
        absolute = ["absmax", "abssum"] if source.dtype not in WRAPPING else []
        kind = self.pick("sum", "sum", "max", "min", *bitwise, *absolute)
        if kind in ("sum", "abssum") and source.dtype in FLOATS:
            self.elementwise(indent, source, whole=True)
        clear = self.chance(0.7)
        if not clear and kind in ("sum", "abssum") and target.dtype in FLOATS:
            self.elementwise(indent, target, whole=True)
        options = "" if clear else ", clear=False"
        self.put(indent, f"T.reduce_{kind}({source.name}, {target.name}, dim={self.pick(at, at - 2)}{options})")
        self.limit_again(indent, target)

    def limit_again(self, indent: int, one: Memory) -> None:
        """Keeps what memory holds small."""
        if one.dtype in ("int32", "int64", *FLOATS):
            indices = [self.fresh("i") for _ in one.shape]
            self.put(indent, f"for {', '.join(indices)} in T.Parallel({', '.join(map(str, one.shape))}):")
            place = f"{one.name}[{', '.join(indices)}]"
            self.put(indent + 1, f"{place} = {self.fitted(place, 10**9, one.dtype)[0]}")

    def put_scan(self, indent: int, depth: int) -> None:
        shared = [tile for tile in self.tiles if tile.memory in ("shared", "fragment") and tile.dtype not in ("uint8",)]
        if not shared:
            self.put_elementwise(indent, depth)
            return
        one = self.pick(*shared)
        kind = self.pick("cumsum", "cummax")
        if kind == "cumsum" and one.dtype in FLOATS:
            self.elementwise(indent, one, whole=True, limit=2)
        dim = self.random.randrange(len(one.shape))
        self.put(indent, f"T.{kind}({one.name}, dim={dim}, reverse={self.chance(0.4)})")
        self.limit_again(indent, one)

    def put_atomic(self, indent: int, depth: int) -> None:
        """Counters in shared memory, whose order does not matter."""
        name, dtype = self.fresh("q"), self.pick("int32", "int32", "uint32", "float32")
        one = Memory(name, (self.pick(1, 5, 8),), dtype, "shared", 10**6)
        self.put(indent, f'{name} = T.alloc_shared({one.shape}, "{dtype}")')
        self.put(indent, f"T.fill({name}, {self.random.randrange(3)})")
        indices = [self.fresh("i") for _ in range(2)]
        self.put(indent, f"for {', '.join(indices)} in T.Parallel({self.rows}, {self.columns}):")
        scope = self.scope()
        scope.indices = list(zip(indices, (self.rows, self.columns)))
        if self.chance(0.4):
            self.put(indent + 1, f"if {self.condition(scope)}:")
            self.put(indent + 2, self.pick("continue", "pass"))
        kind = self.pick("add", "add", "max", "min") if dtype != "float32" else "add"
        self.put(
            indent + 1, f"T.atomic_{kind}({name}[{self.index(one.shape[0], scope)}], {self.whole(dtype, scope, 1)})"
        )
        vector = next(tile for tile in self.tiles if len(tile.shape) == 1 and tile.memory != "local")
        i = self.fresh("i")
        self.put(indent, f"for {i} in T.Parallel({vector.shape[0]}):")
        value = f"{name}[{i} % {one.shape[0]}]"
        text, _ = self.cast(
            *((f"({value} % 89)", dtype, 89) if dtype != "float32" else (f"T.clamp({value}, -60.0, 60.0)", dtype, 60)),
            vector.dtype,
        )
        self.put(indent + 1, f"{vector.name}[{i}] = {text}")

    # -- loops over elements ---------------------------------------------------------------------------------------
    def elementwise(self, indent: int, one: Memory, ready: bool = True, whole: bool = False, limit: int = 8) -> None:
        """A parallel loop that writes a tile."""
        ParallelLoop(self, one, ready, whole, limit).put(indent)

    def put_pipeline(self, indent: int, depth: int) -> None:
        Products(self).put_streams(indent)

    def put_product(self, indent: int, depth: int) -> None:
        Products(self).put_product(indent)

    # -- arguments -------------------------------------------------------------------------------------------------
    def launches(self) -> list[tuple[dict[str, np.ndarray], dict[str, int], dict[str, int]]]:
        found = []
        for at, (n, m) in enumerate(SCALARS):
            draw = np.random.default_rng(at)
            rows = max(1, self.rows + (0, -3, 2, -1)[at])
            tensors = {}
            for one in self.inputs:
                shape = (rows, *one.shape[1:]) if one.ragged else one.shape
                low = 0 if one.dtype[0] == "u" or one.name == "I" else -8
                values = draw.integers(low, 9, shape)
                tensors[one.name] = values.astype(getattr(ml_dtypes, one.dtype, one.dtype))
            for one, limit in self.parameters:
                low = 0 if one.dtype[0] == "u" else -(limit or 0)
                values = draw.integers(low, limit + 1, one.shape) if limit else np.zeros(one.shape)
                tensors[one.name] = values.astype(getattr(ml_dtypes, one.dtype, one.dtype))
            found.append((tensors, {"n": n, "m": m}, {"R": rows}))
        return found
