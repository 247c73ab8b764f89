// The text of a stage, with what is known of each of its lines: where it comes from, why it has no origin, which statement it is.
// Stages of a hundred thousand lines are usual, so nothing here makes an object per line.

import { columns } from "./text";
import type { Language, LinkKind, WireStage } from "./wire";

/** Lines first.. (count of them) of a listing; how their source line relates to them. */
export interface Stretch {
  readonly first: number;
  readonly count: number;
  readonly kind: "origin" | LinkKind;
}

export interface Origin {
  readonly lines: readonly number[];
  readonly kinds: readonly LinkKind[];
}

/** What a source line makes, rather than what merely names its buffer or follows its layout. */
export const makes = (kind: Stretch["kind"]): boolean => kind !== "definition" && kind !== "layout";

/** The links, read from the runs alone: the timeline asks for those of every stage. */
interface Links {
  readonly origins: readonly Origin[];
  /** Runs of lines [first, count, number of the origin from 1]. */
  readonly runs: readonly (readonly [number, number, number])[];
  readonly bySource: ReadonlyMap<number, readonly Stretch[]>;
}

/** What is known line by line, found when a stage is opened: most of a report never are. */
interface Index {
  readonly originAt: Int32Array;
  readonly gapReasons: readonly string[];
  readonly gapAt: Int32Array;
  readonly statementAt: Int32Array | null;
}

interface Coverage {
  /** Lines with an origin, and lines that are not blank. */
  readonly linked: number;
  readonly written: number;
  /** Number of lines by reason of having no origin. */
  readonly reasons: ReadonlyMap<string, number>;
}

export class Listing {
  private split: readonly string[] | null = null;
  private linked: Links | null = null;
  private known: Index | null = null;
  private covered: Coverage | null = null;
  private longest = -1;
  private counted = -1;

  constructor(
    readonly text: string,
    readonly language: Language,
    private readonly wire: Pick<WireStage, "lines" | "gaps" | "statements">,
  ) {}

  /** Line n of the listing is rows[n - 1]. */
  get rows(): readonly string[] {
    return (this.split ??= this.text.split("\n"));
  }

  /** How many lines there are. */
  get count(): number {
    if (this.split) return this.split.length;
    if (this.counted < 0) {
      this.counted = 1;
      for (let at = this.text.indexOf("\n"); at >= 0; at = this.text.indexOf("\n", at + 1)) this.counted++;
    }
    return this.counted;
  }

  /** Columns of the longest line. */
  get width(): number {
    if (this.longest < 0) {
      const hasTabs = this.text.includes("\t");
      this.longest = this.rows.reduce((most, row) => Math.max(most, hasTabs ? columns(row) : row.length), 0);
    }
    return this.longest;
  }

  private get links(): Links {
    return (this.linked ??= linksOf(this.wire));
  }

  private get index(): Index {
    return (this.known ??= indexed(this.count, this.links, this.wire));
  }

  get coverage(): Coverage {
    if (this.covered) return this.covered;
    let [linked, written] = [0, 0];
    const reasons = new Map<string, number>();
    const { originAt, gapAt, gapReasons } = this.index;
    this.rows.forEach((row, i) => {
      if (originAt[i + 1]) linked++;
      else if (row.trim() === "") return;
      else {
        const reason = gapReasons[gapAt[i + 1] - 1] ?? "no reason given";
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      }
      written++;
    });
    return (this.covered = { linked, written, reasons });
  }

  /** The source lines of a line, the one it comes from first; null where there is none. */
  origin(line: number): Origin | null {
    return this.links.origins[this.index.originAt[line] - 1] ?? null;
  }

  /** The first line that comes from the source: what stands before it is the same for every kernel. */
  get begins(): number {
    return this.links.runs[0]?.[0] ?? 1;
  }

  /** Why a line has no source line. */
  gap(line: number): string | null {
    return this.index.gapReasons[this.index.gapAt[line] - 1] ?? null;
  }

  /** Where a source line is found, in the order of the listing. */
  stretches(source: number): readonly Stretch[] {
    return this.links.bySource.get(source) ?? [];
  }

  /** How many lines a source line makes here. */
  weight(source: number): number {
    let sum = 0;
    for (const stretch of this.stretches(source)) if (makes(stretch.kind)) sum += stretch.count;
    return sum;
  }

  get hasStatements(): boolean {
    return (this.wire.statements?.length ?? 0) > 0;
  }

  /** Number of the statement that a line belongs to; -1 for none. */
  statement(line: number): number {
    return this.index.statementAt?.[line] ?? -1;
  }
}

function linksOf(wire: Pick<WireStage, "lines">): Links {
  const origins: Origin[] = [];
  const sameOrigin = new Map<string, number>();
  const runs: [number, number, number][] = [];
  const bySource = new Map<number, Stretch[]>();
  for (const [first, length, lines, kinds] of wire.lines ?? []) {
    if (!lines.length) continue;
    const key = `${lines.join()};${kinds?.join() ?? ""}`;
    let index = sameOrigin.get(key);
    if (index === undefined) {
      index = origins.push({ lines, kinds: kinds ?? lines.slice(1).map(() => "statement" as const) });
      sameOrigin.set(key, index);
    }
    runs.push([first, length, index]);
    lines.forEach((line, i) => {
      const kind = i === 0 ? "origin" : (kinds?.[i - 1] ?? "statement");
      let stretches = bySource.get(line);
      if (!stretches) bySource.set(line, (stretches = []));
      const last = stretches.at(-1);
      if (last && last.kind === kind && last.first + last.count === first) stretches[stretches.length - 1] = { ...last, count: last.count + length };
      else stretches.push({ first, count: length, kind });
    });
  }
  return { origins, runs, bySource };
}

function indexed(count: number, links: Links, wire: Pick<WireStage, "gaps" | "statements">): Index {
  const originAt = new Int32Array(count + 1);
  for (const [first, length, index] of links.runs) originAt.fill(index, first, first + length);
  const gapReasons: string[] = [];
  const sameReason = new Map<string, number>();
  const gapAt = new Int32Array(count + 1);
  for (const [first, length, reason] of wire.gaps ?? []) {
    let index = sameReason.get(reason);
    if (index === undefined) sameReason.set(reason, (index = gapReasons.push(reason)));
    gapAt.fill(index, first, first + length);
  }
  let statementAt: Int32Array | null = null;
  if (wire.statements?.length) {
    statementAt = new Int32Array(count + 1).fill(-1);
    for (const [first, length, statement] of wire.statements) for (let i = 0; i < length && first + i <= count; i++) statementAt[first + i] = statement + i;
  }
  return { originAt, gapReasons, gapAt, statementAt };
}
