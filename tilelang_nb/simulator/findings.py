"""Findings of a launch, grouped: one for each kind, buffer, line and other line, with the first thread and a count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..source import catalogue as say
from ..source.diagnostic import Diagnostic, Message, Note
from ..source.wording import with_article
from .never_ending import NeverEnding
from .translation.values import BULK_COPY, Site
from .who import Place, called, does, numbered, user_span


@dataclass
class Finding:
    """One group: `message` is that of the first occurrence."""

    message: Message
    site: Site | None
    notes: tuple[Note, ...]
    count: int


class Findings(NeverEnding):
    """Collects; `diagnostics()` gives them sorted by line."""

    def __init__(self, sites: list[Site]):
        self.sites = sites
        self._groups: dict[tuple[Any, ...], Finding] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def kept(self) -> dict[tuple[Any, ...], Finding]:
        """What has been found so far, for `put_back`."""
        return {key: replace(finding) for key, finding in self._groups.items()}

    def put_back(self, kept: dict[tuple[Any, ...], Finding]) -> None:
        """Forget what was found since."""
        self._groups = {key: replace(finding) for key, finding in kept.items()}

    def unwritten(self, known: dict[tuple[Any, ...], Finding]) -> set[str]:
        """Shared buffers that were read before anything was written, beside those that are known."""
        return {
            finding.site.buffer
            for key, finding in self._groups.items()
            if key not in known and key[0] == "TL403" and finding.site is not None and finding.site.space == "shared"
        }

    def races(self, known: dict[tuple[Any, ...], Finding]) -> set[str]:
        """Buffers of the races that were found, beside those that are known."""
        return {str(key[1]) for key in self._groups if key not in known and key[0] == "TL401"}

    def _add(self, key: tuple[Any, ...], count: int, site: Site | None, make: Any) -> None:
        key = tuple(part.place if isinstance(part, Site) else part for part in key)
        known = self._groups.get(key)
        if known is not None:
            known.count += count
            return
        message, notes = make()
        self._groups[key] = Finding(message, site, notes, count)

    # ---- TL401 ----
    def race(
        self,
        site: int,
        other: int,
        kind: str,
        earlier: str,
        who: tuple[Any, Any],
        whose: tuple[Any, Any],
        count: int,
        roles: bool = False,
    ) -> None:
        """`kind` access at `site` by `who` against the `earlier` access at `other` by `whose`.

        roles: the two are threads of a block that have taken different ways, where no block barrier may stand.
        """
        here, there = self.sites[site], self.sites[min(other, len(self.sites) - 1)]
        lines = sorted([str(here.span), str(there.span)])
        key = ("TL401", here.buffer, *lines)

        def make() -> tuple[Message, tuple[Note, ...]]:
            second = whose if whose != (None, None) else who
            blocks = who[0] is not None and second[0] is not None and who[0] != second[0]
            blocks = blocks or whose == (None, None)
            what = {"read": "read", "write": "write", "atomic": "update"}[kind]
            past = {"read": "read", "write": "wrote"}[earlier]
            if here.place == there.place and kind == earlier and here.turn == there.turn:
                problem = f"threads store different values to one element of `{here.buffer}` in one statement"
            else:
                problem = (
                    f"{does(who, what)} an element of `{here.buffer}` that {called(whose)} {past},"
                    f" and nothing orders the two"
                )
            shifted = here.space == "global" and here.span == there.span and {kind, earlier} == {"read", "write"}
            if shifted:  # `A[i] = A[i + 1]`, or `A[0] = A[0] + x`: only the author knows which is meant
                remedy = "for a sum, use `T.atomic_add`; otherwise write into another buffer than the one that is read"
            elif blocks and here.space == "shared":
                remedy = "put `T.cluster_sync()` between the two accesses, or wait for a barrier of the copy"
            elif blocks:
                remedy = (
                    "blocks run in any order: give each block its own elements, use an atomic operation, or let one"
                    ' block wait for the other by atomic operations with `memory_order="release"` and `"acquire"`'
                )
            elif roles:
                remedy = (
                    "let the threads of the earlier access arrive at a barrier, at least one of each warp, and those of"
                    " the later access wait for it"
                )
            elif here.space == "global" and here.span == there.span:
                remedy = "give each thread its own elements, or use an atomic operation such as `T.atomic_add`"
            elif here.space == "global":
                remedy = "put `T.sync_threads()` between the two accesses, or give each thread its own elements"
            else:
                remedy = "put `T.sync_threads()` between the two accesses"
            text = f"the other access: `{there.buffer}` is {'read' if earlier == 'read' else 'written'} here"
            return say.SimulatedRace(problem=problem, remedy=remedy), (Note(text, user_span(there.span)),)

        self._add(key, count, here, make)

    def in_flight(self, site: int, other: int, kind: str, who: Place, count: int, committed: bool = False) -> None:
        """`kind` access at `site` of what an asynchronous copy started at `other` has not finished.

        committed: the copy is in a group.
        """
        here, there = self.sites[site], self.sites[min(other, len(self.sites) - 1)]

        def make() -> tuple[Message, tuple[Note, ...]]:
            what = {"read": "read", "write": "write", "atomic": "update"}[kind]
            problem = f"{does(who, what)} an element of `{here.buffer}` while an asynchronous copy is writing it"
            remedy = "put `T.ptx_wait_group(0)` before this"
            if not committed:
                remedy = "put `T.ptx_commit_group()` after the copies, and `T.ptx_wait_group(0)` before this"
            if there.kind == BULK_COPY:
                remedy = "wait for the barrier of the copy first, with `T.mbarrier_wait_parity(...)`"
            return say.SimulatedRace(problem=problem, remedy=remedy), (
                Note("the copy starts here", user_span(there.span)),
            )

        self._add(("TL401", here.buffer, "in flight", str(here.span), str(there.span)), count, here, make)

    def no_proxy_fence(
        self, site: int, other: int, who: tuple[Any, Any], count: int, earlier: str, overwrites: bool
    ) -> None:
        """An asynchronous access at `site` to what `who` accessed at `other` in the ordinary way.

        earlier: "load" or "store".  overwrites: whether the asynchronous access writes.
        """
        here, there = self.sites[site], self.sites[min(other, len(self.sites) - 1)]
        verb, past = ("read", "read") if earlier == "load" else ("store", "stored")

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = (
                f"an asynchronous operation reads an element of `{here.buffer}` that {called(who)} stored, and no"
                " fence makes ordinary stores visible to it"
            )
            if overwrites:
                problem = (
                    f"a bulk copy overwrites an element of `{there.buffer}` that {called(who)} {past}, and no fence"
                    f" makes it wait for ordinary {earlier}s"
                )
            remedy = f"let the threads that {verb} call `T.fence_proxy_async()` before the barrier"
            found = say.SimulatedRace(problem=problem, remedy=remedy)
            return found, (Note(f"the {verb} is here", user_span(there.span)),)

        key = "overwritten without fence" if overwrites else "fence"
        self._add(("TL401", here.buffer, key, verb, str(here.span), str(there.span)), count, here, make)

    def overwritten(self, site: int, other: int, reader: str, who: tuple[Any, Any], count: int) -> None:
        """A store at `site` into what the asynchronous operation that started at `other` was still reading."""
        here, there = self.sites[min(site, len(self.sites) - 1)], self.sites[other]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{does(who, 'write')} an element of `{there.buffer}` while {reader} is reading it"
            remedy = "wait until it is over before the tile is given free"
            if "asynchronous copy" in reader:
                remedy = "put `T.ptx_wait_group(0)` before this: until then the copy may be reading"
            if "bulk copy" in reader:
                remedy = "wait for the barrier of the copy first: until then it may be reading"
            if "store" in reader:
                remedy = "put `T.tma_store_wait(0)` before this: it waits until the store has read the tile"
            return say.SimulatedRace(problem=problem, remedy=remedy), (
                Note("the reading begins here", user_span(there.span)),
            )

        self._add(("TL401", there.buffer, "overwritten", str(here.span), str(there.span)), count, here, make)

    def unfinished(self, site: int, where: Place, count: int) -> None:
        """A read at `site` of an accumulator whose product is still running."""
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{does(where, 'read')} `{here.buffer}` while a matrix product is still adding to it"
            remedy = "put `T.wait_wgmma(0)` before this"
            return say.SimulatedRace(problem=problem, remedy=remedy), ()

        self._add(("TL401", here, "unfinished"), count, here, make)

    def never_landed(self, site: int, count: int) -> None:
        """A bulk copy that nothing has waited for when the launch ended."""
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"the launch ends while a copy into `{here.buffer}` is under way"
            remedy = "wait for its barrier before the kernel ends"
            return say.SimulatedRace(problem=problem, remedy=remedy), ()

        self._add(("TL401", here, "never landed"), count, here, make)

    def never_read(self, site: int, count: int) -> None:
        """A store in bulk that nothing has waited for when the launch ended."""
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"the launch ends while a tensor store is reading `{here.buffer}`"
            return say.SimulatedRace(problem=problem, remedy="put `T.tma_store_wait(0)` after the last store"), ()

        self._add(("TL401", here, "never read"), count, here, make)

    # ---- TL402, TL403 ----
    def outside(self, site: int, where: Place, index: list[int], shape: list[int], count: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = (
                f"{does(where, 'read' if here.kind == 'read' else 'write')} `{here.buffer}[{numbered(index)}]`,"
                f" outside its shape ({numbered(shape)}{',' if len(shape) == 1 else ''})"
            )
            remedy = "guard the access with an `if`, or make the buffer larger"
            return say.SimulatedOutOfBounds(problem=problem, remedy=remedy), ()

        self._add(("TL402", here), count, here, make)

    def outside_copy(self, site: int, where: Place, size: int, count: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{does(where, 'copy')} {size} bytes of `{here.buffer}` that reach beyond its end"
            remedy = "copy fewer elements there, or make the buffer larger"
            return say.SimulatedOutOfBounds(problem=problem, remedy=remedy), ()

        self._add(("TL402", here, "copy"), count, here, make)

    def misaligned(self, site: int, where: Place, size: int, count: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{does(where, 'move')} {size} bytes of `{here.buffer}` at an address that is no multiple of it"
            remedy = f"start at a multiple of {size} bytes"
            return say.SimulatedOutOfBounds(problem=problem, remedy=remedy), ()

        self._add(("TL402", here, "misaligned"), count, here, make)

    def outside_cluster(self, site: int, where: Place, rank: int, ranks: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{called(where)} reaches for block {rank} of its cluster, which has {ranks} blocks"
            return say.SimulatedOutOfBounds(problem=problem, remedy=f"give 0 to {ranks - 1}"), ()

        self._add(("TL402", here, "cluster"), 1, here, make)

    def uninitialised(self, site: int, where: Place, count: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            what = "a register" if here.space == "local" else "an element"
            problem = f"{does(where, 'read')} {what} of `{here.buffer}` that nothing has written"
            remedy = f"write `{here.buffer}` first, for example with `T.clear({here.buffer})`"
            return say.SimulatedUninitialisedRead(problem=problem, remedy=remedy), ()

        self._add(("TL403", here), count, here, make)

    # ---- TL406 ----
    def undefined(self, site: int, where: Place, operand: int, count: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"{does(where, 'divide')} by 0"
            remedy = "test the divisor first: `x // d if d != 0 else 0`"
            if here.kind.startswith("shift"):
                dtype = here.kind.rpartition(" ")[2]
                problem = f"{does(where, 'shift')} {with_article(f'{dtype} value')} by {operand} bits"
                remedy = "test the number of bits first, or cast to a wider type"
            return say.SimulatedUndefinedArithmetic(problem=problem, remedy=remedy), ()

        self._add(("TL406", here), count, here, make)

    def absent_lane(
        self, site: int, where: Place, what: str, does_it: str, missing: str, lane: int, count: int
    ) -> None:
        """A lane that is not in a shuffle or vote at `site`.

        does_it: what the thread at fault does: it "reads" the lane, "names" it, or "is" it.  missing: what the lane
        does not: "come", is "named", or "exist".
        """
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            absent = {
                "come": f"which does not come to this {what}",
                "named": f"which the mask of this {what} does not name",
                "exist": "which the block does not have",
            }[missing]
            problem = f"{called(where)} {does_it} lane {lane} of its warp, {absent}"
            if does_it == "reads":
                problem = f"{called(where)} reads the value of lane {lane} of its warp, {absent}"
            elif does_it == "names":
                problem = f"{called(where)} names lane {lane} of its warp in the mask, {absent}"
            remedy = f"let all lanes come to the {what}: put it before the `if`, and use its result inside"
            if missing == "exist":
                remedy = "launch a multiple of 32 threads, or read only lanes that there are"
            elif missing == "named":
                remedy = "give a `mask` with a bit for every lane that takes part"
            return say.UndefinedExchange(problem=problem, remedy=remedy), ()

        self._add(("TL406", here, what, does_it, missing), count, here, make)

    # ---- TL404 ----
    def assertion(self, site: int, where: Place, message: str, count: int) -> None:
        here = self.sites[site]

        def make() -> tuple[Message, tuple[Note, ...]]:
            problem = f"assertion failed: {message or 'no message'} ({called(where)})"
            remedy = "the launch stopped here: check the arguments, or the condition"
            return say.DeviceAssertFailed(problem=problem, remedy=remedy), ()

        self._add(("TL404", here, message), count, here, make)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        result = []
        for finding in self._groups.values():
            notes = finding.notes
            if finding.count > 1:
                notes = (*notes, Note(f"{finding.count:,} times in this launch"))
            span = user_span(finding.site.span) if finding.site else None
            made_by = finding.site.origin if finding.site else None
            result.append(replace(finding.message.at(span, notes), made_by=made_by))
        return tuple(sorted(result, key=lambda diagnostic: diagnostic.order))
