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
export const makes = (kind: Stretch["kind"]): boolean => kind === "origin" || kind === "call" || kind === "statement";

export class Listing {
  readonly rows: readonly string[];
  readonly width: number;
  /** Lines with an origin, and lines that are not blank. */
  readonly linked: number;
  readonly written: number;
  /** Number of lines by reason of having no origin. */
  readonly reasons: ReadonlyMap<string, number>;
  private readonly origins: readonly Origin[];
  private readonly originAt: Int32Array;
  private readonly bySource = new Map<number, Stretch[]>();
  private readonly gapReasons: readonly string[];
  private readonly gapAt: Int32Array;
  private readonly statementAt: Int32Array | null;

  /** Line n of the listing is rows[n - 1]. */
  constructor(
    readonly text: string,
    readonly language: Language,
    stage: Pick<WireStage, "lines" | "gaps" | "statements">,
  ) {
    this.rows = text.split("\n");
    const count = this.rows.length;
    let width = 0;
    for (const row of this.rows) if (row.length > width) width = row.length;
    this.width = text.includes("\t") ? this.rows.reduce((most, row) => Math.max(most, columns(row)), 0) : width;

    const origins: Origin[] = [];
    const sameOrigin = new Map<string, number>();
    this.originAt = new Int32Array(count + 1);
    for (const [first, length, lines, kinds] of stage.lines ?? []) {
      if (!lines.length) continue;
      const key = `${lines.join()};${kinds?.join() ?? ""}`;
      let index = sameOrigin.get(key);
      if (index === undefined) {
        index = origins.push({ lines, kinds: kinds ?? lines.slice(1).map(() => "statement" as const) });
        sameOrigin.set(key, index);
      }
      this.originAt.fill(index, first, first + length);
      lines.forEach((line, i) => {
        const kind = i === 0 ? "origin" : (kinds?.[i - 1] ?? "statement");
        let stretches = this.bySource.get(line);
        if (!stretches) this.bySource.set(line, (stretches = []));
        const last = stretches.at(-1);
        if (last && last.kind === kind && last.first + last.count === first) stretches[stretches.length - 1] = { ...last, count: last.count + length };
        else stretches.push({ first, count: Math.min(length, count + 1 - first), kind });
      });
    }
    this.origins = origins;

    const gapReasons: string[] = [];
    const sameReason = new Map<string, number>();
    this.gapAt = new Int32Array(count + 1);
    for (const [first, length, reason] of stage.gaps ?? []) {
      let index = sameReason.get(reason);
      if (index === undefined) sameReason.set(reason, (index = gapReasons.push(reason)));
      this.gapAt.fill(index, first, first + length);
    }
    this.gapReasons = gapReasons;

    let linked = 0;
    let written = 0;
    const reasons = new Map<string, number>();
    for (let line = 1; line <= count; line++) {
      const isBlank = this.rows[line - 1].trim() === "";
      if (this.originAt[line]) {
        linked++;
        written++;
      } else if (!isBlank) {
        written++;
        const reason = this.gap(line) ?? "no reason given";
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      }
    }
    this.linked = linked;
    this.written = written;
    this.reasons = reasons;

    if (stage.statements?.length) {
      this.statementAt = new Int32Array(count + 1).fill(-1);
      for (const [first, length, statement] of stage.statements)
        for (let i = 0; i < length && first + i <= count; i++) this.statementAt[first + i] = statement + i;
    } else this.statementAt = null;
  }

  /** The source lines of a line, the one it comes from first; null where there is none. */
  origin(line: number): Origin | null {
    return this.origins[this.originAt[line] - 1] ?? null;
  }

  /** Why a line has no source line. */
  gap(line: number): string | null {
    return this.gapReasons[this.gapAt[line] - 1] ?? null;
  }

  /** Where a source line is found, in the order of the listing. */
  stretches(source: number): readonly Stretch[] {
    return this.bySource.get(source) ?? [];
  }

  /** How a line relates to a source line; null where it does not. */
  relation(line: number, source: number): Stretch["kind"] | null {
    const origin = this.origin(line);
    const at = origin ? origin.lines.indexOf(source) : -1;
    return at < 0 ? null : at === 0 ? "origin" : (origin!.kinds[at - 1] ?? "statement");
  }

  /** How many lines a source line makes here. */
  weight(source: number): number {
    let sum = 0;
    for (const stretch of this.stretches(source)) if (makes(stretch.kind)) sum += stretch.count;
    return sum;
  }

  get hasStatements(): boolean {
    return this.statementAt !== null;
  }

  /** Lines of statements in any of the intervals [first, last], as stretches [first line, count]. */
  ofStatements(intervals: readonly (readonly [number, number])[]): [number, number][] {
    const found: [number, number][] = [];
    if (!this.statementAt) return found;
    for (let line = 1; line < this.statementAt.length; line++) {
      const statement = this.statementAt[line];
      if (statement < 0 || !intervals.some(([first, last]) => first <= statement && statement <= last)) continue;
      const last = found.at(-1);
      if (last && last[0] + last[1] === line) last[1]++;
      else found.push([line, 1]);
    }
    return found;
  }

  statement(line: number): number {
    return this.statementAt?.[line] ?? -1;
  }
}
