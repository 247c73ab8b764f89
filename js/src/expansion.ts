// The record of compile-time expansion: which loop, comprehension or macro of the text ran how often, and what each turn made.
//
// On the wire a nested loop stands once per turn of the loop around it. People think of it as one place in the text, so the nodes
// of one place are gathered into a site; a turn of it is named by the turn numbers from the outermost site inwards.

import type { Listing } from "./listing";
import type { WireNode, WireTurn } from "./wire";

export type Path = readonly number[];

export class Site {
  readonly children: Site[] = [];
  readonly turns: { readonly path: Path; readonly turn: WireTurn }[] = [];
  private readonly ordinals = new Map<string, number>();
  private readonly counts = new Map<string, number>();
  private owner: Int32Array | null = null;

  constructor(
    readonly id: number,
    readonly node: WireNode,
    readonly header: string,
    readonly parent: Site | null,
    readonly depth: number,
  ) {}

  get kind(): string {
    return this.node.kind;
  }

  get line(): number {
    return this.node.line;
  }

  /** Names that a turn binds. */
  get names(): readonly string[] {
    return this.node.names?.length ? this.node.names : [this.node.label || "value"];
  }

  /** Values of the names in a turn, in their order. */
  bound(turn: WireTurn): readonly string[] {
    return this.node.names?.length ? (turn.bound ?? []).map((value) => value ?? "—") : [turn.value ?? ""];
  }

  add(path: Path, turn: WireTurn): void {
    this.ordinals.set(path.join(), this.turns.push({ path, turn }) - 1);
    const around = path.slice(0, -1).join();
    this.counts.set(around, Math.max(this.counts.get(around) ?? 0, path.at(-1)! + 1));
  }

  /** Number of a turn among all turns of the site; -1 where the loops around it make none of this path. */
  ordinal(path: Path): number {
    return this.ordinals.get(path.join()) ?? -1;
  }

  turn(path: Path): WireTurn | null {
    return this.turns[this.ordinal(path)]?.turn ?? null;
  }

  /** How many turns there are inside one turn of the sites around. */
  trips(around: Path): number {
    return this.counts.get(around.join()) ?? 0;
  }

  /** Sites from the outermost to this one. */
  chain(): Site[] {
    return this.parent ? [...this.parent.chain(), this] : [this];
  }

  /** Number of the turn that made a statement, -1 for none. */
  maker(statement: number): number {
    if (!this.owner) {
      let most = -1;
      const intervals = this.turns.map(({ turn }) => [...(turn.statements ? [turn.statements] : []), ...(turn.also ?? [])]);
      for (const some of intervals) for (const [, last] of some) if (last > most) most = last;
      this.owner = new Int32Array(most + 1).fill(-1);
      intervals.forEach((some, ordinal) => {
        for (const [first, last] of some) if (first <= last) this.owner!.fill(ordinal, first, last + 1);
      });
    }
    return statement < 0 ? -1 : (this.owner[statement] ?? -1);
  }

  /** Share of a listing's lines that the turns of this site made. */
  share(listing: Listing): number {
    let lines = 0;
    for (let line = 1; line <= listing.count; line++) if (this.maker(listing.statement(line)) >= 0) lines++;
    return listing.coverage.written ? lines / listing.coverage.written : 0;
  }

  /** Lines of a listing that one turn made. */
  linesOf(listing: Listing, ordinal: number): number[] {
    const lines: number[] = [];
    for (let line = 1; line <= listing.count; line++) if (this.maker(listing.statement(line)) === ordinal) lines.push(line);
    return lines;
  }
}

/** The sites below the root of a record. textOf gives a line of the cell. */
export function sites(root: WireNode, textOf: (line: number) => string): Site[] {
  const found: Site[] = [];
  const gather = (turns: readonly { path: Path; turn: WireTurn }[], parent: Site | null, depth: number): void => {
    const here = new Map<string, Site>();
    for (const { path, turn } of turns) {
      const occurrences = new Map<string, number>();
      for (const node of turn.children ?? []) {
        const name = `${node.kind} ${node.line} ${node.label ?? ""} ${node.definition_line ?? 0}`;
        const occurrence = occurrences.get(name) ?? 0;
        occurrences.set(name, occurrence + 1);
        // a macro called twice on one line is two sites; the turns of a comprehension inside a loop are one
        const key = `${name} ${occurrence}`;
        let site = here.get(key);
        if (!site) here.set(key, (site = new Site(node.id ?? -1, node, node.header?.replace(/:$/, "") || headerOf(node, textOf(node.line)), parent, depth)));
        node.iterations.forEach((inner, i) => site.add([...path, i], inner));
      }
    }
    for (const site of [...here.values()].sort((a, b) => a.line - b.line)) {
      found.push(site);
      parent?.children.push(site);
      gather(site.turns, site, depth + 1);
    }
  };
  gather(root.iterations.slice(0, 1).map((turn) => ({ path: [], turn })), null, 0);
  return found.map((site, i) => (site.id < 0 ? Object.assign(site, { id: -2 - i }) : site));
}

function headerOf(node: WireNode, line: string): string {
  if (node.kind === "macro") return node.label ? `${node.label}(…)` : line;
  return line.replace(/\s+#.*$/, "").replace(/:$/, "") || node.label || node.kind;
}
