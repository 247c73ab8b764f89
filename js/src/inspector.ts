// The inspector of one trace: its state, its parts, and what they ask of each other.

import { copied, saved } from "./clipboard";
import { Differ } from "./differ";
import { ACROSS, append, bold, button, div, dragging, DOWN, fill, h, keepingFocus, keycap, roving, span, type Kid } from "./dom";
import { faultNote } from "./fault";
import { handle, sheet, type Actions } from "./keys";
import { life } from "./lineage";
import { DiffPane } from "./panes/diff";
import { ProblemsPane } from "./panes/problems";
import { RunPane } from "./panes/run";
import { SourcePane } from "./panes/source";
import { StagePane, type CodePane } from "./panes/stage";
import { TilesPane } from "./panes/tiles";
import { Timeline } from "./panes/timeline";
import { UnrollPane } from "./panes/unroll";
import { Verdict } from "./panes/verdict";
import type { Site } from "./expansion";
import { Search } from "./search";
import { firstState, inTimeline, picked, pinned, PINS, VIEWS, type Inserted, type Pane, type Shell, type State, type View } from "./state";
import { Steps } from "./steps";
import { clamp, grouped, plural } from "./text";
import { applyTheme, watchTheme } from "./theme";
import { lineText, type Stage, type Trace } from "./trace";

export interface Options {
  /** Puts text into a new cell below the one that the view belongs to; says what came of it. */
  insertCell?: (text: string) => Promise<Inserted>;
  /** Asks for a stage that is compiled on demand; an update with its text follows, or a note. */
  requestStage?: (kernel: string, stage: string) => void;
  /** Where Escape leads when nothing in the view is left to close. */
  leave?: () => void;
}

const PATIENCE = 60_000; // ms until a request counts as unheard
const SUFFIX: Record<string, string> = { python: "py", tir: "tir", cuda: "cu", ptx: "ptx", sass: "sass" };
const ABOUT: Record<View, string> = {
  stage: "the program at the stage that is chosen above",
  diff: "what a stage, or this run of the cell, changed",
  unroll: "loops, comprehensions and macros that ran while the kernel was built",
  problems: "mistakes in the text, and what was found in the launch",
  run: "the launch, and what the kernel uses",
  tiles: "where the elements of each tile are; pipelined loops over time",
};
const TITLES: Record<View, string> = { stage: "Stage", diff: "Diff", unroll: "Unroll", problems: "Problems", run: "Run", tiles: "Tiles" };

/** Scroll positions of the panes, and the stage that the code was of. */
interface Places {
  readonly source: number;
  readonly code: number;
  readonly stage: string;
}

let serial = 0;

export class Inspector implements Shell {
  readonly root = h("section", { class: "tnb", tabindex: -1, "data-tnb": "root" });
  readonly differ = new Differ();
  readonly trace: Trace;
  state: State;
  readonly insert: ((text: string) => Promise<Inserted>) | null;
  readonly request: ((stage: Stage) => void) | null;
  private readonly verdict: Verdict;
  private readonly timeline: Timeline;
  private readonly source: SourcePane;
  private readonly unroll: UnrollPane;
  private readonly panes: Record<View, Pane>;
  private readonly area = div("panes");
  private readonly tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "views" });
  private readonly hits = h("span", { class: "dim hits-count", "data-tnb": "search-count" });
  private readonly field: HTMLInputElement;
  private readonly holder = h("div", { class: "holder", role: "tabpanel" });
  private readonly why = h("span", { class: "why", "data-tnb": "foot" });
  private readonly live = h("div", { class: "spoken", role: "status", "aria-live": "polite", "data-tnb": "status" });
  private readonly id = `tnb-${++serial}`;
  private drawn: { view: View; mode: string; stage: Stage; site: Site | null } | null = null;
  private help: HTMLElement | null = null;
  private cameFrom: HTMLElement | null = null;
  private split: number | null = null;
  private searching = 0;
  private waiting = 0;
  private explained = "";
  private readonly unwatch: () => void;
  private readonly steps = new Steps(this, () => this.codePane);

  constructor(trace: Trace, private readonly options: Options, before: State | null, isSameRun: boolean) {
    this.trace = trace;
    this.insert = options.insertCell ?? null;
    this.request = options.requestStage ? (stage) => this.ask(stage) : null;
    this.state = firstState(trace, before, isSameRun);
    this.root.toggleAttribute("data-told", trace.wire.run?.told === true);
    this.root.setAttribute("aria-label", `tilelang inspector${this.state.kernel.name ? `, ${this.state.kernel.name}` : ""}`);
    this.holder.id = `${this.id}-panel`;
    this.verdict = new Verdict(this);
    this.timeline = new Timeline(this);
    this.source = new SourcePane(this);
    this.unroll = new UnrollPane(this);
    this.panes = { stage: new StagePane(this), diff: new DiffPane(this), unroll: this.unroll, problems: new ProblemsPane(this), run: new RunPane(this), tiles: new TilesPane(this) };
    this.field = h("input", {
      class: "field",
      type: "search",
      placeholder: "search /",
      "aria-label": "search all stages",
      "data-k": "search",
      "data-tnb": "search",
      on: { input: () => this.typed(), keydown: (event) => this.walkHits(event) },
    });
    this.field.value = this.state.search.query;
    this.build();
    this.root.addEventListener("keydown", (event) => this.guarded(() => handle(event, this.actions)));
    this.unwatch = watchTheme(() => {
      applyTheme(this.root);
      if (this.drawn) keepingFocus(this.root, () => this.draw());
    });
  }

  /** Draws all of it for the first time; the root must be in the page. places: what was in sight before, of the same run. */
  start(places: Places | null): void {
    applyTheme(this.root);
    this.draw();
    if (this.state.asked !== null) this.wait(this.state.asked);
    this.root.setAttribute("data-ready", "true");
    if (places) {
      this.source.code.goTo(places.source);
      if (places.stage === this.state.stage.name) this.codePane?.code.goTo(places.code);
      return;
    }
    const { place } = this.trace.problems[this.state.problem] ?? {};
    if (this.state.view === "problems" && place) this.source.revealProblem(this.state.problem);
    else this.toKernel();
  }

  private toKernel(): void {
    const { line, span } = this.state.kernel.wire;
    this.source.begin(line ?? span?.[0] ?? this.trace.first);
  }

  /** What is in sight. */
  places(): Places {
    return { source: this.source.code.top, code: this.codePane?.code.top ?? 0, stage: this.state.stage.name };
  }

  /** Says what came of something that was asked for. */
  note(text: string): void {
    clearTimeout(this.waiting);
    this.set({ asked: null });
    this.tell(text);
    this.say(text);
  }

  private ask(stage: Stage): void {
    if (this.state.asked !== null) return;
    this.set({ asked: stage.name });
    this.say(`${stage.name} is being compiled`);
    this.tell(bold(stage.name), " is being compiled …");
    this.wait(stage.name);
    this.options.requestStage!(this.state.kernel.name, stage.name);
  }

  private wait(name: string): void {
    this.waiting = setTimeout(() => this.note(`no answer about ${name}: is the kernel running?`), PATIENCE) as unknown as number;
  }

  close(): void {
    clearTimeout(this.searching);
    clearTimeout(this.waiting);
    this.differ.close();
    this.unwatch();
    this.source.close();
    this.timeline.close();
    for (const pane of Object.values(this.panes)) pane.close?.();
    this.root.remove();
  }

  set(patch: Partial<State>): void {
    this.guarded(() => {
      this.state = { ...this.state, ...patch };
      keepingFocus(this.root, () => this.draw(), () => this.codePane?.code.scroller ?? this.root);
      if (patch.kernel) this.toKernel();
      if (patch.problem !== undefined || (patch.view === "problems" && this.trace.problems.length)) this.source.revealProblem(this.state.problem);
    });
  }

  say(text: string): void {
    fill(this.live, text);
  }

  tell(...kids: Kid[]): void {
    fill(this.why, kids);
  }

  soften(lines: readonly number[] | null): void {
    this.guarded(() => {
      this.source.soften(lines);
      this.codePane?.soften(lines);
    });
  }

  pin(line: number, adding: boolean, from: "source" | "code" | "other"): void {
    const pins = picked(this.state.pins, line, adding);
    this.set({ pins });
    if (!pins.includes(line)) {
      this.say(`line ${line} unpinned`);
      return;
    }
    const { stage } = this.state;
    this.say(`line ${line} pinned, ${plural(stage.listing?.weight(line) ?? 0, "line")} in ${stage.name}`);
    if (from !== "source") this.source.reveal(line);
    if (from !== "code") this.steps.showLongest(line);
  }

  explain(line: number, stage: Stage = this.state.stage, inPassing = false): void {
    const { kernel } = this.state;
    const { listing } = stage;
    if (!listing || !listing.rows[line - 1]?.trim()) return;
    const key = `${stage.name} ${line}`;
    this.explained = key;
    const origin = listing.origin(line);
    const found = origin
      ? [bold(`from line ${origin.lines[0]}`), " ", h("code", null, lineText(this.trace, origin.lines[0]).trim().slice(0, 60)), this.further(origin.lines, origin.kinds)]
      : [bold("no source line"), listing.gap(line) !== null && `: ${listing.gap(line)}`];
    const lived = stage.name === "source" ? null : life(this.differ, kernel.stages, stage, line, inPassing ? null : () => this.explained === key && this.explain(line, stage));
    this.tell(found, lived && [" · made by ", bold(lived.madeBy), lived.removedBy && [", removed by ", bold(lived.removedBy)]]);
  }

  private further(lines: readonly number[], kinds: readonly string[]): Kid {
    const words: Record<string, string> = { call: "called in line", return: "value of line", definition: "names line", layout: "laid out by line", statement: "with line" };
    return lines.length > 1 && span("dim", `, ${lines.slice(1, 5).map((line, i) => `${words[kinds[i]] ?? "with line"} ${line}`).join(", ")}`);
  }

  copy(text: string, what: string): void {
    void copied(text, this.root).then((done) => {
      if (!done) this.tell(bold("the browser refused the clipboard"), "; select the text and copy it by hand");
      else {
        this.tell(`${what} copied`);
        this.say(`${what} copied`);
      }
    });
  }

  goToStage(distance: number): void {
    // into a folded group too: it stands open while one of its stages is shown
    const walked = (stage: Stage): boolean => stage.listing !== null && (stage.state !== "same" || stage.landmark);
    const shown = inTimeline(this.state).items.flatMap((item) => ("name" in item ? (item.listing ? [item] : []) : item.stages.filter(walked)));
    const at = shown.indexOf(this.state.stage);
    const stage = shown[clamp(at < 0 ? 0 : at + distance, 0, shown.length - 1)];
    if (!stage) return;
    const isCode = this.state.view !== "problems" && this.state.view !== "run";
    this.set({ stage, view: isCode ? this.state.view : "stage" });
    this.say(`${stage.name}, ${stage.sameAs ? `same text as ${stage.sameAs}` : plural(stage.listing!.count, "line")}`);
  }

  // ---- building

  private build(): void {
    const tools = [
      button("copy", "Copy", () => this.copy(this.stageText(), this.state.stage.name), { class: "tool mid", "data-tnb": "copy", title: "copy the text of the stage (c)" }),
      button("save", "Save", () => this.save(), { class: "tool wide", "data-tnb": "save", title: "download the stage as .py, .tir, .cu, .ptx or .sass" }),
    ];
    const bar = h("div", { class: "splitter", role: "separator", tabindex: 0, "data-k": "splitter", "aria-label": "width of the source pane", "aria-valuenow": 40, "aria-valuemin": 15, "aria-valuemax": 75 });
    roving(bar, { ...ACROSS, ...DOWN }, (distance) => this.splitAt((this.split ?? 40) + 4 * distance, bar));
    bar.addEventListener("pointerdown", (event) => {
      const box = this.area.getBoundingClientRect();
      const isStacked = getComputedStyle(this.area).gridTemplateColumns.split(" ").length === 1;
      dragging(event, (move) => this.splitAt(isStacked ? ((move.clientY - box.top) / box.height) * 100 : ((move.clientX - box.left) / box.width) * 100, bar));
    });
    const grip = h("span", { class: "grip", title: "drag to change the height", "aria-hidden": "true" }, "≡");
    grip.addEventListener("pointerdown", (event) => {
      const [start, height] = [event.clientY, this.area.clientHeight];
      dragging(event, (move) => this.root.style.setProperty("--height", `${clamp(height + move.clientY - start, 160, 1600)}px`));
    });
    roving(this.tabs, ACROSS, (distance) => {
      const views = this.views();
      this.set({ view: views[(views.indexOf(this.state.view) + distance + views.length) % views.length] });
      this.tabs.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
    });
    const right = div("pane right", div("head", this.tabs, span("grow"), this.hits, this.field, tools), this.holder);
    this.area.append(this.source.element, bar, right);
    append(this.root, [
      this.verdict.element,
      this.timeline.element,
      this.area,
      div("foot", this.why, button("keys", [keycap("?"), "keys"], () => this.toggleHelp(), { class: "tool mid" }), grip),
      this.live,
    ]);
  }

  /** The views that have something to show. */
  private views(): View[] {
    const { kernel } = this.state;
    const reached = kernel.stages.filter((stage) => stage.listing).length;
    const has: Record<View, boolean> = {
      stage: true,
      diff: reached > 1 || this.trace.previous !== null,
      unroll: kernel.sites.length > 0,
      problems: true,
      run: kernel.ok && reached > 1,
      tiles: !!(kernel.wire.layouts?.length || kernel.wire.pipelines?.length),
    };
    return VIEWS.filter((view) => has[view]);
  }

  private draw(): void {
    const { state } = this;
    if (!this.views().includes(state.view)) this.state = { ...state, view: "stage" };
    if (state.view === "unroll") this.state = { ...state, site: this.unroll.site() };
    const { view, stage, mode, site } = this.state;
    this.holder.setAttribute("aria-labelledby", `${this.id}-${view}`);
    for (const [name, value] of Object.entries({ view, stage: stage.name, kernel: this.state.kernel.name })) this.root.setAttribute(`data-${name}`, value);
    this.root.classList.toggle("tall", this.state.isTall);
    this.verdict.draw();
    this.timeline.draw();
    this.drawTabs();
    this.area.className = `panes ${view}${view === "diff" && mode === "split" ? " solo" : ""}${this.split === null ? "" : " dragged"}`;
    const pane = this.panes[view];
    const isNew = this.drawn?.view !== view;
    if (this.holder.firstChild !== pane.element) this.holder.replaceChildren(pane.element);
    this.source.draw();
    pane.draw();
    if (isNew && isCode(pane)) pane.restore();
    const moved = isNew || this.drawn?.stage !== stage;
    if (view === "unroll" && site && this.drawn?.site !== site) this.source.reveal(site.line);
    this.drawn = { view, mode, stage, site };
    if (moved && view === "stage" && pinned(this.state.pins).length) this.steps.showLongest(pinned(this.state.pins)[0]);
    if (moved || !this.why.hasChildNodes()) this.tell(this.hint());
  }

  private hint(): Kid {
    const { view, pins } = this.state;
    if (view === "problems") return [this.trace.wire.ok ? "click a problem, or its line, to bring the other into sight" : "the cell failed, nothing was launched", this.trace.problems.length > 1 && span("wide", " · F8 next problem")];
    if (view === "unroll") return "h and l, or the arrows on a knob, go from turn to turn";
    if (view === "stage" && !pinned(pins).length) return ["Click a line on either side: it lights up in every stage.", span("dim mid", " Shift+click adds one, up to four.")];
    return "click a line to pin it in every pane · Shift+click pins up to four";
  }

  private drawTabs(): void {
    const { problems } = this.trace;
    const hasErrors = problems.some((problem) => problem.wire.severity === "error");
    fill(
      this.tabs,
      this.views().map((view) =>
        button(`tab-${view}`, [TITLES[view], view === "problems" && problems.length > 0 && span(`number ${hasErrors ? "error" : "warning"}`, problems.length)], () => this.set({ view }), {
          role: "tab",
          title: `${ABOUT[view]} (${VIEWS.indexOf(view) + 1})`,
          id: `${this.id}-${view}`,
          "aria-controls": `${this.id}-panel`,
          "data-tnb": "tab",
          "data-name": view,
          "aria-selected": String(this.state.view === view),
          tabindex: this.state.view === view ? 0 : -1,
        }),
      ),
    );
    this.drawHits();
  }

  /** "2/3 here · 28 in all": the hit line under the cursor, of how many. */
  drawHits(): void {
    const { search, stage, kernel } = this.state;
    const { lines, count } = search.in(stage.listing);
    const pane = this.codePane;
    const at = pane ? lines.indexOf(pane.lineAt(pane.code.cursor) ?? 0) : -1;
    const all = [...new Set(kernel.stages.map((one) => one.listing))].reduce((sum, listing) => sum + search.in(listing).count, 0);
    fill(this.hits, search.query && `${at < 0 ? grouped(count) : `${grouped(at + 1)}/${grouped(lines.length)}`} here · ${grouped(all)} in all`);
  }

  // ---- search and keys

  private get codePane(): CodePane | null {
    const pane = this.panes[this.state.view];
    return isCode(pane) ? pane : null;
  }

  private typed(): void {
    clearTimeout(this.searching);
    const size = this.state.kernel.stages.reduce((sum, stage) => sum + (stage.sameAs ? 0 : (stage.listing?.text.length ?? 0)), 0);
    const search = (): void => {
      this.set({ search: new Search(this.field.value) });
      const { lines } = this.state.search.in(this.state.stage.listing);
      if (lines.length) this.steps.toHit(lines[0]);
    };
    if (size < 500_000) search();
    else this.searching = setTimeout(search, 180) as unknown as number;
  }

  private walkHits(event: KeyboardEvent): void {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    this.guarded(() => this.steps.hit(event.shiftKey ? -1 : 1));
  }


  private readonly actions: Actions = {
    search: () => {
      this.field.focus();
      this.field.select();
    },
    help: () => this.toggleHelp(),
    linked: (distance) => this.steps.linked(distance),
    stage: (distance) => this.goToStage(distance),
    tall: () => this.set({ isTall: !this.state.isTall }),
    next: (distance) => {
      const pane = this.panes[this.state.view];
      if (pane instanceof DiffPane) pane.step(distance);
      else this.steps.hit(distance);
    },
    split: () => this.state.view === "diff" && this.set({ mode: this.state.mode === "split" ? "unified" : "split" }),
    copy: () => this.copy(this.stageText(), this.state.stage.name),
    problem: (distance) => {
      const { length } = this.trace.problems;
      if (!length) return;
      const isThere = this.state.view === "problems";
      const problem = isThere ? (this.state.problem + distance + length) % length : this.state.problem;
      this.set({ problem, view: "problems" });
      const { wire } = this.trace.problems[problem];
      this.say(`problem ${problem + 1} of ${length}: ${wire.severity}, ${wire.message}`);
    },
    sweep: (distance) => {
      if (this.state.view === "unroll") this.unroll.sweep(distance);
    },
    view: (number) => {
      const view = VIEWS[number - 1];
      if (this.views().includes(view)) this.set({ view });
    },
    escape: (typing) => {
      if (this.help) this.toggleHelp();
      else if (typing) {
        this.field.value = "";
        this.set({ search: new Search(""), filter: "" });
        (this.codePane?.code.scroller ?? this.root).focus();
      } else if (pinned(this.state.pins).length) this.set({ pins: Array<null>(PINS).fill(null) });
      else this.options.leave?.();
    },
  };

  private toggleHelp(): void {
    if (this.help) {
      this.help.remove();
      this.help = null;
      (this.cameFrom?.isConnected ? this.cameFrom : this.root).focus();
      return;
    }
    this.cameFrom = document.activeElement as HTMLElement | null;
    this.help = sheet(() => this.toggleHelp());
    this.root.append(this.help);
    this.help.focus();
  }

  // ---- the rest

  private stageText(): string {
    return this.state.stage.listing?.text ?? "";
  }

  private save(): void {
    const { kernel, stage } = this.state;
    const isPass = stage.language === "tir";
    const name = `${kernel.name || "cell"}${isPass ? `.${stage.name}` : ""}.${SUFFIX[stage.language]}`;
    saved(this.stageText(), name);
    this.tell(`${stage.name} saved as ${name}`);
  }

  private splitAt(percent: number, bar: HTMLElement): void {
    this.split = clamp(percent, 15, 75);
    this.area.classList.add("dragged");
    this.area.style.setProperty("--split", `${this.split}%`);
    bar.setAttribute("aria-valuenow", String(Math.round(this.split)));
  }

  /** A fault of the view is said in the view. */
  private guarded(act: () => void): void {
    try {
      act();
    } catch (fault) {
      this.root.querySelector(":scope > .fault")?.remove();
      this.root.prepend(faultNote(fault));
    }
  }
}

const isCode = (pane: Pane): pane is CodePane => "lineAt" in pane;

