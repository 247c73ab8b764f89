// Iterations that are equal but for a few places, folded into one template with those places marked.

import type { Site } from "./expansion";
import type { Listing } from "./listing";

const MOST = 1000; // iterations that are compared
const MOST_TEXT = 150_000; // characters of them
const LONGEST = 50_000; // characters of one that is compared at all
const FEW = 200; // iterations that one beyond those is compared with
const TOKEN = /(?<=[\w\])]) [+-] \d+(?=[\]),])|\d[\w.]*(?:e[-+]\d+)?|[^\W\d]\w*|\s+|[^\w\s]/gu;

interface Iteration {
  readonly ordinal: number;
  readonly tokens: readonly string[];
}

export interface Hole {
  /** Positions among the tokens; several where they change together. */
  readonly at: readonly number[];
  readonly values: ReadonlyMap<number, string>;
}

export interface Template {
  readonly tokens: readonly string[];
  readonly holes: readonly Hole[];
  /** Numbers of the turns that share it. */
  readonly members: ReadonlySet<number>;
}

export class Templates {
  private readonly groups = new Map<string, Iteration[]>();
  private readonly keys = new Map<number, string>();
  private readonly made = new Map<string, Template>();
  /** Turns that made lines in the listing, and how many of them were compared. */
  readonly makers: number;
  readonly compared: number;

  constructor(
    private readonly site: Site,
    private readonly listing: Listing,
  ) {
    const lines = new Map<number, string[]>();
    let makers = 0;
    const seen = new Uint8Array(site.turns.length);
    for (let line = 1; line <= listing.count; line++) {
      const ordinal = site.maker(listing.statement(line));
      if (ordinal < 0) continue;
      if (!seen[ordinal]) {
        seen[ordinal] = 1;
        makers++;
      }
      if (makers > MOST && !lines.has(ordinal)) continue;
      const of = lines.get(ordinal);
      if (of) of.push(listing.rows[line - 1]);
      else lines.set(ordinal, [listing.rows[line - 1]]);
    }
    this.makers = makers;
    let size = 0;
    for (const [ordinal, text] of lines) {
      if (this.keys.size >= MOST || size > MOST_TEXT) break;
      const length = characters(text);
      if (length > LONGEST) continue;
      size += length;
      const tokens = tokensOf(text);
      const key = keyOf(tokens);
      this.keys.set(ordinal, key);
      const group = this.groups.get(key);
      if (group) group.push({ ordinal, tokens });
      else this.groups.set(key, [{ ordinal, tokens }]);
    }
    this.compared = this.keys.size;
  }

  /** The template of a turn; null where it made no lines, or too many. A turn beyond those that were compared is compared with them. */
  of(ordinal: number): Template | null {
    const key = this.keys.get(ordinal);
    if (key !== undefined) {
      let template = this.made.get(key);
      if (!template) this.made.set(key, (template = fold(this.groups.get(key)!)));
      return { ...template, tokens: this.groups.get(key)!.find((one) => one.ordinal === ordinal)!.tokens };
    }
    const text = this.site.linesOf(this.listing, ordinal).map((line) => this.listing.rows[line - 1]);
    if (!text.length || characters(text) > LONGEST) return null;
    const tokens = tokensOf(text);
    const alike = this.groups.get(keyOf(tokens)) ?? [];
    return { ...fold([{ ordinal, tokens }, ...alike.slice(0, FEW)]), members: new Set([ordinal, ...alike.map((one) => one.ordinal)]) };
  }

  /** Is the turn of another template than most are? */
  isOdd(ordinal: number): boolean {
    const key = this.keys.get(ordinal);
    if (key === undefined) return false;
    const most = Math.max(...[...this.groups.values()].map((group) => group.length));
    return this.groups.get(key)!.length < most;
  }
}

/**
 * Tokens of lines without their common indent. An index that starts at 0 has no offset in the text (`row[i]` beside `row[i + 1]`), so an empty offset stands
 * before every closing bracket and comma that has none: turns that differ in that alone have one template.
 */
function tokensOf(lines: readonly string[]): string[] {
  const indent = lines.reduce((least, line) => (line.trim() ? Math.min(least, line.length - line.trimStart().length) : least), Infinity);
  const text = lines.map((line) => line.slice(indent)).join("\n");
  const found: string[] = [];
  for (const token of text.match(TOKEN) ?? []) {
    if ((token === "]" || token === ")" || token === ",") && !OFFSET.test(found.at(-1) ?? "")) found.push("");
    found.push(token);
  }
  return found;
}

const OFFSET = /^ [+-] \d+$/;

const characters = (lines: readonly string[]): number => lines.reduce((sum, line) => sum + line.length, 0);

const keyOf = (tokens: readonly string[]): string => tokens.map(kind).join("");

/** What two iterations must share at a place: a number stands for any number, a numbered name for its name. */
const kind = (token: string): string => (token === "" || OFFSET.test(token) ? "\0" : /^\d/.test(token) ? "0" : stem(token));

/** A name without the number that keeps it apart from others of its kind: c_r of c_r_2, cse_v of cse_v11. */
const stem = (name: string): string => name.replace(/(?<=[^\W\d])_?\d+$/, "");

function fold(group: readonly Iteration[]): Template {
  const holes = new Map<string, { at: number[]; values: Map<number, string> }>();
  const [head] = group;
  head.tokens.forEach((token, at) => {
    if (group.every((one) => one.tokens[at] === token)) return;
    const values = new Map(group.map((one) => [one.ordinal, one.tokens[at]]));
    const key = [...values.values()].join("\0");
    const hole = holes.get(key);
    if (hole) hole.at.push(at);
    else holes.set(key, { at: [at], values });
  });
  const isRenamed = ({ at, values }: Hole): boolean => binds(head.tokens, at[0]) && new Set([...values.values()].map(stem)).size === 1;
  return { tokens: head.tokens, holes: [...holes.values()].filter((hole) => !isRenamed(hole)), members: new Set(group.map((one) => one.ordinal)) };
}

/** Is a name introduced here: `for i_1 in`, `int cse_v3 =`, or `x_2 = ` at the start of a line? Then its number says nothing. */
function binds(tokens: readonly string[], at: number): boolean {
  if (!/^[^\W\d]/.test(tokens[at])) return false;
  const before = tokens[at - 1] ?? "\n";
  if (before.includes("\n") || at === 0) return /^\s*$/.test(tokens[at + 1] ?? "") ? tokens[at + 2] === "=" && tokens[at + 3] !== "=" : tokens[at + 1] === ":";
  return /^\s+$/.test(before) && /^[^\W\d]/.test(tokens[at - 2] ?? "") && tokens[at - 2] !== "in" && tokens[at - 2] !== "return";
}

/** Names of holes that no variable has. */
export function holeNames(count: number, taken: Iterable<string>): string[] {
  const others = new Set(taken);
  const names: string[] = [];
  for (let n = 0; names.length < count; n++) if (!others.has(holeName(n))) names.push(holeName(n));
  return names;
}

/** a, b, ... z, aa, ... */
export const holeName = (n: number): string => (n < 26 ? String.fromCharCode(97 + n) : holeName(Math.floor(n / 26) - 1) + holeName(n % 26));
