// Two stages against each other, or a stage against the same stage of the cell's last run: unified or side by side.

import { CodeView, type Look, type Rows } from "../code_view";
import { ADDED, CHANGED, diffRows, FOLDED, REMOVED, SAME, type DiffRows } from "../diff_rows";
import { bold, button, div, fill, h, keycap, span, type Kid } from "../dom";
import { Listing } from "../listing";
import type { Tick } from "../minimap";
import type { Mark } from "../paint";
import { LAST_RUN, pinOf, pinsOf, type Shell } from "../state";
import { clamp, grouped, plural } from "../text";
import { differences } from "../words";
import { baseOf } from "./diff_base";
import { carriesOf, pinDot } from "./listing_rows";
import { codeListeners, pinBar, softenCode, type CodePane } from "./stage";

interface Shown {
  readonly a: Listing;
  readonly b: Listing;
  readonly rows: DiffRows;
  readonly opened: Set<number>;
  readonly mode: "unified" | "split";
}

export class DiffPane implements CodePane {
  readonly element: HTMLElement;
  private readonly sub = div("sub busy");
  private readonly note = div("empty");
  private readonly unified: CodeView;
  private readonly left: CodeView;
  private readonly right: CodeView;
  private readonly holder = h("div", { class: "sides", "data-tnb": "diff" });
  private shown: Shown | null = null;
  private readonly past = new Map<string, Listing>();
  private serial = 0;

  constructor(private readonly shell: Shell) {
    const plain = codeListeners(shell, this);
    const listeners = {
      ...plain,
      hover: (row: number | null): void => this.over(row, plain.hover!),
      cursor: (row: number): void => this.over(row, plain.cursor!),
    };
    const pick = (row: number, adding: boolean): void => {
      if (this.shown?.rows.kind[row] === FOLDED) this.open(row);
      else if (this.lineAt(row) !== null) listeners.pick!(row, adding);
      else this.pickRemoved(row, adding);
    };
    this.unified = new CodeView("diff", "comparison", "diff-unified", { ...listeners, pick });
    this.left = new CodeView("diff-a", "comparison, first side", "diff-a", { pick, hover: (row) => this.explainRemoved(row), cursor: (row) => this.explainRemoved(row), scroll: (top) => this.follow(this.right, top) });
    this.right = new CodeView("diff-b", "comparison, second side", "diff-b", { ...listeners, pick, scroll: (top) => this.follow(this.left, top) });
    this.left.element.classList.add("no-map");
    this.element = div("body", this.sub, this.note, this.holder);
  }

  get code(): CodeView {
    return this.shell.state.mode === "split" ? this.right : this.unified;
  }

  close(): void {
    for (const view of [this.unified, this.left, this.right]) view.close();
  }

  draw(): void {
    const { state, trace } = this.shell;
    const { stage, mode } = state;
    const base = baseOf(this.shell);
    const a = base ? base.listing : this.pastListing();
    const b = base === null && stage.name === "source" && trace.previous?.cell ? this.cellListing() : stage.listing;
    this.head();
    const say = (words: Kid): void => {
      fill(this.note, words);
      this.note.hidden = false;
      this.holder.hidden = true;
      this.shown = null;
    };
    if (!b) return say(`${stage.name} was not reached.`);
    if (!a) return say(base ? `${base.name} was not reached.` : "The last run did not reach this stage.");
    if (a === b && base) return say(base === stage ? "Choose another stage to compare with: Shift+click a chip, or A above." : `${stage.name} has the same text as ${base.name}.`);
    if (base && state.base === null && base.language !== stage.language && base.language !== "python") {
      const thread = state.kernel.stages.find((one) => one.name === "thread" && one.listing);
      return say([
        h("p", null, `${stage.name} is the first text in its language: line by line it has nothing in common with ${base.name}. Pick a stage of the row above, or`),
        div(
          "actions",
          thread && button("diff-lowered", "compare thread with tile", () => this.shell.set({ stage: thread, base: "tile" }), { class: "button main" }),
          button("diff-anyway", "compare them all the same", () => this.shell.set({ base: base.name }), { class: "button" }),
        ),
      ]);
    }
    if (this.shown && this.shown.a === a && this.shown.b === b && this.shown.mode === mode) {
      this.redraw();
      return;
    }
    const runs = this.shell.differ.runs(a, b);
    const serial = ++this.serial;
    if (runs instanceof Promise) {
      say(`comparing ${plural(a.rows.length + b.rows.length, "line")} …`);
      void runs.then((known) => serial === this.serial && this.show(a, b, known, new Set()));
    } else this.show(a, b, runs, new Set());
  }

  lineAt(row: number): number | null {
    return (this.shown?.rows.kind[row] !== FOLDED && this.shown?.rows.b[row]) || null;
  }

  rowOf(line: number): number {
    const { rows } = this.shown ?? {};
    if (!rows) return -1;
    for (let row = 0; row < rows.count; row++) if (rows.b[row] === line || (rows.kind[row] === FOLDED && rows.b[row] <= line && line < rows.b[row] + rows.hidden[row])) return row;
    return -1;
  }

  restore(): void {
    this.redraw();
  }

  soften(lines: readonly number[] | null): void {
    if (this.shown) softenCode(this.shell, this, lines);
  }

  private over(row: number | null, otherwise: (row: number) => void): void {
    if (row !== null && this.lineAt(row) === null) this.explainRemoved(row);
    else otherwise(row!);
  }

  /** A line of the first text: which stage made it, and which removed it. */
  private explainRemoved(row: number | null): void {
    const base = baseOf(this.shell);
    const line = row === null || this.shown?.rows.kind[row] === FOLDED ? 0 : (this.shown?.rows.a[row] ?? 0);
    if (line && base) this.shell.explain(line, base);
  }

  private pickRemoved(row: number, adding: boolean): void {
    const origin = this.shown?.a.origin(this.shown.rows.a[row]);
    if (origin) this.shell.pin(origin.lines[0], adding, "code");
    this.explainRemoved(row);
  }

  /** To the next or previous block of changes. */
  step(distance: 1 | -1): void {
    const { rows } = this.shown ?? {};
    if (!rows) return;
    const differs = (row: number): boolean => rows.kind[row] !== SAME && rows.kind[row] !== FOLDED;
    let row = this.code.cursor;
    while (row >= 0 && row < rows.count && differs(row)) row += distance;
    while (row >= 0 && row < rows.count && !differs(row)) row += distance;
    if (row < 0 || row >= rows.count) {
      this.shell.say("no further change");
      return;
    }
    if (distance < 0) while (row > 0 && differs(row - 1)) row--;
    this.code.reveal(row);
  }

  private head(): void {
    const { state, trace } = this.shell;
    const base = baseOf(this.shell);
    const select = h(
      "select",
      { "aria-label": "compare with", "data-k": "diff-base", "data-tnb": "diff-base", on: { change: () => this.shell.set({ base: select.value }) } },
      state.kernel.stages.filter((one) => one.listing && (!one.sameAs || one === base)).map((one) => h("option", { value: one.name, selected: one === base }, one.name)),
      trace.previous && h("option", { value: LAST_RUN, selected: base === null }, `last run${trace.previous.execution ? `, In [${trace.previous.execution}]` : ""}`),
    );
    const mode = (name: "unified" | "split", label: string): HTMLElement =>
      button(`mode-${name}`, label, () => this.shell.set({ mode: name }), { "data-tnb": "diff-mode", "data-name": name, "aria-pressed": String(state.mode === name), title: `${label} (s)` });
    fill(
      this.sub,
      span("dim", "A"),
      select,
      span("dim", "→ B"),
      bold(state.stage.name),
      this.shown && [span("plus", `+${grouped(this.shown.rows.added)}`), span("minus", `−${grouped(this.shown.rows.removed)}`)],
      span("segments", mode("unified", "unified"), mode("split", "side by side")),
      pinBar(this.shell),
      span("grow"),
      span("dim roomy", keycap("n", "p"), "change"),
    );
  }

  private pastListing(): Listing | null {
    const { state, trace } = this.shell;
    const { stage, kernel } = state;
    const key = `${kernel.name} ${stage.name}`;
    const known = this.past.get(key);
    if (known) return known;
    const text = stage.name === "source" && trace.previous?.cell ? trace.previous.cell.text : trace.previous?.kernels?.[kernel.name]?.stages?.[stage.name];
    if (text === undefined) return null;
    const listing = text === null ? stage.listing : new Listing(text, stage.language, {});
    if (listing) this.past.set(key, listing);
    return listing;
  }

  /** The whole cell: what the last run's cell is compared with. */
  private cellListing(): Listing {
    const { trace } = this.shell;
    const known = this.past.get("");
    if (known) return known;
    const listing = new Listing(trace.rows.join("\n"), "python", { lines: trace.rows.map((_, i) => [i + 1, 1, [trace.first + i]]) });
    this.past.set("", listing);
    return listing;
  }

  private show(a: Listing, b: Listing, runs: Int32Array, opened: Set<number>): void {
    const { mode } = this.shell.state;
    this.note.hidden = true;
    this.holder.hidden = false;
    this.shown = { a, b, rows: diffRows({ a: a.rows, b: b.rows }, runs, mode, opened), opened, mode };
    this.head();
    if (this.shown.rows.removed + this.shown.rows.added === 0) {
      fill(this.note, "Nothing differs.");
      this.note.hidden = false;
    }
    const width = Math.max(a.width, b.width);
    const views = mode === "split" ? [this.left, this.right] : [this.unified];
    this.holder.replaceChildren(...views.map((view) => view.element));
    const isSame = opened.size > 0;
    for (const view of views) view.show(this.view(view, width), isSame);
    if (!isSame) {
      const first = this.shown.rows.kind.findIndex((kind) => kind !== SAME && kind !== FOLDED);
      if (first > 0) {
        this.code.cursor = first;
        if (!this.code.isVisible(first + 4)) this.code.reveal(first);
      }
    }
  }

  private open(row: number): void {
    const { shown } = this;
    if (!shown) return;
    const { rows } = shown;
    // the fold's key is the first line of its equal stretch, three lines of which may stand before it
    let first = row;
    while (first > 0 && rows.kind[first - 1] === SAME) first--;
    const opened = new Set(shown.opened).add(rows.b[first]);
    const runs = this.shell.differ.runs(shown.a, shown.b);
    const top = this.code.top;
    if (!(runs instanceof Promise)) this.show(shown.a, shown.b, runs, opened);
    this.code.goTo(top);
  }

  private redraw(): void {
    if (!this.shown) return;
    if (this.shown.mode === "split") {
      this.left.redraw();
      this.right.redraw();
    } else this.unified.redraw();
  }

  private follow(other: CodeView, top: number): void {
    if (Math.abs(other.top - top) > 1) other.goTo(clamp(top, 0, Infinity));
  }

  private view(view: CodeView, width: number): Rows {
    const { rows } = this.shown!;
    const lines = Math.max(this.shown!.a.count, this.shown!.b.count);
    return { count: rows.count, lines, width, look: (row) => this.look(view, row), ticks: () => this.ticks(view) };
  }

  private look(view: CodeView, row: number): Look {
    const { rows, a, b } = this.shown!;
    const kind = rows.kind[row];
    if (kind === FOLDED)
      return { text: "", language: b.language, gutter: span("number", "⋯"), class: "fold", node: span("", plural(rows.hidden[row], "unchanged line")), title: "click to show them", data: { "data-change": "fold" } };
    const isLeft = view === this.left || kind === REMOVED;
    const listing = isLeft ? a : b;
    const line = isLeft ? rows.a[row] : rows.b[row];
    if (!line) return { text: "", language: b.language, gutter: null, class: "nothing" };
    const { state } = this.shell;
    const text = listing.rows[line - 1];
    const pins = pinsOf(state.pins, listing.origin(line));
    const change = kind === SAME ? "same" : isLeft ? "del" : "add";
    const hits = state.search.marks(text);
    const numbers = view === this.unified ? [span("number", rows.a[row] || null), span("number", rows.b[row] || null)] : span("number", line);
    return {
      text,
      language: listing.language,
      carry: carriesOf(listing).at(line - 1),
      marks: [...(kind === SAME ? [] : this.words(row, isLeft)), ...hits],
      pins: pins.map(({ pin }) => pin),
      class: `${change}${pins[0]?.isFurther ? " further" : ""}`,
      gutter: [numbers, span("sign", change === "add" ? "+" : change === "del" ? "−" : span("dots", pins.map(pinDot)))],
      data: { "data-line": String(line), "data-change": change, "data-hit": hits.length ? "" : null },
    };
  }

  /** What differs within a line from the one that it became, or was. */
  private words(row: number, isLeft: boolean): Mark[] {
    const { rows, a, b } = this.shown!;
    let from = rows.a[row];
    let to = rows.b[row];
    if (rows.kind[row] === REMOVED) to = rows.mates.get(from) ?? 0;
    else if (rows.kind[row] === ADDED) from = this.madeFrom(to);
    else if (rows.kind[row] === CHANGED && rows.mates.get(from) !== to) return [];
    if (!from || !to) return [];
    const found = differences(a.rows[from - 1], b.rows[to - 1]);
    return (isLeft ? found.a : found.b).map(([start, end]) => ({ start, end, class: "word" }));
  }

  private inverse: { of: DiffRows; map: Map<number, number> } | null = null;

  private madeFrom(line: number): number {
    const { rows } = this.shown!;
    if (this.inverse?.of !== rows) this.inverse = { of: rows, map: new Map([...rows.mates].map(([from, to]) => [to, from])) };
    return this.inverse!.map.get(line) ?? 0;
  }

  private *ticks(view: CodeView): Iterable<Tick> {
    if (view === this.left) return;
    const { rows } = this.shown!;
    let from = 0;
    for (let row = 1; row <= rows.count; row++) {
      if (row < rows.count && rows.kind[row] === rows.kind[from] && !rows.a[row] === !rows.a[from]) continue;
      const kind = rows.kind[from];
      if (kind === REMOVED || (kind === CHANGED && rows.a[from])) yield { first: from, count: row - from, colour: "--removed", atEdge: true };
      if (kind === ADDED || (kind === CHANGED && rows.b[from])) yield { first: from, count: row - from, colour: "--added", atEdge: kind === ADDED };
      from = row;
    }
    const { state } = this.shell;
    for (let row = 0; row < rows.count; row++) {
      if (rows.kind[row] === FOLDED || !rows.b[row]) continue;
      const pin = pinOf(state.pins, this.shown!.b.origin(rows.b[row]));
      if (pin) yield { first: row, count: 1, colour: `--pin${pin.pin}` };
    }
  }
}
