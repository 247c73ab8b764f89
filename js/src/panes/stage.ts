// The chosen stage: its text, what is new in it, where each line comes from, and how many lines are linked to the source.

import { CodeView, ROW } from "../code_view";
import { bold, button, div, fill, h, keycap, span, type Kid } from "../dom";
import { makes, type Listing } from "../listing";
import { pinned, type Pane, type Shell } from "../state";
import { grouped } from "../text";
import { lineText, type Stage } from "../trace";
import { ListingRows } from "./listing_rows";

const PRELUDE = 6; // lines of device code before the kernel that are scrolled over

/** What the keys and pins need of the pane that shows code. */
export interface CodePane extends Pane {
  readonly code: CodeView;
  /** Line of the shown stage in a row; null for a fold or a line of the other side. */
  lineAt(row: number): number | null;
  rowOf(line: number): number;
  /** After the pane was put back into the page. */
  restore(): void;
  soften(lines: readonly number[] | null): void;
}

export class StagePane implements CodePane {
  readonly element: HTMLElement;
  readonly code: CodeView;
  private readonly sub = div("sub");
  private readonly empty = div("empty");
  private shown: Stage | null = null;

  constructor(private readonly shell: Shell) {
    this.code = new CodeView("code", "text of the stage", "code", codeListeners(shell, this));
    this.element = div("body", this.sub, this.empty, this.code.element);
  }

  close(): void {
    this.code.close();
  }

  draw(): void {
    const { stage } = this.shell.state;
    const { listing } = stage;
    this.empty.hidden = listing !== null;
    this.code.element.hidden = listing === null;
    if (!listing) {
      fill(this.empty, `${stage.name} was not reached.`);
      fill(this.sub, bold(stage.name));
      return;
    }
    fill(this.sub, bold(stage.name), !pinned(this.shell.state.pins).length && span("dim ellipsis gives", stage.reason), this.change(stage), coverage(listing, (text) => this.shell.tell(text)), pinBar(this.shell), pinned(this.shell.state.pins).length > 0 && span("dim roomy", keycap("[", "]"), "step"));
    if (this.shown === stage) {
      this.code.redraw();
      return;
    }
    const isSameText = this.shown?.listing === listing;
    this.shown = stage;
    this.code.show(new ListingRows(this.shell, stage, null, () => this.code.redraw()), isSameText);
    if (!isSameText && listing.language !== "tir" && listing.begins > PRELUDE) this.code.goTo((listing.begins - 1) * ROW);
  }

  lineAt(row: number): number | null {
    return row + 1;
  }

  rowOf(line: number): number {
    return line - 1;
  }

  restore(): void {
    this.code.redraw();
  }

  soften(lines: readonly number[] | null): void {
    softenCode(this.shell, this, lines);
  }

  private change(stage: Stage): Kid {
    if (stage.sameAs) return span("dim ellipsis gives", `same text as ${stage.sameAs}`);
    return (stage.plus > 0 || stage.minus > 0) && [span("plus", `+${grouped(stage.plus)}`), span("minus", `−${grouped(stage.minus)}`)];
  }
}

/** "142/160 linked", with the reasons for the gaps. */
export function coverage(listing: Listing, tell: (text: string) => void): Kid {
  const reasons = [...listing.coverage.reasons].sort((a, b) => b[1] - a[1]);
  const short = new Map<string, number>();
  for (const [reason, count] of reasons) {
    const [kind] = reason.split(":");
    short.set(kind, (short.get(kind) ?? 0) + count);
  }
  const title = reasons.length ? `lines without a source line:\n${[...short].map(([reason, count]) => `${grouped(count)}  ${reason}`).join("\n")}` : "every line has a source line";
  return button("coverage", `${grouped(listing.coverage.linked)}/${grouped(listing.coverage.written)} linked`, () => tell(title.replaceAll("\n", " · ")), { class: "dim coverage", "data-tnb": "coverage", title });
}

/** The pinned lines, each to be unpinned. */
export function pinBar(shell: Shell): Kid {
  const { trace, state } = shell;
  if (!pinned(state.pins).length) return null;
  return span(
    "pins",
    state.pins.map(
      (line, i) =>
        line !== null &&
        h(
          "span",
          { class: "pin", style: { "--pin": `var(--pin${i})` }, "data-tnb": "pin", "data-line": line },
          span("dot", i + 1),
          span("ellipsis text", `${line}: ${lineText(trace, line).trim()}`),
          button(`unpin-${i}`, "×", () => shell.set({ pins: state.pins.map((pin) => (pin === line ? null : pin)) }), { "aria-label": `unpin line ${line}`, title: "unpin (Escape unpins all)" }),
        ),
    ),
  );
}

/** What a code pane answers to the mouse and the keys. */
export function codeListeners(shell: Shell, pane: { lineAt(row: number): number | null }): ConstructorParameters<typeof CodeView>[3] {
  const over = (row: number | null): number | null => {
    const line = row === null ? null : pane.lineAt(row);
    const origin = line === null ? null : (shell.state.stage.listing?.origin(line) ?? null);
    shell.soften(origin ? origin.lines.filter((_, i) => i === 0 || makes(origin.kinds[i - 1])) : null);
    return line;
  };
  return {
    hover: (row) => {
      const line = over(row);
      if (line !== null) shell.explain(line, shell.state.stage, true);
    },
    cursor: (row) => {
      const line = over(row);
      if (line !== null) shell.explain(line);
    },
    pick: (row, adding) => {
      const line = pane.lineAt(row);
      if (line === null) return;
      const origin = shell.state.stage.listing?.origin(line);
      if (origin) shell.pin(origin.lines[0], adding, "code");
      shell.explain(line);
    },
  };
}

export function softenCode(shell: Shell, pane: CodePane, lines: readonly number[] | null): void {
  const { listing } = shell.state.stage;
  pane.code.mark("data-lit", (row) => {
    const line = lines ? pane.lineAt(row) : null;
    const origin = line === null ? null : listing?.origin(line);
    return !!origin && origin.lines.some((source, i) => (i === 0 || makes(origin.kinds[i - 1])) && lines!.includes(source));
  });
}
