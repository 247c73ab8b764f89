"""Random software pipelines: products of small tiles whose sums are exact, and streams of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from properties.typed_expressions import FLOATS, Memory

if TYPE_CHECKING:
    from properties.tile_kernels import TileKernel

TURNS = 5  # at most
LARGEST = 3  # magnitude of the factors


class Products:
    def __init__(self, kernel: TileKernel):
        self.kernel = kernel

    def input(self, stem: str, shape: tuple[int, ...], dtype: str) -> Memory:
        one = Memory(self.kernel.fresh(stem), shape, dtype, "global", LARGEST, True)
        self.kernel.parameters.append((one, LARGEST))
        return one

    def allocate(self, indent: int, stem: str, shape: tuple[int, ...], dtype: str, memory: str) -> Memory:
        one = Memory(self.kernel.fresh(stem), shape, dtype, memory, 100, False, False)
        self.kernel.put(indent, f'{one.name} = T.alloc_{memory}({shape}, "{dtype}")')
        return one

    def turns(self) -> str:
        return self.kernel.pick("n", "n", "3", "4", "n % 3", "m", "1, n + 1", "0, 5", "T.min(n, 2)", "x % 4")

    def pipelined(self, indent: int, bounds: str) -> str:
        variable = self.kernel.fresh("ko")
        stages = self.kernel.pick(0, 1, 2, 2, 3, 3, 4)
        form = f"T.Pipelined({bounds}, num_stages={stages})"
        self.kernel.put(indent, f"for {variable} in {form}:")
        return variable

    # -- rows that flow by -----------------------------------------------------------------------------------------
    def put_streams(self, indent: int) -> None:
        """Rows copied ahead, changed in place, used, sometimes not copied at all."""
        kernel = self.kernel
        vectors = [one for one in kernel.tiles if one.shape == (kernel.columns,) and one.memory != "local"]
        rows = [one for one in kernel.inputs if one.name in "AB"]
        target = kernel.pick(*vectors)
        tiles = []
        for source in kernel.random.sample(rows, kernel.pick(1, 2)):
            one = self.allocate(
                indent, "s", (kernel.columns,), source.dtype, kernel.pick("shared", "shared", "fragment")
            )
            one.limit, one.ready = 8, True
            tiles.append((source, one))
            kernel.put(indent, f"T.clear({one.name})")
        ko = self.pipelined(indent, self.turns())
        kernel.turns.append((ko, "int32", 5))
        for source, one in tiles:
            row = kernel.pick(
                ko,
                ko,
                f"{ko} + 1",
                f"{kernel.rows - 1} - {ko}",
                f"I[{ko} % {kernel.columns}] % {kernel.rows}",
                f"(x + {ko}) % {kernel.rows}",
            )
            at = indent + 1
            if kernel.chance(0.2):
                kernel.put(at, f"if {kernel.condition(kernel.uniform())}:")
                at += 1
            kernel.put(at, f"T.copy({source.name}[{row}, {kernel.pick('0', '0', ':')}], {one.name})")
        kernel.tiles += [one for _, one in tiles]
        for _ in range(kernel.pick(0, 0, 1, 2)):
            kind = kernel.pick("in place", "scalar", "again", "elementwise")
            source, one = kernel.pick(*tiles)
            if kind == "in place":
                kernel.elementwise(indent + 1, one)
            elif kind == "again":
                kernel.put(indent + 1, f"T.copy({source.name}[{ko} % {kernel.rows}, 0], {one.name})")
            elif kind == "scalar":
                kernel.put_scalar(indent + 1, 2)
            else:
                kernel.elementwise(indent + 1, kernel.pick(*[tile for tile in kernel.tiles if tile.memory != "local"]))
        j = kernel.fresh("j")
        scope = kernel.scope()
        scope.memories, scope.indices = [one for _, one in tiles], [(j, kernel.columns)]
        at = indent + 1
        if kernel.chance(0.25):
            kernel.put(at, f"if {kernel.condition(kernel.uniform())}:")
            at += 1
        value, limit = kernel.number(target.dtype, scope)
        text = f"{target.name}[{j}] + {value}"
        kernel.put(at, f"for {j} in T.Parallel({kernel.columns}):")
        kernel.put(at + 1, f"{target.name}[{j}] = {kernel.fitted(f'({text})', limit + 101, target.dtype)[0]}")
        kernel.turns.pop()
        for _, one in tiles:
            kernel.tiles.remove(one)

    # -- products --------------------------------------------------------------------------------------------------
    def put_product(self, indent: int) -> None:
        kernel = self.kernel
        dtype = kernel.pick("float16", "float16", "bfloat16", "int8", "float32", "uint8")
        total = (
            "int32"
            if "int8" in dtype
            else kernel.pick("float32", "float32", dtype)
            if dtype == "float16"
            else "float32"
        )
        m, n, k = kernel.pick(16, 32, 64, 48), kernel.pick(8, 16, 32, 64), kernel.pick(16, 32, 64)
        if kernel.chance(0.1):
            m, n, k = kernel.pick(5, 20), kernel.pick(7, 24), kernel.pick(3, 40)
        ta, tb = kernel.chance(0.25), kernel.chance(0.3)
        depth = k * TURNS - kernel.pick(0, 0, 3, k + 1)  # the last tile may lie over the edge
        x = self.input("X", (depth, m) if ta else (m, depth), dtype)
        y = self.input("Y", (n, depth) if tb else (depth, n), dtype)
        xs = self.allocate(indent, "xs", (k, m) if ta else (m, k), dtype, "shared")
        ys = self.allocate(indent, "ys", (n, k) if tb else (k, n), dtype, "shared")
        acc = self.allocate(indent, "acc", (m, n), total, kernel.pick("fragment", "fragment", "fragment", "shared"))
        clearing = kernel.chance(0.15)
        turns = kernel.pick(self.turns(), f"T.ceildiv({depth}, {k})") if not clearing else "n + 1"
        conditional = kernel.chance(0.2)
        kernel.put(indent, f"T.clear({acc.name})")
        if conditional:
            kernel.put(indent, f"T.fill({xs.name}, 1)")
        ko = self.pipelined(indent, turns)
        kernel.turns.append((ko, "int32", 5))
        body, at = indent + 1, indent + 1
        if conditional:
            kernel.put(at, f"if {kernel.condition(kernel.uniform())}:")
            at += 1
        step = f"{ko} * {k}"
        kernel.put(at, f"T.copy({x.name}[{step}, 0], {xs.name})" if ta else f"T.copy({x.name}[0, {step}], {xs.name})")
        kernel.put(body, f"T.copy({y.name}[0, {step}], {ys.name})" if tb else f"T.copy({y.name}[{step}, 0], {ys.name})")
        self._between(body, xs, ys, acc)
        a, b = self._operand(body, xs), ys.name
        options = [f"transpose_{side}=True" for side, turned in (("A", ta), ("B", tb)) if turned]
        policy = kernel.pick("", "FullRow", "FullCol", "")
        options += [f"policy=T.GemmWarpPolicy.{policy}"] if policy else []
        options += [f"clear_accum={ko} == 0"] if clearing else []
        at = body
        if kernel.chance(0.15) and not clearing:
            kernel.put(at, f"if {kernel.condition(kernel.uniform())}:")
            at += 1
        kernel.put(at, f"T.gemm({', '.join([a, b, acc.name, *options])})")
        if kernel.chance(0.2):
            self._change(body, acc, 5)
        kernel.turns.pop()
        self._after(indent, acc)

    def _operand(self, indent: int, tile: Memory) -> str:
        if self.kernel.chance(0.8):
            return tile.name
        one = self.allocate(indent, "xf", tile.shape, tile.dtype, "fragment")
        self.kernel.put(indent, f"T.copy({tile.name}, {one.name})")
        return one.name

    def _change(self, indent: int, tile: Memory, limit: int = LARGEST) -> None:
        """Every element becomes another small integer."""
        kernel = self.kernel
        i, j = kernel.fresh("i"), kernel.fresh("j")
        scope = kernel.scope()
        place = f"{i}, {j}"
        scope.indices, scope.own = [(i, tile.shape[0]), (j, tile.shape[1])], {tile.name: place}
        own = Memory(tile.name, tile.shape, tile.dtype, tile.memory, 10**4)
        scope.memories = [own, *[one for one in scope.memories if one.memory != "local"]]
        kernel.put(indent, f"for {i}, {j} in T.Parallel({tile.shape[0]}, {tile.shape[1]}):")
        value = kernel.whole(tile.dtype, scope, 1, limit)
        if kernel.chance(0.4):
            kernel.put(indent + 1, f"if {kernel.condition(scope)}:")
            indent += 1
        kernel.put(indent + 1, f"{tile.name}[{place}] = {value}")

    def _between(self, indent: int, xs: Memory, ys: Memory, acc: Memory) -> None:
        """What stands between the copies and the product."""
        kernel = self.kernel
        kind = kernel.pick("nothing", "nothing", "nothing", "change", "scale", "row", "scalar", "other")
        if kind == "change":
            self._change(indent, kernel.pick(xs, ys))
        elif kind == "scale":
            i, j = kernel.fresh("i"), kernel.fresh("j")
            kernel.put(indent, f"for {i}, {j} in T.Parallel({acc.shape[0]}, {acc.shape[1]}):")
            kernel.put(indent + 1, f"{acc.name}[{i}, {j}] = {acc.name}[{i}, {j}] + {kernel.pick('1', i, 'n')}")
        elif kind == "row" and xs.dtype in FLOATS and acc.dtype == "float32":
            row = self.allocate(indent, "row", (ys.shape[0],), "float32", "fragment")
            wide = self.allocate(indent, "yf", ys.shape, "float32", "fragment")
            kernel.put(indent, f"T.copy({ys.name}, {wide.name})")
            kernel.put(indent, f"T.reduce_{kernel.pick('sum', 'max', 'absmax')}({wide.name}, {row.name}, dim=1)")
            i, j = kernel.fresh("i"), kernel.fresh("j")
            kernel.put(indent, f"for {i}, {j} in T.Parallel({acc.shape[0]}, {acc.shape[1]}):")
            kernel.put(indent + 1, f"{acc.name}[{i}, {j}] += {row.name}[({i} + {j}) % {ys.shape[0]}]")
        elif kind == "scalar":
            kernel.put_scalar(indent, 2)
        elif kind == "other":
            kernel.elementwise(indent, kernel.pick(*[tile for tile in kernel.tiles if tile.memory != "local"]))

    def _after(self, indent: int, acc: Memory) -> None:
        """The product is kept, used by another one, reduced."""
        kernel = self.kernel
        m, n = acc.shape
        kind = kernel.pick("keep", "keep", "chain", "chain", "reduce", "change")
        if kind == "change":
            self._change(indent, acc, 50)
        elif kind == "reduce":
            row = self.allocate(indent, "row", (m,), acc.dtype if acc.dtype != "float16" else "float32", "fragment")
            kernel.put(indent, f"T.reduce_{kernel.pick('sum', 'max', 'min')}({acc.name}, {row.name}, dim=1)")
            out = Memory(f"{row.name}_out", (kernel.blocks, m), row.dtype, "global")
            kernel.parameters.append((out, None))
            kernel.put(indent, f"T.copy({row.name}, {out.name}[bx, 0])")
        elif kind == "chain" and acc.dtype in FLOATS:
            small = self.allocate(indent, "ps", (m, n), "float16", kernel.pick("shared", "shared", "fragment"))
            i, j = kernel.fresh("i"), kernel.fresh("j")
            kernel.put(indent, f"for {i}, {j} in T.Parallel({m}, {n}):")
            kernel.put(indent + 1, f"{small.name}[{i}, {j}] = T.clamp({acc.name}[{i}, {j}], -3.0, 3.0)")
            z = self.input("Z", (n, 16), "float16")
            zs = self.allocate(indent, "zs", (n, 16), "float16", "shared")
            second = self.allocate(indent, "acd", (m, 16), "float32", "fragment")
            kernel.put(indent, f"T.copy({z.name}, {zs.name})")
            kernel.put(indent, f"T.fill({second.name}, {kernel.pick(0, 1, 2)})")
            kernel.put(indent, f"T.gemm({small.name}, {zs.name}, {second.name})")
            self._keep(indent, second)
        self._keep(indent, acc)

    def _keep(self, indent: int, acc: Memory) -> None:
        kernel = self.kernel
        out = Memory(f"{acc.name}_out", (kernel.blocks, *acc.shape), acc.dtype, "global")
        kernel.parameters.append((out, None))
        kernel.put(indent, f"T.copy({acc.name}, {out.name}[bx, {kernel.pick('0, 0', ':, :')}])")
