// Two lines side by side: how alike they are, and which words differ.

import { comparedNow } from "./compare";

export type Range = readonly [start: number, end: number];

const WORD = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;
const LONGEST = 2000; // characters of a line that is compared by words

function telling(line: string): string[] {
  const all = words(line).filter((word) => word.trim());
  const names = all.filter((word) => /[\p{L}\p{N}_]/u.test(word));
  return names.length ? names : all;
}

const words = (line: string): string[] => line.match(WORD) ?? [];

/** 0 (nothing in common) to 1 (equal): shared names and numbers; of lines without any, shared signs. */
export function likeness(a: string, b: string): number {
  if (a.length > LONGEST || b.length > LONGEST) return 0;
  const left = telling(a);
  const right = telling(b);
  const counts = new Map<string, number>();
  for (const word of left) counts.set(word, (counts.get(word) ?? 0) + 1);
  let shared = 0;
  for (const word of right) {
    const n = counts.get(word) ?? 0;
    if (n > 0) {
      shared++;
      counts.set(word, n - 1);
    }
  }
  return left.length + right.length ? (2 * shared) / (left.length + right.length) : 0;
}

/** The ranges of either line that the other does not have. */
export function differences(a: string, b: string): { a: Range[]; b: Range[] } {
  const left = words(a);
  const right = words(b);
  const runs = comparedNow(
    left.map((word) => (word.trim() ? word : "\u0000 ")),
    right.map((word) => (word.trim() ? word : "\u0000 ")),
  );
  const keptLeft = new Uint8Array(left.length);
  const keptRight = new Uint8Array(right.length);
  for (let run = 0; run < runs.length; run += 3) {
    keptLeft.fill(1, runs[run], runs[run] + runs[run + 2]);
    keptRight.fill(1, runs[run + 1], runs[run + 1] + runs[run + 2]);
  }
  return { a: ranges(left, keptLeft), b: ranges(right, keptRight) };
}

function ranges(tokens: readonly string[], kept: Uint8Array): Range[] {
  const found: [number, number][] = [];
  let at = 0;
  tokens.forEach((token, i) => {
    const end = at + token.length;
    // white space at the edge of a line says nothing; between two changed words it belongs to the change
    if (!kept[i] && (token.trim() || found.at(-1)?.[1] === at)) {
      const last = found.at(-1);
      if (last && last[1] === at) last[1] = end;
      else found.push([at, end]);
    }
    at = end;
  });
  return found;
}
