// What is shown, and what the panes may ask of the whole.

import type { Kid } from "./dom";
import type { Differ } from "./differ";
import type { Site } from "./expansion";
import type { Origin } from "./listing";
import { Search } from "./search";
import type { Kernel, Stage, Trace } from "./trace";

export const VIEWS = ["stage", "diff", "unroll", "problems", "run", "tiles"] as const;
export type View = (typeof VIEWS)[number];
export const PINS = 4;
/** Compare with the last run of the cell. */
export const LAST_RUN = "last";

export interface State {
  readonly kernel: Kernel;
  readonly view: View;
  readonly stage: Stage;
  /** Name of the stage to compare with, LAST_RUN, or null for the one before. */
  readonly base: string | null;
  readonly mode: "unified" | "split";
  /** Source lines by number of the pin. */
  readonly pins: readonly (number | null)[];
  readonly search: Search;
  readonly filter: string;
  readonly showsSame: boolean;
  readonly openGroups: ReadonlySet<string>;
  readonly isTall: boolean;
  readonly problem: number;
  readonly site: Site | null;
  readonly path: readonly number[];
  /** Name of the stage that the kernel process was asked to compile and has not sent yet. */
  readonly asked: string | null;
}

/** What became of a text for a new cell: nothing, a cell, a cell that has the focus. */
export type Inserted = "" | "inserted" | "selected";

export interface Shell {
  readonly trace: Trace;
  readonly state: State;
  readonly differ: Differ;
  /** Puts text into a new cell below; null where there is no notebook. */
  readonly insert: ((text: string) => Promise<Inserted>) | null;
  set(patch: Partial<State>): void;
  /** Asks for a stage that is compiled on demand; null where nobody can be asked. */
  readonly request: ((stage: Stage) => void) | null;
  /** Speaks to screen readers. */
  say(text: string): void;
  /** Writes into the foot. */
  tell(...kids: Kid[]): void;
  /** Lights the lines that belong to source lines softly. */
  soften(lines: readonly number[] | null): void;
  pin(line: number, adding: boolean, from: "source" | "code" | "other"): void;
  /** Says in the foot why a line of a stage, usually the shown one, is there. inPassing: begins no long comparison for it. */
  explain(line: number, stage?: Stage, inPassing?: boolean): void;
  copy(text: string, what: string): void;
  goToStage(distance: number): void;
  /** Says anew which hit the cursor is at. */
  drawHits(): void;
}

export interface Pane {
  readonly element: HTMLElement;
  draw(): void;
  close?(): void;
}

export interface Carried {
  readonly pin: number;
  readonly isFurther: boolean;
}

/** The pins that a line carries, that of its origin first; isFurther: only through a further line (a call, a layout). */
export function pinsOf(pins: readonly (number | null)[], origin: Origin | null): Carried[] {
  return (origin?.lines ?? []).map((line, i) => ({ pin: pins.indexOf(line), isFurther: i > 0 })).filter(({ pin }) => pin >= 0);
}

/** The first of them; null for none. */
export const pinOf = (pins: readonly (number | null)[], origin: Origin | null): Carried | null => pinsOf(pins, origin)[0] ?? null;

export const pinned = (pins: readonly (number | null)[]): number[] => pins.filter((line) => line !== null);

/** The pins after a line was picked: alone, or added to the others; picked again, it goes. */
export function picked(pins: readonly (number | null)[], line: number, adding: boolean): (number | null)[] {
  const none = Array<number | null>(PINS).fill(null);
  const at = pins.indexOf(line);
  if (at >= 0) return adding || pinned(pins).length === 1 ? pins.map((pin) => (pin === line ? null : pin)) : [line, ...none.slice(1)];
  if (!adding) return [line, ...none.slice(1)];
  const free = pins.indexOf(null);
  return pins.map((pin, i) => (i === (free < 0 ? PINS - 1 : free) ? line : pin));
}

/** Stages that the timeline shows one by one, given the filter and the folded groups; what it leaves out. isFull: the rail has no
    room for the lowering stages too. */
export function inTimeline(state: State, isFull = false): { items: (Stage | { group: string; stages: Stage[] })[]; hidden: number } {
  const wanted = state.filter.trim().toLowerCase();
  const items: (Stage | { group: string; stages: Stage[] })[] = [];
  let hidden = 0;
  for (const stage of state.kernel.stages) {
    if (wanted) {
      if (stage.name.toLowerCase().includes(wanted) || stage.group?.toLowerCase().includes(wanted)) items.push(stage);
      continue;
    }
    const isUnreached = stage.state === "not_reached" && !stage.landmark;
    const group = isUnreached ? "not reached" : stage.group;
    const isMinor = group === "tir" || (isFull && group === "lowering" && stage.state !== "failed");
    const isFolded = isUnreached || (isMinor && !state.openGroups.has(group!) && state.stage.group !== group);
    if (group && isFolded) {
      const last = items.findLast((item) => !("name" in item) && item.group === group) as { group: string; stages: Stage[] } | undefined;
      if (last) last.stages.push(stage);
      else items.push({ group, stages: [stage] });
      continue;
    }
    if (stage.state === "same" && !stage.landmark && !state.showsSame && stage !== state.stage) {
      hidden++;
      continue;
    }
    items.push(stage);
  }
  return { items, hidden };
}

/** What is shown first; of the same run, or of another run of the cell, what was shown before as far as it is still there. */
export function firstState(trace: Trace, before: State | null, isSameRun: boolean): State {
  const kernel = trace.kernels.find((one) => one.name === before?.kernel.name) ?? trace.kernels[0];
  const named = (name: string | null | undefined): Stage | undefined => kernel.stages.find((stage) => stage.name === name && stage.listing);
  const asked = named(before?.asked);
  const kept = isSameRun ? before : null;
  const usual = trace.problems.some((problem) => problem.foundIn !== null || problem.wire.severity === "error") ? "problems" : (before?.view ?? "stage");
  const view = asked && (kept?.view === "problems" || kept?.view === "run") ? "stage" : (kept?.view ?? usual);
  return {
    kernel,
    view,
    stage: asked ?? named(before?.stage.name) ?? kernel.initial,
    base: before?.base ?? null,
    mode: before?.mode ?? "unified",
    pins: kept?.pins ?? Array<null>(PINS).fill(null),
    search: new Search(kept?.search.query ?? ""),
    filter: kept?.filter ?? "",
    showsSame: before?.showsSame ?? false,
    openGroups: before?.openGroups ?? new Set(),
    isTall: before?.isTall ?? false,
    problem: kept?.problem ?? 0,
    site: kernel.sites.find((site) => site.id === kept?.site?.id) ?? null,
    path: kept?.path ?? [],
    asked: asked ? null : (kept?.asked ?? null),
  };
}
