// The launch and what the kernel uses, every value with its origin; a simulated run is never timed.

import { button, div, fill, h, span, type Kid } from "../dom";
import type { Pane, Shell } from "../state";
import { bytes, grouped, percent } from "../text";
import type { WireArena, WireFact } from "../wire";

/** How tiles lie in memory: much detail, that stands behind a fold. */
const MEMORY = new Set(["swizzle", "tensor map", "descriptor"]);
const LAUNCH = new Set(["launch", "time", "rate", "traffic", "roofline", "baseline", "check", "compiled in"]);

export class RunPane implements Pane {
  readonly element: HTMLElement;
  private readonly page = div("sections");

  constructor(private readonly shell: Shell) {
    this.element = div("body", div("report", this.page));
  }

  draw(): void {
    const { trace, state } = this.shell;
    const { wire } = state.kernel;
    const { run } = trace.wire;
    const facts = wire.facts ?? [];
    const isLaunch = (fact: WireFact): boolean => LAUNCH.has(fact.name) || /^(launch|edge of) /.test(fact.name);
    const simulated = facts.filter((fact) => fact.origin === "simulator" && !isLaunch(fact));
    const counters = [...(wire.counters ?? []), ...simulated];
    const launch = facts.filter((fact) => isLaunch(fact) && !run?.facts?.some((one) => one.name === fact.name));
    const others = facts.filter((fact) => !isLaunch(fact) && !simulated.includes(fact));
    const memory = others.filter((fact) => MEMORY.has(fact.name));
    const decided = others.filter((fact) => fact.line && fact.origin === "compiler" && !memory.includes(fact));
    // the table below says where each tile lies
    const resources = others.filter((fact) => !memory.includes(fact) && !decided.includes(fact)).map((fact) => (wire.arena?.length && fact.name === "shared memory" ? { ...fact, detail: null } : fact));
    const findings = trace.problems.filter((problem) => problem.foundIn === state.kernel.name);
    const launches = run?.launches?.find((one) => one.kernel === state.kernel.name)?.count;
    const launchRows = [
      run?.call && this.row({ name: "call", value: run.call, detail: trace.wire.device, origin: null }),
      run?.result && this.row({ name: "result", value: run.result }),
      launches && this.row({ name: "launched", value: launches === 1 ? "once" : `${grouped(launches)} times`, detail: run?.call ? null : trace.wire.device }),
      run?.facts?.map((fact) => this.row(fact)),
      launch.map((fact) => this.row(fact)),
    ];
    fill(
      this.page,
      this.section(
        "Findings",
        findings.map((found) =>
          h(
            "tr",
            null,
            h("td", null, span(found.wire.severity === "error" ? "bad" : "amber", `${found.wire.severity === "error" ? "✕" : "▲"} ${found.wire.code}`)),
            h("td", null, button(`finding-${found.wire.code}-${found.place?.line ?? 0}`, found.wire.message.replaceAll("`", ""), () => this.shell.set({ view: "problems", problem: trace.problems.indexOf(found) }), { class: "link value" }), this.lineLink(found.place?.line, " · ")),
          ),
        ),
      ),
      this.section("Launch", launchRows),
      this.section("Parameters", wire.parameters?.map((one) => this.row({ name: one.name, value: one.dtype, unit: one.kind === "scalar" ? "scalar" : `[${one.shape.join(", ")}]` }))),
      this.section(
        "Resources",
        resources.map((fact) => this.row(fact)),
        this.arena(wire.arena ?? []),
      ),
      this.section(
        "Decisions",
        decided.map((fact) => this.row(fact)),
        memory.length > 0 && h("details", null, h("summary", null, `how tiles lie in memory: ${grouped(memory.length)}`), h("table", { class: "table" }, h("tbody", null, memory.map((fact) => this.row(fact, false))))),
      ),
      this.section(
        "Simulated device",
        counters.map((fact) => this.row(fact)),
      ),
      wire.printed?.length ? this.section("Printed while it was built", null, h("pre", { class: "printed" }, wire.printed.map((line) => [line, h("br")]))) : null,
    );
    if (!this.page.childNodes.length) fill(this.page, div("empty", "Nothing is known of a launch: the kernel was not built."));
  }

  /** A table under a title. Where one origin is that of most rows it stands beside the title, and at the other rows theirs. */
  private section(title: string, rows: Kid, ...rest: Kid[]): Kid {
    const table = h("table", { class: "table" }, h("tbody", null, rows));
    const hasRows = table.rows.length > 0;
    const more = rest.flat(3).some(Boolean);
    const tags = [...table.querySelectorAll<HTMLElement>(".tag")];
    const many = (tag: HTMLElement): number => tags.filter((one) => one.textContent === tag.textContent).length;
    const common = tags.find((tag) => many(tag) > 1 && many(tag) * 2 > table.rows.length)?.textContent;
    for (const tag of tags) if (tag.textContent === common) tag.remove();
    return (hasRows || more) && h("section", null, h("h4", null, title, common && [" ", span("tag", common)]), hasRows && table, rest);
  }

  private row(fact: WireFact, withOrigin = true): Kid {
    const bar = typeof fact.used === "number" && typeof fact.max === "number" && fact.max > 0 ? fact.used / fact.max : null;
    return h(
      "tr",
      { "data-tnb": "fact", "data-name": fact.name },
      h("td", null, fact.name === "launch" ? "grid" : fact.name),
      h(
        "td",
        null,
        fact.ok === true && span("good", "✓ "),
        fact.ok === false && span("bad", "✕ "),
        span(fact.origin === "none" ? "dim" : "value", fact.value),
        fact.unit && ` ${fact.unit}`,
        " ",
        withOrigin && fact.origin && fact.origin !== "none" && span("tag", fact.origin),
        bar !== null && h("span", { class: "meter", style: { "--share": `${Math.min(100, bar * 100)}%` }, title: `${percent(bar)} of ${grouped(fact.max!)}` }),
        (fact.detail || fact.line) && h("div", { class: "dim" }, fact.detail, this.lineLink(fact.line, fact.detail ? " · " : "")),
      ),
    );
  }

  private lineLink(line: number | null | undefined, before: string): Kid {
    return line ? [before, button(`line-${line}-${this.serial++}`, `line ${line}`, () => this.shell.pin(line, false, "other"), { class: "link" })] : null;
  }

  private serial = 0;

  /** Shared memory as a strip: tiles at their offsets, those that share a place below each other. */
  private arena(buffers: readonly WireArena[]): Kid {
    if (!buffers.length) return null;
    const end = Math.max(...buffers.map((one) => one.offset + one.bytes));
    const lanes: WireArena[][] = [];
    for (const buffer of [...buffers].sort((a, b) => a.offset - b.offset)) {
      const lane = lanes.find((one) => one.at(-1)!.offset + one.at(-1)!.bytes <= buffer.offset);
      if (lane) lane.push(buffer);
      else lanes.push([buffer]);
    }
    const shapeOf = (buffer: WireArena): string =>
      [Array.isArray(buffer.shape) ? buffer.shape.join(" × ") : buffer.shape ? String(buffer.shape) : "", buffer.dtype ?? "", buffer.layout ?? ""].filter(Boolean).join(", ");
    return [
      h("h5", null, "Shared memory by tile", span("dim", ` ${bytes(end)}${lanes.length > 1 ? "; tiles below each other take turns at one place" : ""}`)),
      h(
        "div",
        { class: "arena", role: "group", "aria-label": "shared memory" },
        lanes.map((lane) =>
          div(
            "lane",
            lane.map((buffer) =>
              button(`arena-${buffer.name}`, buffer.name, () => buffer.line && this.shell.pin(buffer.line, false, "other"), {
                style: { left: `${(buffer.offset / end) * 100}%`, width: `${(buffer.bytes / end) * 100}%` },
                title: `${buffer.name}: ${grouped(buffer.bytes)} bytes from ${grouped(buffer.offset)}`,
              }),
            ),
          ),
        ),
      ),
      h(
        "table",
        { class: "table" },
        h(
          "tbody",
          null,
          buffers.map((buffer) =>
            h("tr", null, h("td", null, buffer.name), h("td", null, span("value", grouped(buffer.bytes)), " bytes ", span("dim", `from ${grouped(buffer.offset)}${shapeOf(buffer) ? ` · ${shapeOf(buffer)}` : ""}`), buffer.line ? this.lineLink(buffer.line, " · ") : span("dim", " · added by the compiler"))),
          ),
        ),
      ),
    ];
  }
}
