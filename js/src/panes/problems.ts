// Diagnostics of the cell and findings of its launches: message, help, what the fix would change, and the page of the code.

import { bold, button, div, fill, h, prose, span, type Kid } from "../dom";
import { comparedNow } from "../compare";
import { ADDED, diffRows, FOLDED, REMOVED, SAME } from "../diff_rows";
import { painted } from "../paint";
import type { Pane, Shell } from "../state";
import type { Problem } from "../trace";
import { differences } from "../words";

const SIGNS: Record<string, string> = { error: "✕ error", warning: "▲ warning", note: "• note" };

export class ProblemsPane implements Pane {
  readonly element: HTMLElement;
  private readonly head = div("sub");
  private readonly list = h("div", { class: "cards" });
  private cards: HTMLElement[] = [];
  private shown = -1;

  constructor(private readonly shell: Shell) {
    this.element = div("body", this.head, this.list);
  }

  draw(): void {
    const { trace, state } = this.shell;
    if (!this.cards.length && trace.problems.length) {
      this.drawHead();
      this.list.setAttribute("role", "list");
      this.list.setAttribute("aria-label", "problems");
      this.cards = trace.problems.map((problem, index) => this.card(problem, index));
      fill(this.list, this.cards);
    }
    this.head.hidden = !trace.problems.length || !this.head.childNodes.length;
    if (!trace.problems.length) {
      fill(
        this.list,
        div(
          "empty",
          trace.wire.target === "sim"
            ? "No problems: nothing in the text, and the simulated device found nothing in the launches."
            : "No problems. Only the simulated device looks for races and for reads out of bounds: run the cell with --target sim.",
        ),
      );
      return;
    }
    this.cards.forEach((card, index) => {
      card.classList.toggle("on", index === state.problem);
      card.setAttribute("aria-current", String(index === state.problem));
    });
    if (this.shown !== state.problem) {
      this.shown = state.problem;
      const card = this.cards[state.problem];
      requestAnimationFrame(() => {
        if (card?.isConnected) this.list.scrollTop = card.offsetTop - this.list.offsetTop;
      });
    }
  }

  private drawHead(): void {
    const { trace } = this.shell;
    const { patched } = trace.wire;
    const sure = trace.problems.filter((problem) => problem.fixes.some((fix) => fix.sure)).length;
    if (!patched || sure < 2) return; // the card of a single fix offers it
    fill(
      this.head,
      span("grow ellipsis", bold(`${sure} of ${trace.problems.length}`), " have a sure fix"),
      this.insertButton("insert-all", `Insert cell with ${sure === 2 ? "both" : `all ${sure}`} fixes`, patched.text, "insert-patched", true),
      button("copy-all", "Copy", () => this.shell.copy(patched.text, "the patched cell"), { class: "button", "data-tnb": "copy-patched", title: "copy the cell with these fixes" }),
    );
  }

  private insertButton(key: string, label: string, text: string, part: string, isMain: boolean): Kid {
    const { insert } = this.shell;
    if (!insert) return null;
    return button(
      key,
      label,
      () => {
        void insert(text).then(
          (done) => {
            if (done) {
              const words = `the patched cell is below${done === "selected" ? " and has the focus: Shift+Enter runs it" : "; this notebook does not let it be selected from here: click it, then Shift+Enter runs it"}`;
              this.shell.tell(words);
              this.shell.say(words);
            } else this.shell.copy(text, "the patched cell, to be pasted in a new cell");
          },
          () => this.shell.copy(text, "the patched cell, to be pasted in a new cell"),
        );
      },
      { class: `button${isMain ? " main" : ""}`, "data-tnb": part },
    );
  }

  private card(problem: Problem, index: number): HTMLElement {
    const { wire, place } = problem;
    const choose = (): void => {
      if (this.shell.state.problem !== index) this.shell.set({ problem: index });
    };
    return h(
      "div",
      { class: `problem ${wire.severity}`, role: "listitem", "data-tnb": "problem", "data-code": wire.code, on: { click: choose } },
      div(
        "title",
        span("severity", SIGNS[wire.severity] ?? wire.severity),
        button(`problem-${index}`, prose(wire.message), () => this.shell.set({ problem: index }), { class: "message" }),
        span("dim mono", `${wire.code}${place ? ` · ${place.line}:${wire.span![1] + 1}` : ""}`),
      ),
      (wire.where || wire.count || wire.path) && h("p", null, wire.where && [span("dim", "seen at "), wire.where], this.turnLink(problem, index), wire.count && [h("br"), wire.count]),
      problem.notes.map((note) =>
        h("p", { class: "dim" }, note.place && [button(`note-${index}-${note.place.line}`, `line ${note.place.line}`, () => this.shell.pin(note.place!.line, false, "other"), { class: "link" }), ": "], prose(note.message)),
      ),
      wire.help && h("p", null, bold("help "), prose(wire.help)),
      problem.fixes.map((fix, at) => [
        fix.patched !== null && this.preview(fix.patched),
        fix.patched !== null &&
          div(
            "actions",
            this.insertButton(`insert-${index}-${at}`, "Insert patched cell below", fix.patched, "insert-fix", fix.sure),
            button(`copy-${index}-${at}`, "Copy patched cell", () => this.shell.copy(fix.patched!, "the patched cell"), { class: "button", "data-tnb": "copy-fix" }),
            span(fix.sure ? "dim" : "amber", fix.sure ? prose(fix.wire.title) : "changes the meaning, read it first"),
          ),
      ]),
      this.page(problem, index),
    );
  }

  /** To the iteration in which a finding was seen. */
  private turnLink(problem: Problem, index: number): Kid {
    const { wire } = problem;
    const { node, path } = wire;
    const kernel = this.shell.trace.kernels.find((one) => one.name === (problem.foundIn ?? problem.wire.kernel));
    const site = kernel?.sites.find((one) => one.id === node);
    if (!kernel || !site || !path) return null;
    const label = site.chain().map((one, depth) => {
      const turn = one.turn(path.slice(0, depth + 1));
      return one.kind === "macro" ? `${one.node.label ?? ""}(…)` : one.names.map((name, i) => `${name} = ${turn ? (one.bound(turn)[i] ?? "") : path[depth]}`).join(", ");
    });
    const stage = kernel.stages.findLast((one) => one.listing?.hasStatements) ?? kernel.initial;
    return [
      wire.where && " · ",
      span("dim", site.chain().every((one) => one.kind === "macro") ? "made by " : "made in the turn "),
      button(`turn-${index}`, label.join(" › "), () => this.shell.set({ kernel, view: "unroll", stage, site, path: [...path] }), { class: "link mono", "data-tnb": "turn", title: "show this turn in Unroll" }),
    ];
  }

  /** The lines that a fix changes. */
  private preview(patched: string): Kid {
    const { rows, first } = this.shell.trace;
    const after = patched.split("\n");
    const diff = diffRows({ a: rows, b: after }, comparedExactly(rows, after), "unified", new Set());
    const lines: Kid[] = [];
    const mateOf = new Map([...diff.mates].map(([from, to]) => [to, from]));
    for (let row = 0; row < diff.count && lines.length < 24; row++) {
      const kind = diff.kind[row];
      if (kind === SAME || kind === FOLDED) continue;
      const isAdded = kind === ADDED;
      const line = isAdded ? diff.b[row] : diff.a[row];
      const text = (isAdded ? after : rows)[line - 1];
      const mate = isAdded ? mateOf.get(line) : kind === REMOVED ? diff.mates.get(line) : undefined;
      const words = mate ? (isAdded ? differences(rows[mate - 1], text).b : differences(text, after[mate - 1]).a) : [];
      lines.push(
        div(
          `row ${isAdded ? "add" : "del"}`,
          span("gutter", span("number", first + line - 1), span("sign", isAdded ? "+" : "−")),
          span("line", painted(text, "python", words.map(([start, end]) => ({ start, end, class: "word" })))),
        ),
      );
    }
    return lines.length > 0 && h("div", { class: "preview", role: "group", tabindex: 0, "aria-label": "what the fix changes" }, lines);
  }

  private page(problem: Problem, index: number): Kid {
    const { code, slug } = problem.wire;
    const page = this.shell.trace.wire.pages?.[code];
    if (!page) return h("p", { class: "dim" }, `${code}: ${slug}`);
    const block = (title: string, text: string | null | undefined): Kid => text && [h("h5", null, title), h("pre", { class: "example", tabindex: 0 }, text.replace(/\n$/, "").split("\n").map((line) => [painted(line, "python"), h("br")]))];
    return h(
      "details",
      { class: "page", "data-tnb": "page" },
      h("summary", { "data-k": `page-${index}` }, `why: ${page.slug ?? slug}`),
      page.title && h("h5", null, prose(page.title)),
      page.meaning && page.meaning.split(/\n\s*\n/).map((paragraph) => h("p", null, prose(paragraph.replace(/\s*\n\s*/g, " ")))),
      block("refused", page.bad),
      page.said && [h("h5", null, "said"), h("pre", { class: "example", tabindex: 0 }, page.said.replace(/\n$/, "").split("\n").map((line) => [line, h("br")]))],
      block("instead", page.good),
    );
  }
}

/** White space counts in a fix: a line that only moves to the right is a changed line. */
function comparedExactly(a: readonly string[], b: readonly string[]): Int32Array {
  const visible = (line: string): string => line.replace(/^\s+/, (indent) => `${indent.length}\u0000`);
  return comparedNow(a.map(visible), b.map(visible));
}
