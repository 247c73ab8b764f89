// A list of code lines of fixed height. Only what can be seen is in the page, so the cost does not grow with the text.

import { become, div, h, span, type Kid } from "./dom";
import type { Carry } from "./highlight";
import { Minimap, type Tick } from "./minimap";
import { painted, type Mark } from "./paint";
import { clamp } from "./text";
import type { Language } from "./wire";

export const ROW = 18; // px; the line height in style.css
export const CHARACTER = 7.3; // px, about
const OVER = 10; // rows drawn beyond either edge
const TALLEST = 8_000_000; // px; browsers cap an element's height, so beyond it the scroll bar is scaled

/** How a row looks. */
export interface Look {
  readonly text: string;
  readonly language: Language;
  readonly carry?: Carry;
  readonly gutter: Kid;
  readonly marks?: readonly Mark[];
  readonly class?: string;
  readonly title?: string | null;
  /** In place of the text. */
  readonly node?: Kid;
  /** Numbers of the pins, from 0. */
  readonly pins?: readonly number[];
  readonly data?: Record<string, string | null | undefined>;
}

/** The rows of a view. */
export interface Rows {
  readonly count: number;
  /** Columns of the longest row. */
  readonly width: number;
  /** The highest line number, where it is not the number of rows. */
  readonly lines?: number;
  look(row: number): Look;
  ticks?(): Iterable<Tick>;
  /** Rows that the cursor passes over. */
  skips?(row: number): boolean;
}

export interface Listeners {
  hover?(row: number | null): void;
  pick?(row: number, adding: boolean): void;
  cursor?(row: number): void;
  scroll?(top: number): void;
}

const NONE: Rows = { count: 0, width: 0, look: () => ({ text: "", language: "tir", gutter: null }) };
let serial = 0;

export class CodeView {
  readonly element: HTMLElement;
  readonly scroller: HTMLElement;
  cursor = 0;
  rows: Rows = NONE;
  private readonly sizer: HTMLElement;
  private readonly window: HTMLElement;
  private readonly map: Minimap;
  private readonly id = `tnb-code-${++serial}`;
  private readonly watch: ResizeObserver | null;
  private hovered: number | null = null;
  private frame = 0;
  private place: readonly [top: number, left: number] = [0, 0];
  private pressed: { readonly row: number; readonly x: number; readonly y: number } | null = null;
  private isGone = false;
  private due: (() => void) | null = null;

  constructor(
    key: string,
    label: string,
    part: string,
    private readonly on: Listeners,
  ) {
    this.window = div("window");
    this.sizer = div("sizer", this.window);
    this.scroller = h("div", { class: "scroller", tabindex: 0, role: "listbox", "aria-label": label, "data-k": key }, this.sizer);
    this.map = new Minimap((share) => this.goTo(share * this.rows.count * ROW - this.scroller.clientHeight / 2));
    this.element = h("div", { class: "code", "data-tnb": part }, this.scroller, this.map.element);
    this.scroller.addEventListener(
      "scroll",
      () => {
        if (this.isGone) return;
        this.place = [this.scroller.scrollTop, this.scroller.scrollLeft];
        this.on.scroll?.(this.top);
        this.frame ||= requestAnimationFrame(() => this.paint());
      },
      { passive: true },
    );
    this.scroller.addEventListener("mouseover", (event) => this.hover(rowOf(event.target)));
    this.scroller.addEventListener("mouseleave", () => this.hover(null));
    this.scroller.addEventListener("mousedown", (event) => {
      const row = rowOf(event.target);
      this.pressed = row === null ? null : { row, x: event.clientX, y: event.clientY };
      if (!event.shiftKey) return;
      event.preventDefault(); // it would select the text from the last click to here
      this.scroller.focus({ preventScroll: true });
    });
    this.scroller.addEventListener("click", (event) => this.click(event));
    this.scroller.addEventListener("copy", (event) => this.copy(event));
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.watch = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => this.resized());
    this.watch?.observe(this.scroller);
  }

  close(): void {
    this.watch?.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Shows other rows. */
  show(rows: Rows, keepPlace = false): void {
    this.comeBack();
    const { top } = this;
    this.rows = rows;
    this.sizer.style.height = `${Math.min(rows.count * ROW, TALLEST)}px`;
    this.sizer.style.setProperty("--digits", String(Math.max(3, String(rows.lines ?? rows.count).length)));
    this.sizer.style.setProperty("--columns", String(Math.min(rows.width, 3100)));
    this.cursor = clamp(keepPlace ? this.cursor : 0, 0, Math.max(0, rows.count - 1));
    this.scroller.scrollTop = keepPlace ? top / this.scale : 0;
    if (!keepPlace) this.scroller.scrollLeft = 0;
    this.redraw();
  }

  /** Draws the rows again, and the marks of the map. */
  redraw(): void {
    this.comeBack();
    this.paint();
    this.map.show(this.rows.ticks?.() ?? [], this.rows.count);
  }

  /** Moves the cursor to a row and brings it into sight: an edge step scrolls as little as needed, a jump lands in the middle. */
  reveal(row: number, byStep = false): void {
    this.comeBack();
    this.cursor = row;
    this.placed(() => {
      const y = row * ROW;
      const height = this.scroller.clientHeight;
      const middle = y - Math.max(0, Math.floor(height / 2 / ROW) - 1) * ROW;
      if (y < this.top) this.goTo(byStep ? y : middle);
      else if (y + ROW > this.top + height - 4) this.goTo(byStep ? y + ROW - height + 10 : middle);
      this.paint();
    });
  }

  /** Moves the cursor to a row and begins with it, unless it and what follows are in sight. */
  begin(row: number): void {
    this.cursor = row;
    this.placed(() => {
      if (!this.isVisible(row) || !this.isVisible(Math.min(row + 8, this.rows.count - 1))) this.goTo((row - 2) * ROW);
      this.paint();
    });
  }

  /** Scrolls in some way. Where the pane has no place in the page yet, it does so when it has; the last way counts. */
  placed(scroll: () => void): void {
    scroll();
    this.due = this.scroller.clientHeight ? null : scroll;
  }

  /** Scrolls sideways until a range of columns is in sight, but not past its start; where it is in sight, not at all. */
  reach(column: number, endColumn: number): void {
    const line = this.window.querySelector<HTMLElement>(".row > .line");
    if (!line) return;
    const end = line.getBoundingClientRect().left + Math.min(endColumn, column + 24) * CHARACTER;
    const beyond = end - this.scroller.getBoundingClientRect().right + 12;
    if (beyond > 0) this.scroller.scrollLeft = Math.min(beyond, Math.max(0, column * CHARACTER - 24));
  }

  isVisible(row: number): boolean {
    return row * ROW >= this.top && (row + 1) * ROW <= this.top + this.scroller.clientHeight;
  }

  /** Scroll position over the rows, whatever the scale of the bar. */
  get top(): number {
    return (this.isGone ? this.place[0] : this.scroller.scrollTop) * this.scale;
  }

  goTo(top: number): void {
    this.comeBack();
    this.placed(() => {
      this.scroller.scrollTop = clamp(top, 0, Math.max(0, this.rows.count * ROW - this.scroller.clientHeight)) / this.scale;
      this.paint();
    });
  }

  /** Adds or removes a mark of the rows in the page without drawing them anew. */
  mark(attribute: string, wanted: (row: number) => boolean): void {
    for (const element of this.window.children as HTMLCollectionOf<HTMLElement>) element.toggleAttribute(attribute, wanted(Number(element.dataset.row)));
  }

  private get scale(): number {
    const full = this.rows.count * ROW;
    const seen = this.scroller.clientHeight;
    return full <= TALLEST ? 1 : (full - seen) / (TALLEST - seen);
  }

  /** A notebook takes cells out of the page that are out of sight, and tabs take out panes: what was in sight comes back with them. */
  private resized(): void {
    if (!this.scroller.clientHeight) this.isGone = true;
    else {
      this.comeBack();
      this.due?.();
      this.due = null;
      this.paint();
    }
  }

  /** Scrolls back to what was in sight, where the element is in the page again. Before anything else scrolls it. */
  comeBack(): void {
    if (!this.isGone || !this.scroller.clientHeight) return;
    this.isGone = false;
    [this.scroller.scrollTop, this.scroller.scrollLeft] = this.place;
  }

  private paint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { top } = this;
    const height = this.scroller.clientHeight || 400;
    const first = clamp(Math.floor(top / ROW) - OVER, 0, this.rows.count);
    const last = Math.min(this.rows.count, Math.ceil((top + height) / ROW) + OVER);
    this.window.style.top = `${this.scroller.scrollTop + first * ROW - top}px`;
    this.put(first, last);
    // only a row that is in the page can be named
    if (first <= this.cursor && this.cursor < last) this.scroller.setAttribute("aria-activedescendant", `${this.id}-${this.cursor}`);
    else this.scroller.removeAttribute("aria-activedescendant");
    this.map.see(top, height, this.rows.count * ROW);
  }

  /** Puts rows into the page. Those that are there stay, and so do those in which selected text begins or ends, wherever they are. */
  private put(first: number, last: number): void {
    const rows = [...new Set([...this.ends(), ...Array.from({ length: last - first }, (_, i) => first + i)])].filter((row) => row < this.rows.count).sort((a, b) => a - b);
    const known = new Map(Array.from(this.window.children, (element) => [rowOf(element), element as HTMLElement]));
    const wanted = rows.map((row) => {
      const drawn = this.draw(row, row < first || row >= last);
      const old = known.get(row);
      if (!old) return drawn;
      known.delete(row);
      become(old, drawn);
      return old;
    });
    for (const old of known.values()) old.remove();
    let next = this.window.firstChild;
    for (const element of wanted)
      if (element === next) next = next.nextSibling;
      else this.window.insertBefore(element, next);
  }

  private draw(row: number, isAway: boolean): HTMLElement {
    const look = this.rows.look(row);
    const [pin, also] = look.pins ?? [];
    const pinned = pin !== undefined;
    const element = h(
      "div",
      {
        class: `row ${look.class ?? ""}${row === this.cursor ? " cursor" : ""}${pinned ? " pinned" : ""}${isAway ? " away" : ""}`,
        role: "option",
        id: `${this.id}-${row}`,
        "data-row": row,
        "aria-selected": String(pinned),
        "aria-posinset": row + 1,
        "aria-setsize": this.rows.count,
        title: look.title,
        "data-pin": pinned ? pin + 1 : null,
        "data-pin-also": also === undefined ? null : look.pins!.slice(1).map((one) => one + 1).join(" "),
        ...look.data,
      },
      span("gutter", look.gutter),
      span("line", look.node ?? painted(look.text, look.language, look.marks, look.carry)),
    );
    if (pinned) element.style.setProperty("--pin", `var(--pin${pin})`);
    if (also !== undefined) element.style.setProperty("--also", `var(--pin${also})`);
    return element;
  }

  /** Rows in which the selected text begins and ends. */
  private ends(): number[] {
    const { anchorNode, focusNode } = document.getSelection() ?? {};
    return [anchorNode, focusNode].flatMap((node) => (node && this.window.contains(node) ? (rowOf(node) ?? []) : []));
  }

  /** Copies selected lines, with those between its ends that are out of the page. */
  private copy(event: ClipboardEvent): void {
    const [from, to] = this.ends().sort((a, b) => a - b);
    if (to === undefined || from === to) return;
    const chosen = document.getSelection()!.getRangeAt(0);
    const texts: string[] = [];
    for (let row = from; row <= to; row++) {
      const { text, node } = this.rows.look(row);
      if (node) continue;
      const line = row > from && row < to ? null : this.window.querySelector(`[data-row="${row}"] > .line`);
      if (line) {
        const part = document.createRange();
        part.selectNodeContents(line);
        if (line.contains(chosen.startContainer)) part.setStart(chosen.startContainer, chosen.startOffset);
        if (line.contains(chosen.endContainer)) part.setEnd(chosen.endContainer, chosen.endOffset);
        texts.push(chosen.intersectsNode(line) ? String(part) : "");
      } else texts.push(text);
    }
    event.clipboardData?.setData("text/plain", texts.join("\n"));
    event.preventDefault();
  }

  private hover(row: number | null): void {
    if (row === this.hovered) return;
    this.hovered = row;
    this.on.hover?.(row);
  }

  private click(event: MouseEvent): void {
    const { pressed } = this;
    this.pressed = null;
    // the row that was pressed, even if another one is under the mouse by now, or none: text may have scrolled, the page have moved
    const hasStayed = pressed && event.detail && Math.abs(event.clientX - pressed.x) + Math.abs(event.clientY - pressed.y) < 5;
    const row = hasStayed ? pressed.row : rowOf(event.target);
    const selected = document.getSelection();
    // text that was just selected stays selected
    if (row === null || row >= this.rows.count || (selected && !selected.isCollapsed && this.scroller.contains(selected.anchorNode))) return;
    this.cursor = row;
    this.on.pick?.(row, event.shiftKey || event.metaKey || event.ctrlKey);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) {
      let row = clamp(this.cursor + step, 0, this.rows.count - 1);
      while (this.rows.skips?.(row) && row > 0 && row < this.rows.count - 1) row += Math.sign(step);
      this.reveal(row, true);
      this.on.cursor?.(row);
    } else if (event.key === "Enter" || event.key === " ") this.on.pick?.(this.cursor, event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** The row that something in the page belongs to. */
function rowOf(node: EventTarget | null): number | null {
  const row = (node instanceof Element ? node : (node as Node).parentElement)?.closest<HTMLElement>("[data-row]");
  return row ? Number(row.dataset.row) : null;
}
