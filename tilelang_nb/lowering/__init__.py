"""Tile program to thread program: the stages, in `pipeline.STAGES`."""

from __future__ import annotations

from .context import Lowered, SharedBuffer, Snapshot, Stage, Workspace

__all__ = ["Lowered", "SharedBuffer", "Snapshot", "Stage", "Workspace", "lower"]


def __getattr__(name: str):
    if name == "lower":
        from .pipeline import lower

        return lower
    raise AttributeError(name)
