"""Loads the compiler behind the notebook: tvm and numba take over a second, and `%load_ext` must not wait for them."""

from __future__ import annotations

import importlib
import threading

from ..source.requirements import explained

COMPILER = "tilelang_nb.runtime.compilation"
MORE = ("tilelang_nb.report", "tilelang_nb.tilelang", "tilelang_nb.notebook.widget")


class Loading:
    """One background import.

    `wait` before using the compiler: two threads that import modules which import each other could see them half made.
    """

    def __init__(self) -> None:
        # Not a daemon: a process that ends while a C++ library is being loaded waits for it instead of crashing.
        self.thread = threading.Thread(target=self._load, name="tilelang_nb loading", daemon=False)

    def start(self) -> None:
        self.thread.start()

    def wait(self) -> None:
        """Return when the compiler is loaded; raise what its import raises."""
        if self.thread.is_alive():
            self.thread.join()
        try:
            importlib.import_module(COMPILER)
        except ImportError as error:
            raise explained(error) from error

    @staticmethod
    def _load() -> None:
        for name in (COMPILER, *MORE):
            try:
                importlib.import_module(name)
            except Exception:
                return  # `wait` imports again, in the thread where the user sees what is wrong
