"""Variables whose names mean something in CUDA C get other ones before they are printed: `half`, `new`, `max`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import tvm
import tvm_ffi

# Words of C++, and names that every kernel finds in front of it.
_SPELT = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class co_await co_return co_yield
    compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq NULL threadIdx blockIdx blockDim
    gridDim warpSize dim3 size_t half uchar ushort uint ulong longlong ulonglong
"""
_WORDS = frozenset(_SPELT.split())
_TYPE = re.compile(r"(?:char|uchar|short|ushort|int|uint|long|ulong|longlong|ulonglong|float|double|half)[1-8]")
_OTHER_TYPE = re.compile(r"u?int(?:8|16|32|64)_t|nv_bfloat16\d*|__nv_\w+")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")


def called(text: str) -> frozenset[str]:
    """The names that a text calls."""
    return frozenset(_CALL.findall(text))


def names_in(function: Any) -> dict[Any, str]:
    """The variables of a function, and what each is called."""
    found: dict[Any, str] = {parameter: str(parameter.name) for parameter in function.params}

    def note(var: Any) -> None:
        if var not in found:
            found[var] = str(var.name)

    tvm_ffi.structural_walk(function.body, (tvm.ir.Var, note))
    return found


def is_word(name: str) -> bool:
    """Does the name mean something in every text of CUDA C?"""
    return name in _WORDS or bool(_TYPE.fullmatch(name) or _OTHER_TYPE.fullmatch(name))


def with_free_names(function: Any, known: Mapping[Any, str], names: Collection[str] = ()) -> Any:
    """The function with other names for variables called like words of CUDA C, or like one of `names`.

    known: its variables.  The same function where there are none.
    """
    taken = [var for var, name in known.items() if name in names or is_word(name)]
    if not taken:
        return function
    used = {*known.values(), *names}
    renamed: dict[Any, Any] = {}
    for var in taken:
        name = f"{known[var].strip('_')}_"
        while name in used:
            name += "_"
        used.add(name)
        renamed[var] = type(var)(name, var.ty)
    return tvm_ffi.structural_map(function, (tvm.ir.Var, lambda var: renamed.get(var, var)))
