// Which stage made a line and which removes it, by following the line through the comparisons of neighbouring stages.

import type { Differ } from "./differ";
import type { Stage } from "./trace";

/** Place (from 0) in b of line `at` of a, or -1. */
export function across(runs: Int32Array, at: number): number {
  return through(runs, at, 0, 1);
}

/** Place (from 0) in a of line `at` of b, or -1. */
export function back(runs: Int32Array, at: number): number {
  return through(runs, at, 1, 0);
}

function through(runs: Int32Array, at: number, from: 0 | 1, to: 0 | 1): number {
  let low = 0;
  let high = runs.length / 3;
  while (low < high) {
    const half = (low + high) >> 1;
    if (runs[3 * half + from] + runs[3 * half + 2] <= at) low = half + 1;
    else high = half;
  }
  const run = 3 * low;
  return run < runs.length && runs[run + from] <= at ? runs[run + to] + at - runs[run + from] : -1;
}

/** The stages whose text can be compared with this one's, one of each text, in order. */
export function comparable(stages: readonly Stage[], stage: Stage): Stage[] {
  return stages.filter((s) => s.listing && !s.sameAs && s.name !== "source" && s.language === stage.language);
}

export interface Life {
  readonly madeBy: string;
  readonly removedBy: string | null;
}

/** Where a line (from 1) of a stage begins and ends; null while a comparison is under way, which `then` hears of. Without `then`, long
 * comparisons are not begun. */
export function life(differ: Differ, stages: readonly Stage[], stage: Stage, line: number, then: (() => void) | null): Life | null {
  const chain = comparable(stages, stage);
  const here = chain.findIndex((s) => s.listing === stage.listing);
  if (here < 0 || (!then && chain.some((one, i) => i > 0 && !differ.isQuick(chain[i - 1].listing!, one.listing!)))) return null;
  let first = here;
  for (let at = line - 1; first > 0; first--) {
    const runs = differ.runs(chain[first - 1].listing!, chain[first].listing!);
    if (runs instanceof Promise) {
      if (then) void runs.then(then);
      return null;
    }
    at = back(runs, at);
    if (at < 0) break;
  }
  let last = here;
  for (let at = line - 1; last + 1 < chain.length; last++) {
    const runs = differ.runs(chain[last].listing!, chain[last + 1].listing!);
    if (runs instanceof Promise) {
      if (then) void runs.then(then);
      return null;
    }
    at = across(runs, at);
    if (at < 0) break;
  }
  return { madeBy: chain[first].name, removedBy: chain[last + 1]?.name ?? null };
}

/** The comparable stage before this one's text: what its new lines are new against. */
export function before(stages: readonly Stage[], stage: Stage): Stage | null {
  const chain = comparable(stages, stage);
  return chain[chain.findIndex((s) => s.listing === stage.listing) - 1] ?? null;
}

/** Stretches [first line from 1, count] of b that a has not. */
export function added(runs: Int32Array, lines: number): [number, number][] {
  const found: [number, number][] = [];
  let at = 0;
  for (let run = 0; run <= runs.length; run += 3) {
    const start = run < runs.length ? runs[run + 1] : lines;
    if (start > at) found.push([at + 1, start - at]);
    at = run < runs.length ? start + runs[run + 2] : lines;
  }
  return found;
}
