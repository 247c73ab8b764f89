// A thin picture of a whole listing: where its pins, changes, hits and problems are, and which part is in sight.

import { div, dragging, h } from "./dom";
import { clamp } from "./text";

/** Rows first.. (count of them) in a colour (a custom property); at the left edge (changes, problems) or in the middle (pins, hits). */
export interface Tick {
  readonly first: number;
  readonly count: number;
  readonly colour: string;
  readonly atEdge?: boolean;
}

const WIDTH = 12;

export class Minimap {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly thumb = div("thumb");
  private ticks: readonly Tick[] = [];
  private count = 0;
  private drawn = "";

  constructor(jump: (share: number) => void) {
    this.element = div("map", this.canvas, this.thumb);
    const at = (event: PointerEvent): void => {
      const box = this.element.getBoundingClientRect();
      jump(clamp((event.clientY - box.top) / box.height, 0, 1));
    };
    this.element.addEventListener("pointerdown", (event) => {
      at(event);
      dragging(event, at);
    });
  }

  show(ticks: Iterable<Tick>, count: number): void {
    this.ticks = [...ticks];
    this.count = count;
    this.drawn = "";
    this.draw();
  }

  see(top: number, height: number, full: number): void {
    const whole = Math.max(full, height);
    this.thumb.style.display = full > height + 2 ? "" : "none";
    this.thumb.style.top = `${(top / whole) * 100}%`;
    this.thumb.style.height = `max(8px, ${(height / whole) * 100}%)`;
    this.draw();
  }

  private draw(): void {
    const height = this.element.clientHeight;
    const ratio = globalThis.devicePixelRatio || 1;
    const key = `${height} ${ratio}`;
    if (!height || this.drawn === key) return;
    const context = this.canvas.getContext?.("2d");
    if (!context) return;
    this.drawn = key;
    const [width, tall] = [Math.round(WIDTH * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== tall) {
      this.canvas.width = width;
      this.canvas.height = tall;
    } else context.clearRect(0, 0, WIDTH, height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const css = this.ticks.length ? getComputedStyle(this.element) : null;
    const colours = new Map<string, string>();
    // a short text is not stretched: its rows keep their height
    const row = Math.min(18, height / Math.max(1, this.count));
    for (const { first, count, colour, atEdge } of this.ticks) {
      let value = colours.get(colour);
      if (value === undefined) colours.set(colour, (value = css!.getPropertyValue(colour).trim() || colour));
      if (context.fillStyle !== value) context.fillStyle = value;
      context.fillRect(atEdge ? 0 : 4, first * row, atEdge ? 3 : 8, Math.max(2, count * row - (row > 4 ? 0.5 : 0)));
    }
  }
}
