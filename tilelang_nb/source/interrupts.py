"""Ctrl-C, and a `raise KeyboardInterrupt` in code: the first ends what runs, the second is a mistake at its place."""

from __future__ import annotations

import dis
import signal
from types import CodeType, TracebackType
from typing import Any

_RAISES = dis.opmap["RAISE_VARARGS"]


def pass_on_interrupt(error: BaseException) -> None:
    """Raise `error` again where the user interrupted the process; for all that code raised itself, do nothing."""
    if isinstance(error, KeyboardInterrupt) and not _raised_by_code(error.__traceback__):
        raise error


def _raised_by_code(traceback: TracebackType | None) -> bool:
    """Was it a `raise`, and not that of a handler of a signal?

    A signal stops a frame at any instruction; Python's own handler, which raises then, has no frame.
    """
    if traceback is None:
        return False
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    while True:
        if traceback.tb_frame.f_code in handlers:
            return False
        if traceback.tb_next is None:
            break
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_code[traceback.tb_lasti] == _RAISES


def _code(handler: Any) -> CodeType | None:
    """The code of a function, a method or a partial one."""
    while hasattr(handler, "func"):
        handler = handler.func
    return getattr(handler, "__code__", None)
