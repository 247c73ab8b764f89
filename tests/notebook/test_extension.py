"""Loading and unloading the extension in a real kernel."""

from __future__ import annotations

from typing import Any

COUNT = """
shell = get_ipython()
print(sum(getattr(f, "__name__", "") == "hoist_magic" for f in shell.input_transformers_cleanup),
      sum("option_matcher" in getattr(f, "__name__", "") for f in shell.Completer.custom_matchers),
      sum("tilelang_nb" in getattr(f, "__module__", "") for name in ("pre_run_cell", "post_run_cell")
          for f in shell.events.callbacks[name]))
"""


def test_loading_does_not_load_the_compiler_in_the_way(bare_kernel: Any) -> None:
    reply = bare_kernel.run(
        "import sys, threading\n%load_ext tilelang_nb\nprint({'tvm', 'anywidget'} & set(sys.modules))"
    )
    assert (reply.status, reply.stdout.strip()) == ("ok", "set()")
    assert bare_kernel.run("[t.join() for t in threading.enumerate() if 'tilelang_nb' in t.name];").status == "ok"
    assert bare_kernel.run("print('tvm' in sys.modules)").stdout.strip() == "True"


def test_reloading_registers_once(bare_kernel: Any) -> None:
    assert bare_kernel.run("%load_ext tilelang_nb\n%reload_ext tilelang_nb\n%reload_ext tilelang_nb").status == "ok"
    assert bare_kernel.run(COUNT).stdout.split() == ["1", "1", "2"]


def test_unloading_leaves_nothing_behind_and_loading_again_works(bare_kernel: Any) -> None:
    assert bare_kernel.run("%unload_ext tilelang_nb").status == "ok"
    assert bare_kernel.run(COUNT).stdout.split() == ["0", "0", "0"]
    gone = bare_kernel.run("%%tilelang\nx = 1")
    assert "not found" in gone.error + gone.stdout + gone.stderr
    assert bare_kernel.run("%load_ext tilelang_nb").status == "ok"
    assert bare_kernel.run("%%tilelang\nx = 1").status == "ok"
