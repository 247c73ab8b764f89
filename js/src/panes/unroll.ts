// Compile-time loops, comprehensions and macros: how often each ran, what share of the final text it made, what one turn of it bound
// and which lines are that turn's; turns that are equal but for a few places as one template.

import { CodeView } from "../code_view";
import { ACROSS, bold, button, div, DOWN, fill, h, prose, roving, span, type Kid } from "../dom";
import type { Site } from "../expansion";
import type { Listing } from "../listing";
import { painted } from "../paint";
import type { Shell } from "../state";
import { holeNames, Templates, type Template } from "../template";
import { clamp, grouped, percent, plural } from "../text";
import type { Kernel, Stage } from "../trace";
import { ListingRows } from "./listing_rows";
import { codeListeners, softenCode, type CodePane } from "./stage";

const COLUMNS = 12; // turns of a loop whose values stand side by side
const MOST_VALUES = 200; // turns in a table of values
const CELLS = 80; // turns that get a cell of their own in the knob
const WORDS: Record<string, string> = { for: "loop", comprehension: "comprehension", macro: "macro", unroll: "unrolled loop" };

export class UnrollPane implements CodePane {
  readonly element: HTMLElement;
  readonly code: CodeView;
  private readonly tree = h("div", { class: "tree", role: "tree", "aria-label": "what runs while the kernel is built" });
  private readonly knobs = div("knobs");
  private readonly bar = div("sub parts");
  private readonly folded = h("div", { class: "template", "data-tnb": "template", role: "group", "aria-label": "template of the turns", tabindex: 0 });
  private readonly details: HTMLElement;
  /** Where there is no room for both, the lines of the turn are shown or the template. */
  private showsTemplate = false;
  private readonly empty = div("empty");
  private shownTree: { sites: readonly Site[] } | null = null;
  private shown: { stage: Stage; site: Site; picked: number } | null = null;
  private readonly first = new WeakMap<Kernel, Site>();
  private readonly templates = new Map<Site, { listing: Listing; templates: Templates }>();

  constructor(private readonly shell: Shell) {
    this.code = new CodeView("unroll", "text of the stage", "code", codeListeners(shell, this));
    roving(this.tree, { ...DOWN, ...ACROSS }, (distance) => this.walk(distance));
    roving(this.tree, { Home: -1e6, End: 1e6 }, (distance) => this.walk(distance));
    this.details = div("details", this.knobs, this.bar, this.folded, this.empty, this.code.element);
    this.element = div("body unroll", this.tree, this.details);
  }

  close(): void {
    this.code.close();
  }

  draw(): void {
    const { state } = this.shell;
    const site = this.site();
    this.drawTree(site);
    if (!site) return;
    const path = this.path(site);
    const picked = site.ordinal(path);
    const { listing } = state.stage;
    const canTell = listing?.hasStatements ?? false;
    const templates = canTell ? this.templatesOf(site, listing!) : null;
    const template = templates?.of(picked) ?? null;
    this.drawKnobs(site, path, template, templates);
    this.drawTemplate(site, template, templates, picked);
    this.details.classList.toggle("folded", this.showsTemplate && template !== null);
    const why = picked < 0
      ? `Line ${site.line} does not run in this turn of the loops around it.`
      : !listing
      ? `${state.stage.name} was not reached.`
      : state.stage.name === "source"
        ? "The source says it once. Pick a stage above to see what each turn made."
        : !canTell
          ? `${state.stage.name} does not tell its iterations apart; its lines are linked to the source as a whole.`
          : null;
    const isValue = canTell && templates!.makers === 0;
    this.empty.hidden = why === null && !isValue;
    if (why) fill(this.empty, why);
    else if (isValue) fill(this.empty, this.values(site, path));
    this.code.element.hidden = listing === null || isValue;
    if (!listing || isValue) return;
    const isSame = this.shown?.stage === state.stage && this.shown.site === site && this.shown.picked === picked;
    const isSameStage = this.shown?.stage === state.stage;
    this.shown = { stage: state.stage, site, picked };
    if (isSame) {
      this.code.redraw();
      return;
    }
    const turns = { of: (line: number) => site.maker(listing.statement(line)), picked };
    this.code.show(new ListingRows(this.shell, state.stage, canTell ? turns : null, () => this.code.redraw()), isSameStage);
    if (!canTell || picked < 0) return;
    const [first] = site.linesOf(listing, picked);
    if (first !== undefined && !this.code.isVisible(first - 1)) this.code.reveal(first - 1);
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

  /** To another turn of the picked loop. */
  sweep(distance: number): void {
    const site = this.site();
    if (!site) return;
    const path = this.path(site);
    this.turnTo(site, path.length - 1, path.at(-1)! + distance);
  }

  /** The picked site; at first the one that tells most. */
  site(): Site | null {
    const { kernel, site } = this.shell.state;
    if (site && kernel.sites.includes(site)) return site;
    const known = this.first.get(kernel);
    if (known || !kernel.sites.length) return known ?? null;
    // the one that tells most: many turns that make much of the text
    const listing = kernel.stages.findLast((stage) => stage.listing?.hasStatements)?.listing;
    const telling = (one: Site): number => (one.kind === "comprehension" ? 0 : 1) * (listing ? one.share(listing) : 1) * Math.min(one.turns.length, 8);
    const [, best] = kernel.sites.map((one) => [telling(one), one] as const).reduce((most, one) => (one[0] > most[0] ? one : most));
    this.first.set(kernel, best);
    return best;
  }

  /** The picked turn of a site, made to fit. The loops around it may have turns that never reach it: then it has no such turn. */
  private path(site: Site): number[] {
    if (!this.shell.state.path.length) return [...(site.turns[0]?.path ?? [])];
    const path: number[] = [];
    for (const one of site.chain()) {
      const trips = one.trips(path);
      path.push(clamp(this.shell.state.path[path.length] ?? 0, 0, Math.max(0, trips - 1)));
    }
    return path;
  }

  private walk(distance: number): void {
    const { sites } = this.shell.state.kernel;
    const site = sites[clamp(sites.indexOf(this.site()!) + distance, 0, sites.length - 1)];
    this.choose(site);
    this.tree.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }

  private choose(site: Site): void {
    this.shell.set({ site, path: this.shell.state.path.slice(0, site.depth) });
    this.shell.say(`${WORDS[site.kind] ?? site.kind} of line ${site.line}, ${plural(site.turns.length, "turn")}`);
  }

  private turnTo(site: Site, depth: number, turn: number): void {
    const path = this.path(site);
    const one = site.chain()[depth];
    path[depth] = clamp(turn, 0, Math.max(0, one.trips(path.slice(0, depth)) - 1));
    this.shell.set({ site, path });
    const bound = one.turn(path.slice(0, depth + 1));
    if (bound) this.shell.say(one.names.map((name, i) => `${name} = ${one.bound(bound)[i] ?? ""}`).join(", "));
  }

  private drawTree(picked: Site | null): void {
    const { kernel } = this.shell.state;
    const last = kernel.stages.findLast((stage) => stage.listing?.hasStatements) ?? null;
    if (this.shownTree?.sites !== kernel.sites) {
      this.shownTree = { sites: kernel.sites };
      fill(this.tree, kernel.sites.map((site) => this.node(site, last)));
    }
    for (const element of this.tree.children as HTMLCollectionOf<HTMLElement>) {
      const isPicked = element.dataset.at === String(kernel.sites.indexOf(picked!));
      element.setAttribute("aria-selected", String(isPicked));
      element.tabIndex = isPicked ? 0 : -1;
      if (isPicked && this.shown?.site !== picked) requestAnimationFrame(() => element.scrollIntoView?.({ block: "nearest", inline: "center" }));
    }
  }

  private node(site: Site, last: Stage | null): Kid {
    const share = last ? site.share(last.listing!) : 0;
    const made = share > 0 ? ` · ${percent(share)} of ${last!.name}` : site.kind === "comprehension" ? "" : " · makes no lines";
    const trips = site.parent ? site.trips(site.turns[0]?.path.slice(0, -1) ?? []) : site.turns.length;
    const isEven = trips * (site.parent?.turns.length ?? 1) === site.turns.length;
    return button(
      `node-${site.id}`,
      [
        span("header ellipsis", painted(site.header, "python")),
        h("span", { class: "trips", title: `${plural(site.turns.length, "turn")} in all` }, site.kind === "macro" && site.turns.length === 1 ? "" : `×${grouped(isEven && site.kind !== "macro" ? trips : site.turns.length)}`),
        span("about ellipsis", `${site.kind === "for" ? "" : `${WORDS[site.kind] ?? site.kind} · `}line ${site.line}${made}`),
        share > 0 && h("span", { class: "meter", style: { "--share": percent(share).replace("<1 %", "1%").replace(" ", "") } }),
      ],
      () => this.choose(site),
      {
        on: { click: () => this.choose(site), mouseenter: () => this.shell.soften([site.line]), mouseleave: () => this.shell.soften(null) },
        class: "node",
        role: "treeitem",
        "data-tnb": "node",
        "data-node": site.id,
        "data-at": this.shell.state.kernel.sites.indexOf(site),
        "aria-level": site.depth + 1,
        style: { "--depth": String(site.depth) },
        title: `${site.header}\n${plural(site.turns.length, "turn")} in all`,
      },
    );
  }

  private templatesOf(site: Site, listing: Listing): Templates {
    const known = this.templates.get(site);
    if (known?.listing === listing) return known.templates;
    const templates = new Templates(site, listing);
    this.templates.set(site, { listing, templates });
    return templates;
  }

  private drawKnobs(site: Site, path: readonly number[], template: Template | null, templates: Templates | null): void {
    fill(
      this.knobs,
      site.chain().map((one, depth) => {
        const around = path.slice(0, depth);
        const trips = one.trips(around);
        if (trips < 2 && one !== site) return null;
        return this.knob(site, one, depth, path, trips, one === site ? template : null, templates);
      }),
    );
  }

  private knob(site: Site, one: Site, depth: number, path: readonly number[], trips: number, template: Template | null, templates: Templates | null): Kid {
    const at = path[depth];
    const around = path.slice(0, depth);
    const valuesAt = (turn: number): readonly string[] => {
      const found = one.turn([...around, turn]);
      return found ? one.bound(found) : [];
    };
    const here = valuesAt(at);
    const said = one.names.map((name, i) => `${name} = ${here[i] ?? ""}`).join(", ");
    const showsColumns = one === site && trips <= COLUMNS && trips > 1;
    const turnAt = (event: PointerEvent): number => {
      const box = strip.getBoundingClientRect();
      return clamp(Math.floor(((event.clientX - box.left) / box.width) * trips), 0, trips - 1);
    };
    const range = h("input", {
      type: "range",
      min: 0,
      max: Math.max(0, trips - 1),
      step: 1,
      value: at,
      "data-tnb": "knob",
      "data-depth": depth,
      "data-k": `knob-${depth}`,
      "aria-label": `turn of line ${one.line}: ${one.header}`,
      "aria-valuetext": said,
      on: { input: () => this.turnTo(site, depth, Number(range.value)) },
    });
    range.value = String(at);
    const isOdd = (turn: number): boolean => one === site && templates !== null && templates.isOdd(one.ordinal([...around, turn]));
    const isAlike = (turn: number): boolean => template !== null && template.members.size > 1 && template.members.has(one.ordinal([...around, turn]));
    const strip = h(
      "span",
      { class: `strip${trips > CELLS ? " smooth" : ""}`, style: { "--at": String(at), "--trips": String(Math.max(1, trips)) } },
      trips <= CELLS
        ? Array.from({ length: trips }, (_, turn) =>
            h("span", { class: `${turn === at ? "on" : ""}${isOdd(turn) ? " odd" : ""}${isAlike(turn) ? " alike" : ""}`, title: isOdd(turn) ? "made by another template than most" : null }, trips <= COLUMNS && span("ellipsis", showsColumns || trips > 4 ? (valuesAt(turn)[0] ?? "") : valuesAt(turn).join(", "))),
          )
        : span("on"),
      range,
    );
    strip.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      range.focus({ preventScroll: true });
      this.turnTo(site, depth, turnAt(event));
    });
    strip.addEventListener("pointermove", (event) => {
      if (event.buttons !== 1) return;
      const turn = turnAt(event);
      if (turn !== this.path(site)[depth]) this.turnTo(site, depth, turn);
    });
    roving(range, { PageUp: 10, PageDown: -10 }, (distance) => this.turnTo(site, depth, this.path(site)[depth] + distance));
    roving(range, ACROSS, (distance) => this.turnTo(site, depth, this.path(site)[depth] + distance));
    const bound = one.names.map((name, i) => h("span", { class: "bound", "data-tnb": "bound", "data-name": name, title: `${name} = ${here[i] ?? ""}` }, `${name} = `, bold(short(here[i] ?? ""))));
    if (trips < 2) return div("knob", span("dim", "bound"), div("bounds", one.names.some(Boolean) && bound));
    if (!showsColumns)
      return div("knob", span("dim mono ellipsis", one.names[0]), strip, one === site && [span(""), div("bounds", bound, span("dim", `turn ${grouped(at + 1)} of ${grouped(trips)}`))]);
    const line = (name: string, get: (turn: number) => string, kind: string): Kid => [
      span(`dim mono ellipsis ${kind}`, name),
      span(`cells ${kind}`, Array.from({ length: trips }, (_, turn) => h("span", { class: turn === at ? "on" : "", title: get(turn), ...(turn === at && kind === "" ? { "data-tnb": "bound", "data-name": name } : {}) }, span("ellipsis", short(get(turn)))))),
    ];
    return div(
      "knob",
      h("span", { class: "dim mono ellipsis", "data-tnb": "bound", "data-name": one.names[0], title: said, "aria-label": `${one.names[0]} = ${here[0] ?? ""}` }, one.names[0]),
      strip,
      one.names.slice(1).map((name, i) => line(name, (turn) => valuesAt(turn)[i + 1] ?? "", "")),
      template?.holes.slice(0, 8).map((hole, i) => line(this.holes(site, template)[i], (turn) => hole.values.get(one.ordinal([...around, turn])) ?? "", "holes")),
    );
  }

  /** What the turns of a site that makes no lines bound: a table, for its values are all that there is to see. */
  private values(site: Site, path: readonly number[]): Kid {
    const around = path.slice(0, -1);
    const trips = site.trips(around);
    const rows = Array.from({ length: Math.min(trips, MOST_VALUES) }, (_, turn) => {
      const found = site.turn([...around, turn]);
      const cells = [h("td", { class: "dim" }, grouped(turn + 1)), (found ? site.bound(found) : []).map((value) => h("td", { class: "mono" }, value))];
      return h("tr", { class: turn === path.at(-1) ? "on" : "", on: { click: () => this.turnTo(site, path.length - 1, turn) } }, cells);
    });
    return [
      h("p", null, `${site.kind === "comprehension" ? "It builds a value while the kernel is built" : "It runs while the kernel is built"} and makes no lines of ${this.shell.state.stage.name}${trips > MOST_VALUES ? `; the first ${MOST_VALUES} of ${grouped(trips)} turns` : ""}.`),
      h("table", { class: "values" }, h("thead", null, h("tr", null, h("th", null, "turn"), site.names.map((name) => h("th", { class: "mono" }, name)))), h("tbody", null, rows)),
    ];
  }

  private show(isTemplate: boolean): void {
    this.showsTemplate = isTemplate;
    this.shell.set({});
  }

  private holes(site: Site, template: Template): string[] {
    return holeNames(template.holes.length, site.chain().flatMap((one) => one.names));
  }

  private drawTemplate(site: Site, template: Template | null, templates: Templates | null, picked: number): void {
    this.folded.hidden = this.bar.hidden = template === null;
    if (!template || !templates) return;
    const { stage } = this.shell.state;
    const lines = site.linesOf(stage.listing!, picked).length;
    const holeAt = new Map<number, number>();
    template.holes.forEach((hole, i) => hole.at.forEach((at) => holeAt.set(at, i)));
    const names = this.holes(site, template);
    const pre = h("pre", null);
    let line = "";
    const marks: { start: number; end: number; hole: number }[] = [];
    const flush = (): void => {
      let at = 0;
      for (const { start, end, hole } of marks) {
        pre.append(painted(line.slice(at, start), stage.language), h("span", { class: "hole" }, line.slice(start, end), h("sub", null, names[hole])));
        at = end;
      }
      pre.append(painted(line.slice(at), stage.language), "\n");
      line = "";
      marks.length = 0;
    };
    template.tokens.forEach((token, at) => {
      const hole = holeAt.get(at);
      if (hole !== undefined) marks.push({ start: line.length, end: line.length + token.length, hole });
      const parts = token.split("\n");
      parts.forEach((part, i) => {
        if (i > 0) flush();
        line += part;
      });
    });
    flush();
    const { size } = template.members;
    const isPart = templates.compared < templates.makers;
    const of = isPart ? `${templates.compared} that were compared` : `${templates.makers} turns`;
    const words =
      templates.makers === 1
        ? "the only turn that makes lines"
        : size === 1
          ? `like no other of ${of}`
          : `${size >= (isPart ? templates.compared : templates.makers) ? (isPart ? `like all ${of}` : `all ${of}`) : `${size} of ${of}`}, equal${template.holes.length ? " but for the marked places" : ""}`;
    const part = (name: string, isTemplate: boolean): Kid =>
      button(`part-${name}`, name, () => this.show(isTemplate), { "aria-pressed": String(this.showsTemplate === isTemplate), "data-tnb": "part", "data-name": name });
    fill(
      this.bar,
      span("segments", part("lines", false), part("template", true)),
      span("dim grow ellipsis", prose(words)),
      h("span", { class: "dim", "data-lines": lines }, `${plural(lines, "line")} of `, bold(stage.name)),
    );
    fill(this.folded, pre);
  }
}

const short = (value: string): string => (/^-?\d+\.\d{5,}/.test(value) ? String(Number(Number(value).toPrecision(4))) : value);
