"""Proxies: what asynchronous operations on shared memory ask of ordinary accesses to the same places.

Bulk copies and products of warp groups reach shared memory by another way than loads and stores, and no barrier alone
orders the two.  Between an ordinary store and an asynchronous read, and between any ordinary access and a bulk copy
that overwrites it, some thread must have come to fence.proxy.async, on the way from the one to the other.  The wait for
an asynchronous operation orders what comes after it without more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .knowledge import EPOCH_SHIFT, MANY, add, of_warps
from .shadow import CODE, LAST_EPOCH

Array = Any


class Proxies:
    """Part of a strand."""

    def proxy_fence(self, mask: Array) -> None:
        """fence.proxy.async: what these threads accessed, or know to be accessed, is over for asynchronous operations.

        Where some lanes of a warp come to it, they do so for the others.
        """
        if not self.machine.checks:
            return
        for known in (self.seen, *(share.known for share in self.shares)):
            add(known, {other: epoch for key, epoch in known.items() if (other := _across(key)) is not None})
        lanes = None if mask is None else np.broadcast_to(mask, (self.B, self.T)).any(0)[None]
        warps = self._warps(lanes, 0)
        if warps is None:
            self.seen[-self.number] = self.epoch
        else:
            self.seen.update({(-self.number, warp): self.epoch for warp in warps})
            self.partly_known = True
        for share in self.shares:
            for strand, (epoch, _) in share.own.items():
                self.partly_known = True
                add(share.known, {(-strand, warp): epoch for warp in share.warps if warps is None or warp in warps})
        self.new_epoch()

    def check_proxy(self, cells: Array, site: int) -> None:
        """Report what ordinary stores wrote and no fence has made visible to an asynchronous read."""
        records = self.machine.shared_shadow.writes[cells]
        late = self._unfenced(records)
        if late is not None:
            self.machine.shared_shadow.report_unfenced(self, records, late, site, "store", False)

    def check_overwritten(self, cells: Array, codes: Array, site: int) -> None:
        """Report ordinary accesses of what a bulk copy overwrites, which are over, but for ordinary ones alone."""
        shadow = self.machine.shared_shadow
        earlier = [("store", shadow.writes[cells], codes)]
        earlier += [("load", records, codes[at]) for records, at in shadow.reads.earlier(cells, ordinary=True)]
        for kind, records, mine in earlier:
            late = self._unfenced(records)
            if late is None:
                continue
            at = np.flatnonzero(late)
            race = shadow.unordered(self, records[at], mine[at])
            if race is not None:  # that is told
                late[at] = ~race
            if late.any():
                shadow.report_unfenced(self, records, late, site, kind, True)

    def _unfenced(self, records: Array) -> Array | None:
        """Which records are ordinary accesses that no fence lies behind; None for none."""
        machine = self.machine
        if machine.epochs.exhausted:
            return None
        epochs = records >> EPOCH_SHIFT
        fenced = np.zeros(machine.strands + 1, np.int64)
        known = self.known_by()
        for key, epoch in known.items():
            if type(key) is int and key < 0:
                fenced[-key] = epoch
        fenced[list(machine.engines.values())] = LAST_EPOCH
        owners = machine.epochs.owner(epochs)
        late: Array = (epochs > fenced[owners]) & (epochs <= machine.epochs.last)  # what is under way is told
        if not late.any():
            return None
        if self.partly_known:
            at = np.flatnonzero(late)
            codes = records[at] & CODE
            threads = np.where(codes & MANY, -1, (codes - 1) % machine.threads)
            late[at] = epochs[at] > of_warps(known, owners[at], threads, machine.threads, -1)
        return late if late.any() else None


def _across(key: Any) -> Any:
    """The key of the same knowledge for all proxies; None where this is one."""
    if type(key) is tuple:
        return (-key[0], key[1]) if key[0] > 0 else None
    return -key if key > 0 else None
