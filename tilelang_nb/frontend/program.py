"""What the front end makes of one kernel: its tile program, its parameters and the record of its expansion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..source.text import Span, Text
from ..source.uncopied import Uncopied
from .unroll import Node


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    kind: "pointer" is a `T.ptr` of which nothing has made a tensor yet; a program has none.  dtype: "" where such a
    one does not say it.  shape, strides: ints and TIR expressions over shape variables, and for a `pointed` one over
    scalar parameters; () and None for a scalar.  strides: None is row-major.  var: the parameter of the PrimFunc.
    default: what a call takes for a scalar that it does not pass; None where it must pass one.  pointed: the tensor
    of a `T.ptr`, which takes any array with enough elements in one row.
    """

    name: str
    kind: Literal["tensor", "scalar", "pointer"]
    dtype: str
    shape: tuple[Any, ...]
    strides: tuple[Any, ...] | None
    var: Any
    default: bool | int | float | None = None
    pointed: bool = False


@dataclass(frozen=True)
class TileProgram(Uncopied):
    """A kernel as a tile program (see `language.tile_program`).

    function: the PrimFunc; `global_symbol` is the name.  span: the `def` line of the kernel.  expansion: root of the
    record. statement_spans: the TVM span of every emitted statement by its number, which the record refers to; each
    turn of a compile-time loop has span objects of its own, so `same_as` tells the turns apart after lowering.
    layouts: layouts by key, for `annotate_layout`.  printed: what compile-time code printed. returns: positions of
    the parameters that an eager kernel allocates and returns.
    """

    name: str
    function: Any
    parameters: tuple[Parameter, ...]
    text: Text
    span: Span
    expansion: Node
    statement_spans: tuple[Any, ...] = ()
    layouts: Mapping[str, Any] = field(default_factory=dict)
    printed: str = ""
    returns: tuple[int, ...] = ()
