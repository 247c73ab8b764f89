// Where a text occurs in the listings of a kernel. Case does not matter; one listing is searched once per query.

import type { Listing } from "./listing";
import type { Mark } from "./paint";

export interface Hits {
  /** Occurrences, which may be several in a line. */
  readonly count: number;
  /** Lines (from 1) with any, ascending. */
  readonly lines: Int32Array;
}

const NOTHING: Hits = { count: 0, lines: new Int32Array(0) };

export class Search {
  readonly query: string;
  private readonly pattern: RegExp | null;
  private readonly found = new Map<Listing, Hits>();

  constructor(query: string) {
    this.query = query;
    this.pattern = query ? new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi") : null;
  }

  in(listing: Listing | null): Hits {
    if (!this.pattern || !listing) return NOTHING;
    let hits = this.found.get(listing);
    if (!hits) this.found.set(listing, (hits = this.searched(listing)));
    return hits;
  }

  marks(line: string): Mark[] {
    if (!this.pattern) return [];
    return [...line.matchAll(this.pattern)].map((match) => ({ start: match.index, end: match.index + match[0].length, class: "hit" }));
  }

  private searched(listing: Listing): Hits {
    const lines: number[] = [];
    let count = 0;
    listing.rows.forEach((row, i) => {
      this.pattern!.lastIndex = 0;
      let any = false;
      while (this.pattern!.exec(row)) {
        count++;
        any = true;
      }
      if (any) lines.push(i + 1);
    });
    return { count, lines: Int32Array.from(lines) };
  }
}

/** The entry of ascending lines after (or before) one, or undefined. */
export function neighbour(lines: Int32Array, line: number, distance: 1 | -1): number | undefined {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (distance > 0 ? lines[half] <= line : lines[half] < line) low = half + 1;
    else high = half;
  }
  return lines[distance > 0 ? low : low - 1];
}
