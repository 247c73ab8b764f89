"""Layouts by upstream's module name: `tilelang.layout.make_swizzled_layout(tile)`."""

from __future__ import annotations

from ..language.fragment_layouts import Fragment
from ..language.layouts import Layout
from ..language.swizzled_layouts import (
    make_full_bank_swizzled_layout,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
)

__all__ = [
    "Fragment",
    "Layout",
    "make_full_bank_swizzled_layout",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
]
