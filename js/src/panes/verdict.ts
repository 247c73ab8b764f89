// The bar on top: did it work, what does it use, and how does that compare with the last run. Whole facts only: what does not fit
// is left out, never cut.

import { button, div, fill, h, roving, ACROSS, span, type Kid } from "../dom";
import type { Pane, Shell } from "../state";
import { milliseconds, plural } from "../text";
import type { WireFact } from "../wire";

// what the bar says, most telling first, and the words beside a value that does not speak for itself; everything stands in Run
const MEASURED: Record<string, string> = { time: "", rate: "", check: "", roofline: "of the roofline", baseline: "against the baseline" };
const USED: Record<string, string> = { launch: "", registers: "registers", spills: "spills", "shared memory": "shared", occupancy: "occupancy" };

export class Verdict implements Pane {
  readonly element = h("div", { class: "verdict", "data-tnb": "verdict" });

  constructor(private readonly shell: Shell) {}

  draw(): void {
    const { trace, state } = this.shell;
    const errors = trace.problems.filter((problem) => problem.wire.severity === "error" && !problem.foundIn).length;
    const failed = errors > 0 || !trace.wire.ok;
    const findings = trace.problems.filter((problem) => problem.foundIn);
    const isWrong = findings.some((found) => found.wire.severity === "error");
    const isSimulated = trace.wire.target === "sim";
    fill(
      this.element,
      div(
        "say",
        failed
          ? span("state bad", `✕ ${errors ? plural(errors, "error") : "failed"}`)
          : findings.length
            ? button("findings", `${isWrong ? "✕" : "▲"} ${plural(findings.length, "finding")}`, () => this.shell.set({ view: "problems" }), {
                class: `state ${isWrong ? "bad" : "amber"}`,
                title: "what the simulated device found in the launch",
              })
            : trace.problems.length
              ? button("warnings", `▲ ${plural(trace.problems.length, trace.problems.some(({ wire }) => wire.severity === "warning") ? "warning" : "note")}`, () => this.shell.set({ view: "problems" }), { class: "state amber" })
              : span("state good", "✓ ok"),
        this.names(),
        failed
          ? null
          : isSimulated
          ? h("span", { class: "tag simulated", title: trace.wire.device ?? "run by the simulated device; not timed" }, "simulated")
          : trace.wire.arch && h("span", { class: "tag", title: trace.wire.device }, trace.wire.arch),
      ),
      div("facts", failed ? this.stopped() : this.facts(), this.elapsed(failed)),
      button("tall", state.isTall ? "Compact" : "Expand", () => this.shell.set({ isTall: !state.isTall }), { class: "tool", title: "height (f)" }),
    );
    this.element.toggleAttribute("data-failed", failed);
    const chosen = this.element.querySelector<HTMLElement>('.names [aria-selected="true"]');
    if (chosen?.parentElement) chosen.parentElement.scrollLeft = chosen.offsetLeft - chosen.parentElement.offsetLeft - 24;
  }

  /** The kernel's name; with several, one to choose. */
  private names(): Kid {
    const { trace, state } = this.shell;
    if (trace.kernels.length < 2) return span("name", state.kernel.name);
    const list = h(
      "div",
      { class: "names", role: "tablist", "aria-label": "kernels" },
      trace.kernels.map((kernel) =>
        button(`kernel-${kernel.name}`, kernel.name, () => this.choose(kernel.name), {
          class: "name",
          role: "tab",
          "data-tnb": "kernel",
          "data-name": kernel.name,
          "aria-selected": String(kernel === state.kernel),
          tabindex: kernel === state.kernel ? 0 : -1,
        }),
      ),
    );
    roving(list, ACROSS, (distance) => {
      const { kernels } = trace;
      this.choose(kernels[(kernels.indexOf(this.shell.state.kernel) + distance + kernels.length) % kernels.length].name);
      this.element.querySelector<HTMLElement>('.names [aria-selected="true"]')?.focus();
    });
    return list;
  }

  private choose(name: string): void {
    const { trace, state } = this.shell;
    const kernel = trace.kernels.find((one) => one.name === name)!;
    const stage = kernel.stages.find((one) => one.name === state.stage.name && one.listing) ?? kernel.initial;
    this.shell.set({ kernel, stage, site: null, path: [] });
    this.shell.say(`kernel ${name}`);
  }

  private stopped(): Kid {
    const at = this.shell.state.kernel.stages.find((stage) => stage.state === "failed");
    return [span("fact", span("value", "nothing was launched")), at && span("fact dim", `stopped at ${at.name}`)];
  }

  private facts(): Kid {
    const known = this.known();
    const named = (words: Record<string, string>): Kid =>
      Object.entries(words).map(([name, word]) => {
        const fact = known.get(name);
        return fact && this.fact(fact, word);
      });
    const shown: Kid[] = [named(MEASURED), this.comparison()];
    return [shown, named(USED)];
  }

  /** The facts of the shown kernel by name; a simulated launch has no time. */
  private known(): Map<string, WireFact> {
    const { trace, state } = this.shell;
    const all = [...(trace.wire.run?.facts ?? []), ...(state.kernel.wire.facts ?? [])];
    return new Map(all.filter((fact) => fact.origin !== "none" && !(fact.name === "time" && fact.origin === "simulator")).map((fact) => [fact.name, fact]));
  }

  private fact(fact: WireFact, word: string): Kid {
    const title = `${fact.name}: ${fact.value}${fact.unit ? ` ${fact.unit}` : ""}${fact.detail ? `\n${fact.detail}` : ""}${fact.origin ? `\nfrom: ${fact.origin}` : ""}`;
    const isMeasure = fact.unit === "ms" || fact.unit?.endsWith("/s");
    return button(
      `fact-${fact.name}`,
      [fact.ok === true && span("good", "✓"), fact.ok === false && span("bad", "✕"), span("value", isMeasure ? `${fact.value} ${fact.unit}` : fact.value), word && span("dim", word)],
      () => this.shell.set({ view: "run" }),
      { class: "fact", title },
    );
  }

  /** Time against the last run, where both were timed; else only that there was one. */
  private comparison(): Kid {
    const { trace, state } = this.shell;
    const { previous } = trace;
    if (!previous) return null;
    const run = previous.execution === null || previous.execution === undefined ? "the last run" : `[${previous.execution}]`;
    const open = (): void => this.shell.set({ view: "diff", base: "last" });
    const then = parseFloat(previous.kernels?.[state.kernel.name]?.facts?.time ?? "");
    const now = parseFloat(this.known().get("time")?.value ?? "");
    if (!(then > 0) || !(now > 0)) return button("previous", [span("dim", "compare with"), span("value", run)], open, { class: "fact", title: "what this run changed in every stage" });
    const change = Math.round((now / then - 1) * 100);
    return button("previous", [span(`value ${change <= 0 ? "good" : "amber"}`, `${change > 0 ? "+" : "−"}${Math.abs(change)} %`), span("dim", `time against ${run}`)], open, {
      class: "fact",
      title: `${then} then, ${now} now; opens the comparison`,
    });
  }

  private elapsed(failed: boolean): Kid {
    const { trace, state } = this.shell;
    const sum = state.kernel.stages.reduce((total, stage) => total + (stage.milliseconds ?? 0), 0);
    const said = failed ? undefined : this.known().get("compiled in")?.value; // the same figure as in Run
    if (said) return span("fact dim wide", `compiled in ${said}`);
    const elapsed = trace.wire.elapsed ?? sum;
    return elapsed > 0 && span("fact dim wide", `${failed ? "after" : "compiled in"} ${milliseconds(elapsed)}`);
  }
}
