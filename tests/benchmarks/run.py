"""Measure the budgets that this version has to keep and print each beside its budget.

    python tests/benchmarks/run.py [--only WORD] [--repeat N] [--json FILE]

Nothing here is asserted: machines differ, so the ratio to the budget (of a 2-core machine) is for a person to read.  A
result is checked against NumPy before its time is taken.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]
import cells  # noqa: E402  (the path is set above)

HOPPER_MATMUL = cells.HOPPER_MATMUL.format(size=4096)

LOAD_EXTENSION = """
import time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
begin, begin_cpu = time.perf_counter(), time.thread_time()
shell.run_line_magic("load_ext", "tilelang_nb")
print(time.perf_counter() - begin, time.thread_time() - begin_cpu)
"""


@dataclass(frozen=True)
class Row:
    """One measured budget in milliseconds; the figures are None where the measure failed.

    processor: the median of processor time.  On a machine that other work shares it says more than the clock.
    """

    name: str
    budget: float
    median: float | None
    best: float | None
    processor: float | None
    note: str = ""


def timed(
    function: Callable[[], Any], repeat: int, prepare: Callable[[], Any] = lambda: None
) -> tuple[float, float, float]:
    """(median, best, median of processor time) of `repeat` calls in milliseconds."""
    times, processor = [], []
    for _ in range(repeat):
        prepare()
        begin, begin_processor = time.perf_counter(), time.process_time()
        function()
        times.append(1000 * (time.perf_counter() - begin))
        processor.append(1000 * (time.process_time() - begin_processor))
    return statistics.median(times), min(times), statistics.median(processor)


def load_extension(repeat: int) -> Row:
    times, processor = [], []
    for _ in range(min(repeat, 3)):
        run = subprocess.run([sys.executable, "-c", LOAD_EXTENSION], capture_output=True, text=True, check=True)
        clock, used = run.stdout.split()[-2:]
        times.append(1000 * float(clock))
        processor.append(1000 * float(used))
    middle = statistics.median
    return Row("%load_ext", 300, middle(times), min(times), middle(processor), "a process each")


def compile_text(text: str, arch: str | None = None) -> Any:
    import tilelang_nb

    compilation = tilelang_nb.compile_cell(text, {}, target="sim", arch=arch)
    assert compilation.ok, compilation.to_text()
    return compilation


def compile_checked(text: str, arch: str | None) -> Any:
    """For sm_90a, where products and their copies are divided among warp groups: checks that these are."""
    compilation = compile_text(text, arch)
    if arch == "sm_90a":
        (kernel,) = compilation.kernels.values()
        assert "roles" in {decision.subject for decision in kernel.decisions}, "the cell is not divided into roles"
    return compilation


def forget() -> None:
    """Nothing of what was compiled and shown before is known."""
    from tilelang_nb.report import readable
    from tilelang_nb.runtime import cache

    cache.clear()
    readable.forget()


def shown(name: str, text: str, budget: float, arch: str | None = None) -> Callable[[int], Row]:
    """From the text of a cell to its report with every stage printed, nothing of it cached."""

    def measure(repeat: int) -> Row:
        compile_checked(text, arch)
        figures = timed(lambda: compile_text(text, arch).to_html(), repeat, forget)
        return Row(f"cell to shown IR: {name}", budget, *figures)

    return measure


def unchanged(repeat: int) -> Row:
    compile_text(cells.MATMUL).to_html()
    return Row("unchanged cell again: matmul", 20, *timed(lambda: compile_text(cells.MATMUL).to_html(), repeat))


def widget(name: str, text: str, budget: float, fresh: bool, arch: str | None = None) -> Callable[[int], Row]:
    """From the text of a cell to its widget and the static copy beside it.  fresh: nothing of it cached."""

    def measure(repeat: int) -> Row:
        from tilelang_nb.notebook.widget import KernelView
        from tilelang_nb.report.json import to_data
        from tilelang_nb.source.providers import provided

        def run() -> None:
            compilation = compile_text(text, arch)
            provided("html")(compilation, compact=True)
            KernelView(to_data(compilation)).close()

        compile_checked(text, arch)
        run()
        figures = timed(run, repeat, forget if fresh else lambda: None)
        return Row(f"{'cell' if fresh else 'unchanged cell'} to widget: {name}", budget, *figures)

    return measure


def compile_time_items(items: int, budget: float) -> Callable[[int], Row]:
    def measure(repeat: int) -> Row:
        text = cells.COMPILE_TIME_ITEMS.format(items=items)
        return Row(f"{items:,} compile-time items", budget, *timed(lambda: compile_text(text).to_html(), 3, forget))

    return measure


def simulate(
    name: str,
    text: str,
    kernel: str,
    budget: float,
    arguments: Callable[[], dict[str, Any]],
    arch: str | None = None,
) -> Callable[[int], Row]:
    """A launch on the simulated device with all checks on, its result checked first."""

    def measure(repeat: int) -> Row:
        program = compile_checked(text, arch).namespace[kernel]
        given = arguments()
        expected, tolerance = given.pop("expected"), given.pop("tolerance")
        program(*given.values())
        np.testing.assert_allclose(list(given.values())[-1], expected, rtol=tolerance, atol=tolerance)
        assert not program.findings
        return Row(f"simulated: {name}", budget, *timed(lambda: program(*given.values()), repeat))

    return measure


def add_arguments() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(1 << 20, dtype=np.float32) for _ in range(2))
    return {"a": a, "b": b, "c": np.zeros_like(a), "expected": a + b, "tolerance": 0}


def matmul_arguments(size: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    return {"a": a, "b": b, "c": np.zeros((size, size), np.float16), "expected": expected, "tolerance": 2e-2}


def attention_arguments() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 256, 2, 64)).astype(np.float16) for _ in range(3))
    scores = np.einsum("bqhd,bkhd->bhqk", q.astype(np.float64), k.astype(np.float64)) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    expected = np.einsum("bhqk,bkhd->bqhd", weights, v.astype(np.float64))
    return {"q": q, "k": k, "v": v, "o": np.zeros_like(q), "expected": expected, "tolerance": 1e-2}


MEASURES: dict[str, Callable[[int], Row]] = {
    "load": load_extension,
    "elementwise": shown("elementwise", cells.ELEMENTWISE, 60),
    "matmul": shown("fp16 gemm", cells.MATMUL, 300),
    "attention": shown("flash attention", cells.ATTENTION, 500),
    "matmul-hopper": shown("fp16 gemm in roles", HOPPER_MATMUL, 300, "sm_90a"),
    "attention-hopper": shown("flash attention in roles", cells.HOPPER_ATTENTION, 500, "sm_90a"),
    "unchanged": unchanged,
    "widget-matmul": widget("fp16 gemm", cells.MATMUL, 300, True),
    "widget-attention": widget("flash attention", cells.ATTENTION, 500, True),
    "widget-matmul-hopper": widget("fp16 gemm in roles", HOPPER_MATMUL, 300, True, "sm_90a"),
    "widget-attention-hopper": widget("flash attention in roles", cells.HOPPER_ATTENTION, 500, True, "sm_90a"),
    "widget-unchanged": widget("fp16 gemm", cells.MATMUL, 20, False),
    "widget-items-10k": widget("10,000 compile-time items", cells.COMPILE_TIME_ITEMS.format(items=10_000), 1000, True),
    "items-5k": compile_time_items(5_000, 500),
    "items-10k": compile_time_items(10_000, 1000),
    "items-20k": compile_time_items(20_000, 2000),
    "simulate-add": simulate("1 M-element add", cells.ELEMENTWISE, "add", 50, add_arguments),
    "simulate-matmul": simulate("256x256x256 fp16 gemm", cells.MATMUL, "matmul", 200, partial(matmul_arguments, 256)),
    "simulate-matmul-hopper": simulate(
        "512x512x512 fp16 gemm in roles",
        cells.HOPPER_MATMUL.format(size=512),
        "matmul",
        400,
        partial(matmul_arguments, 512),
        "sm_90a",
    ),
    "simulate-attention": simulate(
        "attention 256x2x64", cells.ATTENTION, "attention", float("nan"), attention_arguments
    ),
}


def rows(only: str, repeat: int) -> Iterator[Row]:
    """One row for each measure whose name holds `only`; a measure that fails says so in its row."""
    for name, measure in MEASURES.items():
        if only in name:
            try:
                yield measure(repeat)
            except Exception as error:
                yield Row(name, float("nan"), None, None, None, f"{type(error).__name__}: {str(error).strip()[:160]}")


def main() -> int:
    """Print the table; 1 if a measure failed."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", default="", metavar="WORD")
    asked.add_argument("--repeat", type=int, default=7)
    asked.add_argument("--json", metavar="FILE")
    given = asked.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}; median and best of {given.repeat}, warm process")
    print(f"{'what':44} {'budget':>9} {'median':>9} {'best':>9} {'processor':>10} {'median/budget':>14}")
    done = []
    for row in rows(given.only, given.repeat):
        done.append(row)
        budget = f"{row.budget:6.0f} ms" if row.budget == row.budget else "-"
        figures = [f"{value:6.1f} ms" if value is not None else "-" for value in (row.median, row.best, row.processor)]
        ratio = f"{row.median / row.budget:.2f}" if row.median is not None and row.budget == row.budget else "-"
        line = f"{row.name:44} {budget:>9} {figures[0]:>9} {figures[1]:>9} {figures[2]:>10} {ratio:>14}  {row.note}"
        print(line.rstrip(), flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps([asdict(row) for row in done], indent=1) + "\n", encoding="utf-8")
    return int(any(row.median is None for row in done))


if __name__ == "__main__":
    sys.exit(main())
