"""A `while` loop that has come back to a state that it was in before, and so never ends."""

from __future__ import annotations

from typing import Any

import numpy as np

FIRST, LOOK = 64, 8  # the first turn that is remembered, and how many turns after a remembered one are compared


class NoEnd(Exception):
    """A loop does the same turns for ever.  turns: after how many it is where it was."""

    def __init__(self, site: int, turns: int):
        super().__init__("endless loop")
        self.site, self.turns = site, turns


class Repetition:
    """The turns of one loop.  State: masks and registers (arrays, None, False), of which some turns keep copies.

    A period of up to LOOK turns is found; longer ones end at the step limit.
    """

    def __init__(self, site: int):
        self.site, self.turn, self.mark, self.marked = site, 0, FIRST, 0
        self.kept: list[Any] = []

    def turn_begins(self, *state: Any) -> None:
        """NoEnd: the state is that of an earlier turn."""
        self.turn += 1
        if self.turn < FIRST:
            return
        if self.turn == self.mark:
            self.kept = [one.copy() if isinstance(one, np.ndarray) else one for one in state]
            self.marked, self.mark = self.turn, 2 * self.mark
        elif 2 * self.turn <= self.mark + 2 * LOOK and self._same(state):
            raise NoEnd(self.site, self.turn - self.marked)

    def _same(self, state: tuple[Any, ...]) -> bool:
        return all(equal(one, kept) for one, kept in zip(state, self.kept))


def equal(one: Any, other: Any) -> bool:
    """Are the bits of two parts of a state the same?  Signs of zeros count, NaNs are equal to themselves."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return one is other
    return one.shape == other.shape and one.tobytes() == other.tobytes()
