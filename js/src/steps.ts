// Walking: from linked line to linked line, from hit to hit through the stages, to the lines that a source line makes.

import { makes } from "./listing";
import type { CodePane } from "./panes/stage";
import { neighbour } from "./search";
import { pinned, pinOf, type Shell } from "./state";
import { plural } from "./text";

export class Steps {
  /** pane: the code that is shown, or null. */
  constructor(
    private readonly shell: Shell,
    private readonly pane: () => CodePane | null,
  ) {}

  /** Brings the longest stretch that a source line makes into sight: the work, not the declaration. */
  showLongest(line: number): void {
    const pane = this.pane();
    const stretches = (this.shell.state.stage.listing?.stretches(line) ?? []).filter((stretch) => makes(stretch.kind));
    if (!pane || !stretches.length || (this.shell.state.view === "unroll" && this.shell.state.stage.listing?.hasStatements)) return;
    const longest = stretches.reduce((best, stretch) => (stretch.count > best.count ? stretch : best));
    const row = pane.rowOf(longest.first);
    if (row < 0 || (pane.code.isVisible(row) && pane.code.isVisible(row + Math.min(longest.count, 4) - 1))) return;
    pane.code.reveal(row);
  }

  /** To the next or previous stretch of pinned lines. */
  linked(distance: 1 | -1): void {
    const pane = this.pane();
    const { listing } = this.shell.state.stage;
    if (!pane || !listing) return;
    const { count } = pane.code.rows;
    const isLinked = (row: number): boolean => {
      const line = pane.lineAt((row + count) % count);
      return line !== null && pinOf(this.shell.state.pins, listing.origin(line)) !== null;
    };
    if (!pinned(this.shell.state.pins).length) {
      this.shell.say("nothing is pinned");
      this.shell.tell("nothing is pinned: Enter pins the line under the cursor");
      return;
    }
    let row = pane.code.cursor;
    for (let i = 0; i < count; i++) {
      row = (row + distance + count) % count;
      // the start of a stretch is a place to stop, its inside is not
      if (isLinked(row) && !isLinked(row - 1)) {
        pane.code.reveal(row);
        const line = pane.lineAt(row);
        if (line !== null) {
          this.shell.explain(line);
          this.shell.say(`line ${line} of ${this.shell.state.stage.name}, from line ${listing.origin(line)?.lines[0] ?? ""}`);
        }
        return;
      }
    }
    this.shell.say("no linked line here");
  }

  /** To the next hit; past the last one of a stage into the next stage that has one. */
  hit(distance: 1 | -1): void {
    const { search, stage, kernel } = this.shell.state;
    if (!search.query) return;
    const pane = this.pane();
    const line = pane?.lineAt(pane.code.cursor) ?? 0;
    const here = neighbour(search.in(stage.listing).lines, line, distance);
    if (here !== undefined && pane) {
      this.toHit(here);
      return;
    }
    const others = kernel.stages.filter((one) => one.listing && !one.sameAs && search.in(one.listing).count > 0);
    if (!others.length) {
      this.shell.say("no hit in any stage");
      return;
    }
    const at = others.findIndex((one) => one.listing === stage.listing);
    const next = others[(at + distance + others.length) % others.length];
    if (next.listing !== stage.listing || !pane) this.shell.set({ stage: next, view: "stage" });
    const { lines } = search.in(next.listing);
    this.toHit(distance > 0 ? lines[0] : lines[lines.length - 1]);
    this.shell.say(`${plural(search.in(next.listing).count, "hit")} in ${next.name}`);
  }

  /** Brings a hit into sight. */
  toHit(line: number): void {
    const pane = this.pane();
    const row = pane?.rowOf(line) ?? -1;
    if (pane && row >= 0) pane.code.reveal(row);
    this.shell.drawHits();
  }
}
