"""infer-layouts: which thread holds which element of every fragment, and which thread runs which iteration.

Before: a legal launch.  After: `launch.layouts` has the layout of every fragment and `launch.facts["loops"]` the
layout of every T.Parallel loop, by the variable of its outermost dimension; in each loop the executing threads hold
all fragment elements they touch.

Layouts that the text gives come first, and are given up where the uses of their fragment need another one; those of
loops come after the products, which have no choice.  Then the strictest users speak: matrix products, then reductions
(the result lies where the rows of the source lie), then loops, the largest first; whatever they settle is carried on
until nothing changes.  A loop that touches no settled fragment gets neighbouring threads for neighbouring elements.

Sums of a product that later statements read in another layout go through a shared tile (`sums_through_tiles.py`).
Another fragment whose uses cannot be reconciled is *demoted*: it becomes a shared tile and the launch is legalised
again.  Where the text has threads write one element with different values, no place helps, and TL210 says so.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx as tir

from tilelang_nb.language.tile_program import written
from tilelang_nb.layout.fragment import Fragment, blocked, uniform
from tilelang_nb.source import catalogue as say

from .annotated_layouts import LOOPS, Annotation, give_up, wanted_fragment, wanted_loop
from .chosen_groups import warp_groups_under
from .context import FRAGMENT, LaunchContext, ThreadSet
from .gemm.wgmma import engine_of
from .hopper.plan import has_roles
from .legalise import legalised
from .loop_layouts import Contradiction, LoopLayouts, linear
from .nests import Nest, Site, Sites, collect
from .ops.elementwise import TILE
from .ops.operations import OPERATIONS
from .rewrite import constant, each_statement, scope, size, variables, walk
from .sums_through_tiles import put_others_through_tiles, put_through_tiles
from .vectors import vector_width

# A fragment that plain statements of all threads use is held by each of them, up to this size.
REPLICATED_ELEMENTS = 64
KEPT = "fragments kept in shared memory"  # the fact: those demoted here, with the places of their allocations


def infer_layouts(function: Any, launch: LaunchContext) -> Any:
    """The stage."""
    while True:
        sites = collect(function, launch)
        inference = LayoutInference(sites, launch)
        conflicts = inference.run()
        if inference.refused:
            return function
        if not conflicts:
            launch.layouts = inference.layouts
            launch.facts["loops"] = inference.loops
            launch.facts["whole-body"] = inference.first_replica_only
            launch.facts[LOOPS] = inference.by_text
            return function
        by_hand = {buffer for buffer in conflicts if buffer in launch.wanted}
        if by_hand:
            for buffer in by_hand:
                give_up(buffer, "its uses need another one", launch)
            continue
        sums = conflicts & _of_products(sites, "c")
        if sums and (put_through_tiles(sums, launch) or put_others_through_tiles(sums, _beside(sums, sites), launch)):
            function = legalised(launch, set(launch.facts.get("demoted", ())))
            continue
        awaited = {} if has_roles(launch) else _awaited(sites, launch)
        for buffer in sorted(conflicts & awaited.keys(), key=lambda buffer: str(buffer.name)):
            problem = f"the sums of `T.wgmma_gemm` in `{buffer.name}` are used as no layout in registers serves"
            remedy = f"copy them first, `T.copy({buffer.name}, tile)`, and use the tile"
            launch.report(say.ThreadMapping(problem=problem, remedy=remedy), awaited[buffer])
            return function
        kept = conflicts & _of_products(sites, "abc") if has_roles(launch) else set()
        if kept:  # their tiles lie as warp groups want them, and nothing else could multiply them
            name = min(buffer.name for buffer in kept)
            problem = f"no layout in registers serves all uses of `{name}`, which a product of warp groups has there"
            launch.report(say.ThreadMapping(problem=problem, remedy="copy it to a shared tile first, and use that"))
            return function
        stray = conflicts - _fragments(launch.facts["tile"].body)
        if stray:
            name = min(buffer.name for buffer in stray)
            problem = f"the operation keeps `{name}` in registers, and no layout serves all of its uses"
            launch.report(say.ThreadMapping(problem=problem, remedy="use `T.alloc_shared` for its operands"))
            return function
        launch.facts["demoted"] = launch.facts.get("demoted", frozenset()) | conflicts
        launch.facts.setdefault(KEPT, {}).update(_places(conflicts, launch.facts["tile"].body))
        function = legalised(launch, set(launch.facts["demoted"]))


def _awaited(sites: Sites, launch: LaunchContext) -> dict[Any, Any]:
    """The accumulators of products that run until the text waits for them, which are in registers all the while, and
    the places of the products.
    """
    return {
        site.call["c"].buffer: site.call.span
        for site in sites.operations
        if site.call.name == "gemm"
        and site.call["asynchronous"] is not None
        and engine_of(site.call, launch, site.threads.count) is not None
    }


def _of_products(sites: Sites, operands: str) -> set[Any]:
    """The fragments that are some operands of products: "a", "b" and the sums "c"."""
    calls = [site.call for site in sites.operations if site.call.name == "gemm"]
    return {call[name].buffer for call in calls for name in operands if scope(call[name].buffer) == FRAGMENT}


def _beside(sums: set[Any], sites: Sites) -> set[Any]:
    """The sums of other products in the loops over elements of these."""
    loops = [nest for nest in sites.nests if sums & set(nest.fragments)]
    return {buffer for nest in loops for buffer in nest.fragments} & _of_products(sites, "c") - sums


def _places(buffers: set[Any], body: Any) -> dict[Any, Any]:
    """The places of the allocations of some buffers."""
    return {
        node.buffer: node.span
        for node in each_statement(body)
        if isinstance(node, tir.AllocBuffer) and node.buffer in buffers
    }


def _fragments(body: Any) -> set[Any]:
    """The fragments of the text; other ones are temporaries of legalise."""
    known: set[Any] = set()
    walk(body, (tir.AllocBuffer, lambda node: known.add(node.buffer)))
    return known


class LayoutInference:
    """One attempt.  `run` gives the fragments that have to be demoted; none means that all is settled."""

    def __init__(self, sites: Sites, launch: LaunchContext):
        self.sites, self.launch = sites, launch
        self.layouts: dict[Any, Fragment] = {}
        self.sets: dict[Any, ThreadSet] = {}
        self.loops: dict[Any, Fragment] = {}
        self.first_replica_only: set[Any] = set()
        self.conflicts: set[Any] = set()
        self.refused = False
        self.told: set[int] = set()  # sides of an `if`: identities of what `under` has last
        self.solver = LoopLayouts(launch)
        self.reducers: set[Any] = launch.facts.get("reducers", set())
        self.wanted = {  # layouts of loops by the text, or why they are not to be had
            nest.key: found
            for nest in sites.nests
            if nest.wanted is not None and (found := wanted_loop(nest.wanted, nest.threads.count, launch)) is not None
        }
        self.by_text: dict[Any, Annotation] = {}

    def run(self) -> set[Any]:
        self._refuse_what_no_layout_serves()
        if self.refused:
            return set()
        self._thread_sets()
        for buffer in self.sites.fragments:
            if buffer in self.reducers:
                self._set(buffer, uniform(_shape(buffer), self._set_of(buffer).count))
            else:
                wanted = wanted_fragment(buffer, self._set_of(buffer).count, self.launch)
                if wanted is not None:
                    self._set(buffer, wanted)
        nests = sorted((nest for nest in self.sites.nests if nest.loops), key=self._order)
        self._constrain(strict=True)
        for nest in nests:
            wanted = self._by_text(nest)
            if wanted is not None:
                self._carry(nest, wanted)
        self._propagate(nests)
        while not self.conflicts and self._seed(nests):
            self._propagate(nests)
        if not self.conflicts:
            for nest in self.sites.nests:
                self._verify(nest)
        return self.conflicts

    # ---- what operations ask for ----

    @property
    def threads(self) -> int:
        return self._current.count

    def layout(self, buffer: Any) -> Fragment | None:
        return self.layouts.get(buffer)

    def settle(self, buffer: Any, layout: Fragment, span: Any) -> None:
        if scope(buffer) != "local.fragment":
            return
        known = self.layouts.get(buffer)
        if known is None:
            self._set(buffer, layout)
        elif known != layout:
            self.conflicts.add(buffer)

    def _set(self, buffer: Any, layout: Fragment) -> None:
        self.layouts[buffer] = layout
        self._changed = True

    def _constrain(self, strict: bool) -> None:
        for site in self.sites.operations:
            module = OPERATIONS.get(site.call.name)
            constrain = getattr(module, "constrain", None)
            if constrain is not None and (site.call.name == "gemm") >= strict:
                self._current = site.threads
                constrain(site.call, self)

    # ---- loops ----

    @staticmethod
    def _order(nest: Nest) -> tuple[int, bool, int]:
        """Largest first; among equals those whose accesses of memory can be wide."""
        return -nest.size, not nest.simple, -sum(1 for access in nest.memory if scope(access.buffer) == "global")

    def _propagate(self, nests: list[Nest]) -> None:
        self._changed = True
        while self._changed and not self.conflicts:
            self._changed = False
            self._constrain(strict=False)
            for nest in nests:
                if self.conflicts:
                    return
                settled = [b for b in nest.fragments if b in self.layouts and b not in self.reducers]
                open_ = [b for b in nest.fragments if b not in self.layouts]
                if settled and open_:
                    self._carry(nest, self._loop_layout(nest))

    def _carry(self, nest: Nest, loop: Fragment) -> None:
        """Give the open fragments of a nest the layout that its iterations ask for."""
        for buffer in nest.fragments:
            if buffer not in self.layouts:
                layout = self.solver.fragment_for(nest, loop, buffer)
                if layout is not None:
                    self._set(buffer, layout)

    def _loop_layout(self, nest: Nest) -> Fragment:
        """The layout of a nest from its settled fragments, the one that contradicts the fewest elements."""
        wanted = self._by_text(nest)
        if wanted is not None:
            return wanted
        best: tuple[int, int, Fragment] | None = None
        private = nest.outer_arrays
        settled = [b for b in nest.fragments if b in self.layouts and b not in self.reducers]
        candidates = [] if private else self.solver.candidates(nest, {b: self.layouts[b] for b in settled})
        if not candidates:
            candidates = [self._default(nest)]
        for loop in candidates:
            wrong = self._contradictions(nest, loop)
            cost = sum(_elements(buffer) for buffer in wrong)
            if best is None or (cost, loop.replicas) < best[:2]:
                best = (cost, loop.replicas, loop)
        assert best is not None
        return best[2]

    def _by_text(self, nest: Nest) -> Fragment | None:
        """The layout that the text gives to a loop, where the fragments that are settled allow it."""
        wanted = self.wanted.get(nest.key)
        if not isinstance(wanted, Fragment) or nest.outer_arrays or self._contradictions(nest, wanted):
            return None
        return wanted

    def _note(self, nest: Nest, loop: Fragment) -> None:
        """What became of the layout that the text gives to a loop."""
        wanted = self.wanted.get(nest.key)
        if wanted is None:
            return
        reason = wanted if isinstance(wanted, str) else ""
        if not reason and loop != wanted:
            reason = "a fragment in it needs another one"
            if nest.outer_arrays:
                reason = "all threads run all of it, for an array that each of them has"
        self.by_text[nest.variables] = Annotation(nest.span, reason)

    def _default(self, nest: Nest) -> Fragment:
        count = nest.threads.count
        if None in nest.extents:
            # Known only at run time: one flat loop over the threads, or every thread does all of it.
            return Fragment((), (), count) if nest.outer_arrays else blocked((count,), count)
        extents = [extent for extent in nest.extents if extent is not None]
        if nest.outer_arrays:
            return uniform(extents, count)
        width = vector_width(nest, self.launch)
        while width > 1 and nest.size // width < count:
            width //= 2
        return blocked(extents, count, width)

    def _seed(self, nests: list[Nest]) -> bool:
        """Settle something that nothing decides: the largest loop with an open fragment, else any open fragment."""
        for nest in nests:
            if any(buffer not in self.layouts for buffer in nest.fragments):
                before = len(self.layouts)
                self._carry(nest, self._loop_layout(nest))
                if len(self.layouts) > before:
                    return True
        plain = {buffer for nest in self.sites.nests if not nest.loops for buffer in nest.fragments}
        for buffer in self.sites.fragments:
            if buffer not in self.layouts:
                count = self._set_of(buffer).count
                small = buffer in plain and _elements(buffer) <= REPLICATED_ELEMENTS
                self._set(buffer, uniform(_shape(buffer), count) if small else blocked(_shape(buffer), count))
                return True
        return False

    def _contradictions(self, nest: Nest, loop: Fragment) -> set[Any]:
        wrong = set()
        for access in nest.accesses:
            if access.buffer not in self.layouts or access.buffer in self.reducers:
                continue
            try:
                self.solver.check(nest, loop, access, self.layouts[access.buffer])
            except Contradiction:
                wrong.add(access.buffer)
        return wrong

    def _verify(self, nest: Nest) -> None:
        """Fix the layout of a nest; what it contradicts is demoted or refused."""
        if not nest.loops:
            loop = Fragment((), (), nest.threads.count)
        else:
            loop = self._loop_layout(nest)
            self.loops[nest.key] = loop
            self._note(nest, loop)
        self.conflicts |= self._contradictions(nest, loop)
        written = {access.buffer for access in nest.accesses if access.write} - self.reducers
        if not nest.loops or not loop.is_replicated:
            return
        if not written and not nest.outer_arrays:
            self.first_replica_only.add(nest.key)
        elif nest.once or self._memory_read_back(nest):
            # Replicas would see memory before or after the one that writes it.
            self.conflicts |= {buffer for buffer in written if self.layouts[buffer].is_replicated}

    def _memory_read_back(self, nest: Nest) -> bool:
        stored = {access.buffer for access in nest.memory if access.write}
        owners = self.solver.owners
        stored = {owners(buffer) for buffer in stored}
        return any(owners(access.buffer) in stored for access in nest.memory if not access.write)

    # ---- refusals ----

    def _refuse_conflicting_write(self, nest: Nest, access: Any) -> bool:
        """Threads or iterations that write one element with different values: TL210; True when said."""
        name = access.buffer.name
        if access.buffer in self.reducers:
            return False
        if not nest.loops:
            if not access.depends:
                return False
            problem = f"every thread writes `{name}`, one tile of the whole block, with a value of its own"
            remedy = "use `T.alloc_local` for values of each thread, or write it in a `T.Parallel` loop"
        else:
            missing = [
                loop.loop_var
                for loop in nest.loops
                if constant(loop.extent) != 1 and not any(loop.loop_var in variables(index) for index in access.indices)
            ]
            depends = [var for var in missing if var in access.depends]
            if not missing or access.conditional or (not depends and access.buffer not in access.reads):
                return False
            loops = " and ".join(f"`{var.name}`" for var in missing)
            problem = f"iterations over {loops} write the same element of `{name}` with different values"
            remedy = "use `T.reduce_sum` (or `T.reduce_max`, ...), a serial loop, or `T.atomic_add` on shared memory"
        self._say(access.span, problem, remedy)
        return True

    def _refuse_outside(self, nest: Nest, access: Any) -> bool:
        """An index that certainly leaves the tile: TL202.  Registers would silently give some other element."""
        if access.conditional or not nest.loops or None in nest.extents:
            return False
        for index, extent in zip(access.indices, _shape(access.buffer)):
            if linear(index, {var: k for k, var in enumerate(nest.variables)}) and not _others(index, nest):
                bounds = self.launch.analyzer.const_int_bound(index)
                if bounds.min_value < 0 or bounds.max_value >= extent:
                    reach = f"{bounds.min_value} to {bounds.max_value}"
                    shape = tuple(_shape(access.buffer))
                    problem = f"`{index}` runs from {reach}, outside of `{access.buffer.name}`, shape {shape}"
                    remedy = "make the loop fit, or put a condition around"
                    if TILE in nest.loops[0].annotations:  # the loop is ours, not the user's
                        problem = f"the elements {reach} are used of `{access.buffer.name}`, shape {shape}"
                        remedy = "make the region fit into the tile"
                    self.launch.report(say.IndexOutOfBounds(problem=problem, remedy=remedy), access.span)
                    self.refused = True
                    return True
        return False

    def _refuse_what_no_layout_serves(self) -> None:
        misplaced = {node.buffer for node in self.sites.misplaced}
        for nest in self.sites.nests:
            accesses = [access for access in nest.accesses if access.buffer not in misplaced]
            if not any(self._refuse_outside(nest, access) for access in accesses):
                any(self._refuse_conflicting_write(nest, access) for access in accesses if access.write)
            if nest.loops and nest.divergent:
                self._refuse(nest.span, "work for all threads stands where only some of them get", under=nest.under)
            elif nest.varying:
                self._refuse_varying(nest.span)
        for site in self.sites.operations:
            if site.divergent and self._collective(site):
                called = written(site.call.name, *site.call.operands.values())
                remedy = "leave the condition out: one of the threads starts the copy" if _starts_once(site) else ""
                problem = f"`{called}` needs all threads, and only some of them get here"
                self._refuse(site.call.span, problem, remedy, site.under)
            elif site.varying and self._collective(site):
                self._refuse_varying(site.call.span)
        for node in self.sites.misplaced:
            if self.launch.is_own(node.buffer.name):  # what a tile operation needs for itself
                self._refuse(node.span, "this works on a tile of all threads, and each iteration stands alone here")
                continue
            problem = (
                f"the fragment `{node.buffer.name}` is one tile of all threads, and here each iteration has its own"
            )
            self._say(node.span, problem, "allocate it before the loop, or use `T.alloc_local`")

    def _collective(self, site: Site) -> bool:
        return site.call.name in ("gemm", "reduce", "cumulate", "finalize_reducer", "fill") or _starts_once(site)

    def _refuse(self, span: Any, problem: str, remedy: str = "", under: tuple[tuple[Any, bool], ...] = ()) -> None:
        """under: the conditions around it on which threads do not agree.  Where whole warp groups get there, `T.ws` is
        what is meant, and said once for all that stands there.
        """
        groups = "" if remedy else warp_groups_under(under, self.launch)
        if groups:
            self.refused = True
            if id(under[-1]) in self.told:
                return
            self.told.add(id(under[-1]))
            remedy = f"write `with T.ws({groups}):` in place of the `if`: its threads do it together"
        remedy = remedy or "move it out of the `if` or loop that depends on the thread, and put the condition inside"
        self.launch.report(say.ThreadsApart(problem=problem, remedy=remedy), span)
        self.refused = True

    def _refuse_varying(self, span: Any) -> None:
        problem = "all threads do this together, and they do not agree on its extent or place"
        self._say(span, problem, "use values that do not depend on the thread, or a `T.serial` loop in each thread")

    def _say(self, span: Any, problem: str, remedy: str) -> None:
        self.launch.report(say.ThreadMapping(problem=problem, remedy=remedy), span)
        self.refused = True

    # ---- sets of threads ----

    def _thread_sets(self) -> None:
        """Which threads hold a fragment; one that two sets use cannot stay in registers."""
        uses = [(nest.threads, nest.fragments) for nest in self.sites.nests]
        for site in self.sites.operations:
            regions = [value.buffer for value in site.call.operands.values() if hasattr(value, "buffer")]
            uses.append((site.threads, [buffer for buffer in regions if scope(buffer) == "local.fragment"]))
        for threads, buffers in uses:
            for buffer in buffers:
                if self.sets.setdefault(buffer, threads) != threads:
                    self.conflicts.add(buffer)

    def _set_of(self, buffer: Any) -> ThreadSet:
        return self.sets.get(buffer, self.launch.set)


def _others(index: Any, nest: Nest) -> bool:
    """Does an index depend on anything but the loops of the nest?"""
    return bool(variables(index) - set(nest.variables))


def _shape(buffer: Any) -> list[int]:
    return [size(extent) for extent in buffer.shape]


def _elements(buffer: Any) -> int:
    result = 1
    for extent in _shape(buffer):
        result *= extent
    return result


def _starts_once(site: Site) -> bool:
    """Is it a copy that one of the threads that execute it starts?"""
    name = site.call.name
    return name == "copy_to_block" or (name == "tma_copy" and site.call["scope"] is None and site.call["first"] is None)
