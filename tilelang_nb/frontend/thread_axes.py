"""The index along an axis of the launch that `T.thread_binding` names."""

from __future__ import annotations

import ast
from typing import Any

from ..language.loops import DeviceLoop
from ..language.operands import no_launch
from ..language.values import Value, simplified
from ..source import catalogue as say
from ..source.diagnostic import Refusal
from ..source.wording import number_text


def is_thread_index(value: Any) -> bool:
    """Whether a value is what `T.thread_binding` gives."""
    return isinstance(value, DeviceLoop) and value.kind == "thread_binding"


def thread_index(walker: Any, spec: DeviceLoop, place: ast.AST) -> Value:
    """The index of the executing thread or block: `tx = T.thread_binding(0, 128, thread="threadIdx.x")`.

    TL208: outside a launch, or the launch has another extent along that axis or none.
    """
    launch = walker.builder.launch
    if launch is None:
        no_launch("`T.thread_binding`")
    start, stop, _ = spec.dims[0]
    tag = str(spec.annotations["thread"])
    kind, axis = tag.split(".")
    axes, at = launch.threads if kind == "threadIdx" else launch.blocks, "xyz".index(axis)
    extent = simplified(stop - start)
    if at >= len(axes):
        problem = f"the launch has no `{tag}`"
        message = say.LaunchConfiguration(problem=problem, remedy="give its extent to `T.Kernel`")
        raise Refusal(message, place)
    var, size = axes[at]
    known = simplified(Value(size, "int32"))
    if isinstance(known, int) and isinstance(extent, int) and known != extent:
        problem = f"`{tag}` has {known} in this launch, {number_text(extent)} here"
        raise Refusal(say.LaunchConfiguration(problem=problem, remedy=f"write {known}"), place)
    value = Value(var, "int32")
    return value if isinstance(start, int) and start == 0 else value + start
