// The stages in their order, one chip each: what it did to the text, how long it took, how often pinned lines and hits occur in it.

import { ACROSS, button, div, fill, h, roving, span, type Kid } from "../dom";
import { inTimeline, type Pane, type Shell } from "../state";
import { brief, grouped, milliseconds, plural } from "../text";
import type { Stage } from "../trace";
import { baseOf } from "./diff_base";

export class Timeline implements Pane {
  readonly element = div("timeline");
  private readonly rail = h("div", { class: "rail", role: "tablist", "aria-label": "stages" });
  private readonly tools = div("tools");
  private readonly filter: HTMLInputElement;
  private readonly toggles = span("toggles");
  private brought = "";
  /** The lowering stages stand as one chip: there is no room for all. */
  private isFull = false;
  private measured = "";
  private readonly watch: ResizeObserver | null;

  constructor(private readonly shell: Shell) {
    this.filter = h("input", {
      class: "field wide",
      placeholder: "filter stages",
      "aria-label": "filter stages",
      "data-k": "filter",
      "data-tnb": "filter",
      on: { input: () => shell.set({ filter: this.filter.value }) },
    });
    this.tools.append(this.toggles, this.filter);
    this.element.append(this.rail, this.tools);
    this.rail.addEventListener("scroll", () => this.edges(), { passive: true });
    this.watch = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => {
      if (this.measured !== this.measure()) this.draw();
      this.bring();
      this.edges();
    });
    this.watch?.observe(this.rail);
    roving(this.rail, ACROSS, (distance) => this.walk(distance));
  }

  close(): void {
    this.watch?.disconnect();
  }

  draw(): void {
    const { state } = this.shell;
    if (this.filter.value !== state.filter) this.filter.value = state.filter;
    if (this.measured !== this.measure()) {
      this.measured = this.measure();
      this.isFull = false;
      this.drawRail();
      this.isFull = this.rail.scrollWidth > this.rail.clientWidth + 4;
    }
    const hidden = this.drawRail();
    const open = [...state.openGroups].filter((group) => state.kernel.stages.some((stage) => stage.group === group));
    fill(
      this.toggles,
      open.map((group) => button(`fold-${group}`, `${group} ▾`, () => this.fold(group), { class: "tool", title: `fold the stages of ${group}` })),
      (hidden > 0 || state.showsSame) &&
        button("noops", state.showsSame ? "hide unchanged" : `${hidden} unchanged`, () => this.shell.set({ showsSame: !state.showsSame }), {
          class: "tool",
          "data-tnb": "noop-toggle",
          "aria-pressed": String(state.showsSame),
          title: "stages that changed nothing",
        }),
    );
    this.tools.hidden = state.kernel.stages.length < 4;
    requestAnimationFrame(() => {
      const key = `${state.kernel.name} ${state.stage.name} ${this.rail.scrollWidth} ${this.rail.clientWidth}`;
      if (this.brought !== key) this.bring();
      this.brought = key;
      this.edges();
    });
  }

  /** What decides whether all chips have room. */
  private measure(): string {
    const { kernel, showsSame, filter } = this.shell.state;
    return `${kernel.name} ${this.rail.clientWidth} ${showsSame} ${filter}`;
  }

  /** Says how many stages that changed nothing are left out. */
  private drawRail(): number {
    const { state } = this.shell;
    const { items, hidden } = inTimeline(state, this.isFull);
    const focusable = items.find((item) => item === state.stage) ?? items.find((item) => "name" in item);
    fill(
      this.rail,
      items.map((item) => ("name" in item ? this.chip(item, item === focusable) : item.group === "not reached" ? this.unreached(item.stages) : this.group(item.group, item.stages))),
      !items.length && span("chip off", span("name", "no stage has this name")),
    );
    return hidden;
  }

  /** To the next chip: shows its stage; one that must be compiled or unfolded first is only reached, Enter does it. */
  private walk(distance: number): void {
    const chips = [...this.rail.querySelectorAll<HTMLElement>("button.chip")];
    const at = chips.indexOf(document.activeElement as HTMLElement);
    const next = chips[at + distance];
    if (at < 0 || !next) return;
    next.focus();
    const stage = this.shell.state.kernel.stages.find((one) => one.name === next.dataset.name);
    if (stage?.listing) this.press(stage, false);
    else next.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  private fold(group: string): void {
    const { state } = this.shell;
    const openGroups = new Set(state.openGroups);
    openGroups.delete(group);
    const isInside = state.stage.group === group;
    const after = state.kernel.stages.findLast((stage) => stage.landmark && stage.listing && stage.group !== group);
    this.shell.set({ openGroups, ...(isInside && after ? { stage: after } : {}) });
  }

  private chip(stage: Stage, isFocusable: boolean): Kid {
    const { state } = this.shell;
    const isShown = stage === state.stage && state.view !== "problems" && state.view !== "run";
    const hits = state.search.in(stage.listing).count;
    const dots = state.pins.map((line, i) => {
      const weight = line === null || stage.name === "source" ? 0 : (stage.listing?.weight(line) ?? 0);
      return weight > 0 && h("span", { class: "dot", style: { "--pin": `var(--pin${i})` }, title: `${plural(weight, "line")} of line ${line}` }, brief(weight));
    });
    const role = state.view === "diff" ? (stage === state.stage ? "B" : stage === baseOf(this.shell) ? "A" : "") : "";
    const canAsk = stage.state === "on_demand" && this.shell.request !== null;
    return button(
      `chip-${stage.name}`,
      [
        span("name", role && span("side", role), stage.name, hits > 0 && h("span", { class: "hits", "data-hit": hits }, brief(hits))),
        span("counts", this.counts(stage, dots.some(Boolean)), dots),
      ],
      (event) => this.press(stage, event.shiftKey),
      {
        class: `chip${stage.landmark ? " landmark" : ""}${stage.listing || canAsk ? "" : " off"}${stage.state === "failed" ? " failed" : ""}`,
        role: "tab",
        "data-tnb": "chip",
        "data-name": stage.name,
        "data-state": stage.state,
        "aria-selected": String(isShown),
        "aria-disabled": stage.listing || canAsk ? null : "true",
        tabindex: isFocusable ? 0 : -1,
        title: `${stage.state === "on_demand" && !canAsk ? `run the cell in a notebook: ${stage.name} is compiled when asked for\n` : ""}${stage.name}${stage.reason ? `: ${stage.reason}` : ""}${stage.sameAs ? `\nsame text as ${stage.sameAs}` : ""}${stage.milliseconds === null ? "" : `\n${milliseconds(stage.milliseconds)}`}`,
      },
    );
  }

  private counts(stage: Stage, hasDots: boolean): Kid {
    const time = !hasDots && stage.milliseconds ? milliseconds(stage.milliseconds) : null;
    if (stage.state === "on_demand" && !stage.listing) return stage.name === this.shell.state.asked ? "compiling …" : this.shell.request ? "compile" : "not compiled";
    if (stage.state === "failed") return `✕ ${stage.why ?? "failed"}`;
    if (!stage.listing) return "not reached";
    if (stage.name === "source") return plural(stage.listing.count, "line");
    if (stage.sameAs) return hasDots ? null : "no change";
    if (stage.plus || stage.minus) return [span("plus", `+${grouped(stage.plus)}`), span("minus", `−${grouped(stage.minus)}`), time && span("", time)];
    return [!hasDots && span("", plural(stage.listing.count, "line")), time && span("", time)];
  }

  private press(stage: Stage, isBase: boolean): void {
    const { state } = this.shell;
    if (!stage.listing) {
      if (stage.state === "on_demand") this.shell.request?.(stage);
      return;
    }
    if (isBase) this.shell.set({ base: stage.name, view: "diff" });
    else this.shell.set({ stage, view: state.view === "problems" || state.view === "run" ? "stage" : state.view });
  }

  private group(group: string, stages: Stage[]): Kid {
    const { state } = this.shell;
    const sum = (f: (stage: Stage) => number): number => stages.reduce((total, stage) => total + f(stage), 0);
    const seen = new Set(stages.map((stage) => stage.listing));
    const hits = [...seen].reduce((total, listing) => total + state.search.in(listing).count, 0);
    return button(
      `group-${group}`,
      [
        span("name", `${group} ▸ ${stages.length}`, hits > 0 && span("hits", hits)),
        span("counts", sum((s) => s.plus + s.minus) ? [span("plus", `+${grouped(sum((s) => s.plus))}`), span("minus", `−${grouped(sum((s) => s.minus))}`)] : "no change", " ", milliseconds(sum((s) => s.milliseconds ?? 0))),
      ],
      () => this.shell.set({ openGroups: new Set([...state.openGroups, group]) }),
      { class: "chip folded", role: "tab", "aria-selected": "false", "data-group": group, tabindex: -1, title: `show the ${stages.length} stages of ${group}` },
    );
  }

  private unreached(stages: Stage[]): Kid {
    return h("span", { class: "chip off", role: "tab", "aria-selected": "false", "aria-disabled": "true", title: stages.map((stage) => stage.name).join("\n") }, span("name", plural(stages.length, "lowering stage")), span("counts", "not reached"));
  }

  /** Scrolls the shown chip into the rail. */
  private bring(): void {
    const shown = this.rail.querySelector<HTMLElement>('[aria-selected="true"]');
    if (!shown) return;
    const left = shown.offsetLeft - 24;
    const right = shown.offsetLeft + shown.offsetWidth + 40;
    if (left < this.rail.scrollLeft) this.rail.scrollLeft = left;
    else if (right > this.rail.scrollLeft + this.rail.clientWidth) this.rail.scrollLeft = right - this.rail.clientWidth;
  }

  private edges(): void {
    this.rail.classList.toggle("more-right", this.rail.scrollLeft + this.rail.clientWidth < this.rail.scrollWidth - 4);
    this.rail.classList.toggle("more-left", this.rail.scrollLeft > 4);
  }
}
