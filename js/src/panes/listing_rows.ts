// Rows of a stage's listing, as the Stage and Unroll panes show them.

import type { Look, Rows } from "../code_view";
import { h, span, type Kid } from "../dom";
import { Carries } from "../highlight";
import { added, before } from "../lineage";
import type { Listing } from "../listing";
import type { Tick } from "../minimap";
import { pinsOf, type Carried, type Shell } from "../state";
import type { Stage } from "../trace";

const LARGE = 500_000; // characters

const carries = new WeakMap<Listing, Carries>();

export function carriesOf(listing: Listing): Carries {
  let found = carries.get(listing);
  if (!found) carries.set(listing, (found = new Carries(listing.rows, listing.language, listing.text)));
  return found;
}

/** Where a line comes from, as a column: `:18`, a rule while it stays the same, a dash where there is none; with the number of a pin. */
function originCell(listing: Listing, line: number, pin: Kid): Kid {
  const origin = listing.origin(line);
  const above = line > 1 ? listing.origin(line - 1) : null;
  if (!origin) {
    const gap = listing.gap(line);
    return span("origin", gap !== null && listing.rows[line - 1].trim() && (line === 1 || listing.gap(line - 1) !== gap) ? "—" : null);
  }
  const isSame = above !== null && above.lines[0] === origin.lines[0];
  return span(`origin${isSame ? " same" : ""}`, pin, isSame ? null : `:${origin.lines[0]}`);
}

/** A pin is told by its number, not by its colour alone. */
export const pinDot = ({ pin }: Carried): Kid => h("span", { class: "dot", style: { "--pin": `var(--pin${pin})` } }, pin + 1);

export class ListingRows implements Rows {
  readonly count: number;
  readonly width: number;
  readonly listing: Listing;
  private readonly isNew: Uint8Array | null = null;
  private fresh: [number, number][] = [];

  /** turnOf: number of the iteration that made a line, and which one is picked (Unroll only). changed: called when new lines become known. */
  constructor(
    private readonly shell: Shell,
    private readonly stage: Stage,
    private readonly turns: { of(line: number): number; picked: number } | null,
    changed: () => void,
  ) {
    this.listing = stage.listing!;
    this.count = this.listing.count;
    this.width = this.listing.width;
    const earlier = stage.sameAs ? null : before(shell.state.kernel.stages, stage);
    if (!earlier) return;
    this.isNew = new Uint8Array(this.count + 1);
    const take = (known: Int32Array): void => {
      this.fresh = added(known, this.count);
      for (const [first, count] of this.fresh) this.isNew!.fill(1, first, first + count);
    };
    const ask = (): void => {
      const runs = shell.differ.runs(earlier.listing!, this.listing);
      if (runs instanceof Promise)
        void runs.then((known) => {
          take(known);
          changed();
        });
      else {
        take(runs);
        if (isLarge) changed();
      }
    };
    // a long text is shown first; even handing it to the worker takes its time
    const isLarge = this.listing.text.length > LARGE;
    if (isLarge) setTimeout(ask, 30);
    else ask();
  }

  look(row: number): Look {
    const { state } = this.shell;
    const line = row + 1;
    const { listing } = this;
    const text = listing.rows[row];
    const origin = listing.origin(line);
    const pins = pinsOf(state.pins, origin);
    const isNew = this.isNew?.[line] === 1;
    const turn = this.turns ? this.turns.of(line) : -1;
    const iteration = turn < 0 ? null : turn === this.turns!.picked ? "this" : "other";
    const hits = state.search.marks(text);
    return {
      text,
      language: listing.language,
      carry: carriesOf(listing).at(row),
      marks: hits,
      pins: pins.map(({ pin }) => pin),
      class: [pins[0]?.isFurther && "further", iteration === "this" && "lit", iteration === "other" && "pale"].filter(Boolean).join(" "),
      title: origin ? null : listing.gap(line),
      data: {
        "data-line": String(line),
        "data-change": isNew ? "new" : null,
        "data-iteration": iteration,
        "data-hit": hits.length ? "" : null,
      },
      gutter: [h("span", { class: `edge${isNew ? " on" : ""}`, title: isNew ? `new in ${this.stage.name}` : null }), span("number", line), originCell(listing, line, pins.length > 0 && span("dots", pins.filter((one) => this.begins(line, one)).map(pinDot)))],
    };
  }

  /** Is a line the first of a stretch with this pin? */
  private begins(line: number, { pin }: Carried): boolean {
    return line === 1 || !pinsOf(this.shell.state.pins, this.listing.origin(line - 1)).some((above) => above.pin === pin);
  }

  *ticks(): Iterable<Tick> {
    const { state } = this.shell;
    for (const [first, count] of this.fresh) yield { first: first - 1, count, colour: "--added", atEdge: true };
    if (this.turns) {
      let from = 0;
      for (let line = 1; line <= this.count + 1; line++) {
        const isPicked = line <= this.count && this.turns.of(line) === this.turns.picked;
        if (isPicked && !from) from = line;
        else if (!isPicked && from) {
          yield { first: from - 1, count: line - from, colour: "--brand" };
          from = 0;
        }
      }
    }
    for (let pin = state.pins.length - 1; pin >= 0; pin--) {
      const line = state.pins[pin];
      if (line !== null) for (const { first, count } of this.listing.stretches(line)) yield { first: first - 1, count, colour: `--pin${pin}` };
    }
    if (state.search.query) for (const line of state.search.in(this.listing).lines) yield { first: line - 1, count: 1, colour: "--hit-tick" };
  }
}
