// A comparison as rows: unified, or side by side with alike lines beside each other. Long equal stretches fold.

import { likeness } from "./words";

export const SAME = 0;
export const REMOVED = 1;
export const ADDED = 2;
/** Side by side: a changed row, either side of which may be empty. */
export const CHANGED = 3;
export const FOLDED = 4;

const CONTEXT = 3;
const SHORTEST_FOLD = 4;
const MOST_PAIRED = 900; // removed times added lines of a block whose lines are paired by likeness
const ALIKE = 0.5;

/** Places from 1; 0 where the side has no line. Of a folded row: the first hidden line on either side, and how many there are. */
export interface DiffRows {
  readonly count: number;
  readonly kind: Uint8Array;
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly hidden: Int32Array;
  /** Removed line -> the added line that it became, both from 1. */
  readonly mates: ReadonlyMap<number, number>;
  readonly removed: number;
  readonly added: number;
}

interface Texts {
  readonly a: readonly string[];
  readonly b: readonly string[];
}

/** Rows of a comparison. opened: folds that are open, by their first line in b (in a where that is empty). */
export function diffRows(texts: Texts, runs: Int32Array, mode: "unified" | "split", opened: ReadonlySet<number>): DiffRows {
  const kind: number[] = [];
  const left: number[] = [];
  const right: number[] = [];
  const hidden: number[] = [];
  const mates = new Map<number, number>();
  const push = (k: number, x: number, y: number, n = 0): void => {
    kind.push(k);
    left.push(x);
    right.push(y);
    hidden.push(n);
  };
  let removed = 0;
  let added = 0;
  let x = 0;
  let y = 0;
  const change = (toX: number, toY: number): void => {
    const pairs = paired(texts, x, toX, y, toY);
    for (const [i, j] of pairs) mates.set(i + 1, j + 1);
    removed += toX - x;
    added += toY - y;
    if (mode === "unified") {
      for (let i = x; i < toX; i++) push(REMOVED, i + 1, 0);
      for (let j = y; j < toY; j++) push(ADDED, 0, j + 1);
    } else {
      let j = y;
      for (let i = x; i < toX; i++) {
        const mate = pairs.get(i);
        if (mate !== undefined) while (j < mate) push(CHANGED, 0, ++j);
        push(CHANGED, i + 1, mate === undefined ? 0 : ++j);
      }
      while (j < toY) push(CHANGED, 0, ++j);
    }
    [x, y] = [toX, toY];
  };
  for (let run = 0; run < runs.length; run += 3) {
    change(runs[run], runs[run + 1]);
    const length = runs[run + 2];
    const isFirst = run === 0 && x === 0 && y === 0;
    const isLast = x + length === texts.a.length && y + length === texts.b.length;
    const head = isFirst ? 0 : CONTEXT;
    const tail = isLast ? 0 : CONTEXT;
    const isFolded = length - head - tail >= SHORTEST_FOLD && !opened.has(y + 1);
    for (let i = 0; i < length; i++) {
      if (isFolded && i === head) {
        push(FOLDED, x + 1, y + 1, length - head - tail);
        i = length - tail - 1;
      } else push(SAME, x + i + 1, y + i + 1);
    }
    x += length;
    y += length;
  }
  change(texts.a.length, texts.b.length);
  return { count: kind.length, kind: Uint8Array.from(kind), a: Int32Array.from(left), b: Int32Array.from(right), hidden: Int32Array.from(hidden), mates, removed, added };
}

/** Which removed line (from 0) became which added one, in order. */
function paired({ a, b }: Texts, x0: number, x1: number, y0: number, y1: number): Map<number, number> {
  const pairs = new Map<number, number>();
  if ((x1 - x0) * (y1 - y0) > MOST_PAIRED) {
    // too many to look for the best: line by line where they are alike
    for (let i = 0; i < Math.min(x1 - x0, y1 - y0, MOST_PAIRED); i++) if (likeness(a[x0 + i], b[y0 + i]) > ALIKE) pairs.set(x0 + i, y0 + i);
    return pairs;
  }
  let from = y0;
  for (let i = x0; i < x1; i++) {
    let best = -1;
    let score = ALIKE;
    for (let j = from; j < y1; j++) {
      const alike = likeness(a[i], b[j]);
      if (alike > score) [best, score] = [j, alike];
    }
    if (best < 0) continue;
    pairs.set(i, best);
    from = best + 1;
  }
  return pairs;
}
