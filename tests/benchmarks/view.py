"""Measure the view's budgets in headless Chromium and print each beside its budget.

    python tests/benchmarks/view.py [--lines N] [--repeat N]

Needs Playwright for Python and a Chromium of the system (`make test-browser` installs the first). The trace is made up: five stages
of N different lines, and a compile-time loop of N / 10 turns. Nothing is asserted; what a person waits for is measured, up to the
frame in which it is shown.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from pathlib import Path

BUNDLE = Path(__file__).resolve().parents[2] / "tilelang_nb" / "notebook" / "static" / "widget.js"

# name -> (budget in ms, JavaScript that does it; `click` presses a part of the view)
STEPS = {
    "open a stage": (200, "mount(host, trace)"),
    "switch the stage": (100, "click('[data-tnb=chip][data-name=lower]')"),
    "switch it back": (100, "click('[data-tnb=chip][data-name=cuda]')"),
    "jump to the end": (100, "scroller().scrollTop = 1e9"),
    "pin a line": (100, "click('[data-tnb=source] [data-line=\"5\"]')"),
    "open the unroll view": (200, "click('[data-tnb=tab][data-name=unroll]')"),
    "sweep to another turn": (100, "sweep()"),
    "switch to a stage of TIR": (100, "click('[data-tnb=chip][data-name=lower]')"),
    "diff of two stages, this thread": (100, "click('[data-tnb=tab][data-name=diff]')"),
    "diff of two stages, until shown": (
        1000,
        "await until('[data-tnb=diff] :is([data-change=add], [data-change=del])')",
    ),
    "search every stage": (1000, "search(); await until('[data-tnb=search-count]:not(:empty)')"),
}

PAGE = """async ([code, lines, steps]) => {
  document.body.replaceChildren();
  const { mount } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const text = (v) => {
    const rows = [];
    for (let i = 0; rows.length < lines; i++) {
      if (v && i % (211 + v) === 0) rows.push(`    if tx < ${i}:`);
      rows.push(`        C[${i % 7} * 128 + tx + ${i}] = T.Cast("float16", A[by * 1024 + ${i * 3}] * T.float32(${i % 503 ? i % 97 : v}.0))`);
    }
    return rows.slice(0, lines).join("\\n");
  };
  const links = Array.from({ length: lines / 10 }, (_, i) => [1 + 10 * i, 10, [3 + (i % 40)]]);
  const stage = (name, v, language = "tir") =>
    ({ name, language, state: "changed", plus: 9, minus: 8, milliseconds: 3, text: text(v), lines: links, statements: [[1, lines, 0]] });
  const turns = Array.from({ length: lines / 10 }, (_, i) => ({ value: `${i}`, bound: [`${i}`], statements: [10 * i, 10 * i + 9] }));
  const loop = { id: 1, kind: "for", line: 4, header: "for i in table", names: ["i"], iterations: turns };
  const trace = {
    format: "tilelang_nb.trace", version: 1, ok: true, target: "sim", diagnostics: [],
    source: { text: Array.from({ length: 50 }, (_, i) => `x = ${i}`).join("\\n"), first_line: 1 },
    kernels: [{ name: "k", ok: true, stages: [stage("tile", 0), stage("mid", 1), stage("lower", 2), stage("thread", 3), stage("cuda", 4, "cuda")],
      unroll: { kind: "kernel", line: 1, iterations: [{ children: [loop] }] } }],
  };
  const host = document.body.appendChild(document.createElement("div"));
  const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const click = (selector) => document.querySelector(selector).click();
  const scroller = () => document.querySelector("[data-tnb=code] .scroller");
  const until = async (selector) => { while (!document.querySelector(selector)) await shown(); };
  const enter = (input, value) => { input.value = value; input.dispatchEvent(new Event("input", { bubbles: true })); };
  const sweep = () => enter([...document.querySelectorAll("[data-tnb=knob]")].at(-1), "4711");
  const search = () => enter(document.querySelector("[data-tnb=search]"), "tx + 99");
  const times = {};
  for (const [name, step] of steps) {
    const act = new Function("mount", "host", "trace", "click", "scroller", "until", "sweep", "search", `return (async () => { ${step} })()`);
    await new Promise((done) => setTimeout(done, 300));
    const begin = performance.now();
    await act(mount, host, trace, click, scroller, until, sweep, search);
    await shown();
    times[name] = performance.now() - begin;
  }
  const fault = document.querySelector("[data-tnb=error]");
  if (fault) throw new Error(fault.textContent);
  return times;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright

    code = BUNDLE.read_text("utf-8")
    steps = [[name, step] for name, (_, step) in STEPS.items()]
    runs = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        for _ in range(chosen.repeat):
            page = browser.new_page(viewport={"width": 1200, "height": 700})
            runs.append(page.evaluate(PAGE, [code, chosen.lines, steps]))
            page.close()
        browser.close()
    print(f"bundle {len(code.encode()):,} of 120,000 bytes; {chosen.lines:,} lines a stage, {chosen.repeat} runs")
    print(f"{'':34}{'median':>9}{'best':>9}{'budget':>9}{'ratio':>7}")
    for name, (budget, _) in STEPS.items():
        times = [run[name] for run in runs]
        middle = statistics.median(times)
        print(f"{name:34}{middle:6.0f} ms{min(times):6.0f} ms{budget:6} ms{middle / budget:7.2f}")


if __name__ == "__main__":
    main()
