"""What a kernel may read of device values, buffers and regions by an attribute; the rest belongs to the compiler.

Names only, by the name of the class: the static check, which loads nothing heavy, compiles expressions too.
"""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


_BINARY = """add sub mul truediv floordiv mod pow lshift rshift and or xor divmod matmul"""
_OTHERS = """lt le gt ge eq ne neg pos abs invert round bool int float index hash len iter getitem setitem"""
OPERATORS = frozenset(
    [f"__{side}{name}__" for name in _words(_BINARY) for side in ("", "r")]
    + [f"__{name}__" for name in _words(_OTHERS)]
)
PUBLIC = {
    "Value": OPERATORS | {"dtype", "astype"},
    "Buffer": OPERATORS | {"name", "shape", "dtype", "ndim", "scope", "strides", "data"},
    "Region": OPERATORS | {"buffer", "shape", "dtype"},
}
# Attributes of one of the three that are not open to kernels in each of them.
HIDDEN = frozenset(_words("""
    astype name shape ndim scope strides buffer memory var home begin extent axes expr reads origin depth size use
    is_variable check_alive index_expr indices inner lacks_indices spoken _bound _normal _normal_slice __annotations__
    __copy__ __deepcopy__ __array__ __array_function__ __array_ufunc__ __torch_function__ __ceil__ __class__
    __complex__ __delattr__ __dict__ __dir__ __doc__ __floor__ __format__ __getattribute__ __getstate__ __imatmul__
    __init__ __init_subclass__ __module__ __new__ __reduce__ __reduce_ex__ __repr__ __setattr__ __sizeof__ __slots__
    __str__ __subclasshook__ __trunc__ __weakref__
"""))  # fmt: skip
