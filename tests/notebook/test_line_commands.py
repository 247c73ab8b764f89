"""`%tilelang COMMAND` in a real kernel."""

from __future__ import annotations

from typing import Any

import pytest

KERNEL = """%%tilelang --quiet
@T.prim_func
def shown_again(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        A[0] = 1.0
"""


@pytest.mark.parametrize("spelling", ["TL101", "tl101", "chained-assignment"])
def test_explain_shows_the_page_of_a_code_or_slug(kernel: Any, spelling: str) -> None:
    reply = kernel.run(f"%tilelang explain {spelling}")
    (bundle,) = reply.displays
    assert bundle["text/plain"].startswith("TL101 chained-assignment (error)")
    assert "TL101 chained-assignment" in bundle["text/html"]
    assert bundle["text/html"].count("white-space:pre;padding:4px 8px;overflow-x:auto") == 3


def test_explain_alone_lists_the_codes(kernel: Any) -> None:
    assert kernel.run("%tilelang explain").stdout.startswith("TL001  source-unavailable\n")


def test_devices_lists_the_simulated_device(kernel: Any) -> None:
    assert kernel.run("%tilelang devices").stdout.startswith("sim")


def test_inspect_shows_the_stages_again(kernel: Any) -> None:
    assert kernel.run(KERNEL).displays == []
    reply = kernel.run("%tilelang inspect shown_again")
    assert "<details" in reply.html
    assert "shown_again" in reply.shown


def test_clear_cache_says_how_much_it_forgot(kernel: Any) -> None:
    kernel.run(KERNEL)
    assert kernel.run("%tilelang clear-cache").stdout.strip().endswith("compiled kernels forgotten")
    assert kernel.run("%tilelang clear-cache").stdout.strip() == "0 compiled kernels forgotten"


def test_freeze_says_how_many_widgets_it_replaced(kernel: Any) -> None:
    kernel.run("%tilelang freeze")
    assert kernel.run("%tilelang freeze").stdout.startswith("0 widgets replaced")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("explian TL101", "did you mean `%tilelang explain`?"),
        ("explain TL999", "no diagnostic 'TL999'; there is TL900"),
        ("devices all", "write `%tilelang devices`"),
        ("inspect shown_agian", "did you mean `shown_again`?"),
        ("inspect np", "`np` is no kernel of this notebook"),
        ("freeze shown_agian", "no widget shows a kernel `shown_agian`"),
    ],
)
def test_a_bad_command_is_one_line_with_what_to_write(kernel: Any, line: str, said: str) -> None:
    kernel.run(KERNEL)
    reply = kernel.run(f"%tilelang {line}")
    text = (reply.error + reply.stderr).strip()
    assert reply.status == "error"
    assert text.startswith("UsageError: %tilelang")
    assert said in text
    assert "\n" not in text
