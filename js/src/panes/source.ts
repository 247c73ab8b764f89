// The cell's text: what each line costs in the shown stage, pins, squiggles with their messages.

import { CHARACTER, CodeView, type Look, type Rows } from "../code_view";
import { bold, div, fill, h, prose, span, type Kid } from "../dom";
import { Carries } from "../highlight";
import type { Tick } from "../minimap";
import type { Mark } from "../paint";
import type { Pane, Shell } from "../state";
import { brief, columns, plural } from "../text";
import type { Place, Problem } from "../trace";

/** A line of the cell, or a message under one. */
type Row = { readonly line: number } | { readonly problem: Problem; readonly index: number };

export class SourcePane implements Pane {
  readonly element: HTMLElement;
  private readonly head = div("head");
  readonly code: CodeView;
  private readonly carries: Carries;
  private readonly rows: readonly Row[];
  private readonly rowOfLine = new Map<number, number>();
  private readonly width: number;
  private heaviest = 1;
  private readonly squiggles = new Map<number, Mark[]>();
  private readonly worst = new Map<number, string>();

  constructor(private readonly shell: Shell) {
    const { trace } = shell;
    this.carries = new Carries(trace.rows, "python", trace.rows.join("\n"));
    this.width = trace.rows.reduce((most, row) => Math.max(most, columns(row)), 0);
    const under = new Map<number, Row[]>();
    trace.problems.forEach((problem, index) => {
      if (!problem.place) return;
      const { line } = problem.place;
      if (problem.wire.label || problem.wire.message) under.set(line, [...(under.get(line) ?? []), { problem, index }]);
      if (this.worst.get(line) !== "error") this.worst.set(line, problem.wire.severity);
      this.underline(problem.place, problem.wire.severity, problem.wire.code);
      // two lines under one text would hide each other
      for (const { place } of problem.notes) if (place && !(place.line === line && place.column < problem.place.endColumn && problem.place.column < place.endColumn)) this.underline(place, "note", "");
    });
    this.rows = trace.rows.flatMap((_, i) => [{ line: trace.first + i }, ...(under.get(trace.first + i) ?? [])]);
    this.rows.forEach((row, at) => "line" in row && this.rowOfLine.set(row.line, at));
    this.code = new CodeView("source", "source of the cell", "source", {
      hover: (row) => this.hover(row),
      pick: (row, adding) => this.pick(row, adding),
      cursor: (row) => this.tell(row),
    });
    this.element = div("pane source", this.head, this.code.element);
  }

  close(): void {
    this.code.close();
  }

  draw(): void {
    const { trace, state } = this.shell;
    const run = trace.wire.execution ?? null;
    fill(
      this.head,
      bold("source"),
      run !== null && span("dim", `In [${run}]`),
      span("grow"),
      state.stage.name !== "source" && state.stage.listing && h("span", { class: "dim ellipsis", title: "how many lines of the stage each source line makes" }, h("i", { class: "swatch" }), `lines in ${state.stage.name}`),
    );
    const heaviest = Math.max(0, ...trace.rows.map((_, i) => this.weight(trace.first + i)));
    this.heaviest = Math.max(1, heaviest);
    this.element.classList.toggle("light", !heaviest);
    if (this.code.rows.count) this.code.redraw();
    else this.code.show(this.view());
  }

  /** Brings a line into sight. */
  reveal(line: number): void {
    const row = this.rowOfLine.get(line);
    if (row !== undefined) this.code.reveal(row);
  }

  /** Begins with a line, of a cell that may be long. */
  begin(line: number): void {
    this.code.begin(this.rowOfLine.get(line) ?? 0);
  }

  /** Brings a problem into sight, with its message. */
  revealProblem(index: number): void {
    const at = this.rows.findIndex((row) => "problem" in row && row.index === index);
    if (at < 0) return;
    const { problem } = this.rows[at] as { problem: Problem };
    const { line, column, endLine, endColumn } = problem.place!;
    this.code.placed(() => {
      this.code.scroller.scrollLeft = 0;
      this.code.reveal(at - 1);
      if (!this.code.isVisible(at)) this.code.goTo(this.code.top + 36);
      this.code.reach(column, line === endLine ? endColumn : column);
    });
  }

  soften(lines: readonly number[] | null): void {
    this.code.mark("data-lit", (at) => {
      const row = this.rows[at];
      return lines !== null && "line" in row && lines.includes(row.line);
    });
  }

  private underline(place: Place, severity: string, code: string): void {
    const { trace } = this.shell;
    for (let line = place.line; line <= Math.min(place.endLine, place.line + 20); line++) {
      const text = trace.rows[line - trace.first];
      if (text === undefined) continue;
      const start = line === place.line ? place.column : text.length - text.trimStart().length;
      const end = Math.max(line === place.endLine ? place.endColumn : text.trimEnd().length, start + (place.line === place.endLine ? 1 : 0));
      if (end > start)
        this.squiggles.set(line, [...(this.squiggles.get(line) ?? []), { start, end, class: `squiggle ${severity}`, data: { "data-squiggle": code || severity } }]);
    }
  }

  private weight(line: number): number {
    const { stage } = this.shell.state;
    return stage.name === "source" ? 0 : (stage.listing?.weight(line) ?? 0);
  }

  private view(): Rows {
    return {
      count: this.rows.length,
      width: this.width + 24,
      look: (at) => this.look(at),
      ticks: () => this.ticks(),
      skips: (at) => "problem" in this.rows[at],
    };
  }

  private look(at: number): Look {
    const { trace, state } = this.shell;
    const row = this.rows[at];
    if ("problem" in row) {
      const { severity, label, message } = row.problem.wire;
      return {
        text: "",
        language: "python",
        gutter: [span("sign"), span("number"), span("weight")],
        class: `message ${severity}`,
        title: label ? `${label}\n${message}` : message,
        node: this.message(row.problem.place!.column, label || message),
      };
    }
    const { line } = row;
    const text = trace.rows[line - trace.first];
    const pin = state.pins.indexOf(line);
    const severity = this.worst.get(line);
    const weight = this.weight(line);
    const inLoop = state.view === "unroll" && state.site?.chain().some((site) => site.line === line);
    const marks = [...(this.squiggles.get(line) ?? []), ...state.search.marks(text)];
    return {
      text,
      language: "python",
      carry: this.carries.at(line - trace.first),
      marks,
      pins: pin < 0 ? [] : [pin],
      class: inLoop ? "lit" : "",
      title: weight > 0 ? `${plural(weight, "line")} of ${state.stage.name}` : null,
      data: { "data-line": String(line), "data-hit": state.search.marks(text).length ? "" : null },
      gutter: [
        span(`sign ${severity ?? ""}`, this.sign(severity, pin)),
        span("number", line),
        h("span", { class: "weight", "aria-hidden": "true" }, weight > 0 && [h("i", { style: { "--share": `${(weight / this.heaviest) * 100}%` } }), span("", brief(weight))]),
      ],
    };
  }

  /** A message under its place, or from the left of the code on where it would not fit there. */
  private message(column: number, text: string): Kid {
    const room = this.code.scroller.clientWidth - (this.element.classList.contains("light") ? 50 : 86);
    const fits = room <= 0 || (column + 2) * CHARACTER + text.length * 7.1 <= room;
    const words = h("span", { class: "words ellipsis", style: { "max-width": fits ? "none" : `${room}px` } }, prose(text));
    return [fits && span("caret", `${" ".repeat(column)}╰ `), words];
  }

  private sign(severity: string | undefined, pin: number): Kid {
    if (pin >= 0) return h("span", { class: "dot", style: { "--pin": `var(--pin${pin})` } }, pin + 1);
    return severity === "error" ? "✕" : severity === "warning" ? "▲" : severity ? "•" : null;
  }

  private *ticks(): Iterable<Tick> {
    const { state, trace } = this.shell;
    for (const [at, row] of this.rows.entries()) {
      if ("problem" in row) yield { first: at - 1, count: 1, colour: row.problem.wire.severity === "error" ? "--error" : "--warning", atEdge: true };
      else {
        const pin = state.pins.indexOf(row.line);
        if (pin >= 0) yield { first: at, count: 1, colour: `--pin${pin}` };
        else if (state.search.query && state.search.marks(trace.rows[row.line - trace.first]).length) yield { first: at, count: 1, colour: "--hit-tick" };
      }
    }
  }

  private hover(at: number | null): void {
    const row = at === null ? null : this.rows[at];
    this.shell.soften(row && "line" in row ? [row.line] : null);
  }

  private pick(at: number, adding: boolean): void {
    const row = this.rows[at];
    if ("problem" in row) this.shell.set({ view: "problems", problem: row.index });
    else {
      this.shell.pin(row.line, adding, "source");
      this.tell(at);
    }
  }

  private tell(at: number): void {
    const row = this.rows[at];
    if (!("line" in row)) return;
    const { state } = this.shell;
    this.shell.soften([row.line]);
    if (state.stage.name === "source" || !state.stage.listing) return;
    const weight = this.weight(row.line);
    const site = state.kernel.sites.find((one) => one.line === row.line);
    const decided = (state.kernel.wire.facts ?? []).filter((fact) => fact.line === row.line && fact.origin === "compiler").map((fact) => ` · ${fact.value}`);
    if (weight) this.shell.tell(bold(`line ${row.line}`), ` makes ${plural(weight, "line")} of ${state.stage.name}`, decided);
    else this.shell.tell(bold(`line ${row.line}`), ` makes no line of ${state.stage.name}`, site && `: ${site.kind === "for" ? "this loop" : `this ${site.kind}`} runs while the kernel is built`);
  }
}

