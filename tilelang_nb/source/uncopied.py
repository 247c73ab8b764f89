"""Objects that hold programs of the compiler: a copy is the object itself, and pickling is refused.

TVM's expressions end the process where they are pickled or copied member by member.
"""

from __future__ import annotations

from typing import Any, NoReturn


class Uncopied:
    """A base class.  Like a function, an object is its own copy; pickling raises TypeError."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be pickled: keep the text of its kernel and compile it again")
