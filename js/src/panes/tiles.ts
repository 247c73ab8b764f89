// Where the elements of a kernel's tiles are, as a picture of each, and what its pipelined loops hold over time.

import { ACROSS, bold, button, div, fill, h, prose, roving, span, type Kid } from "../dom";
import { indexOf, said, whereIs, type Where } from "../layout_map";
import type { Pane, Shell } from "../state";
import { bytes, clamp, grouped, plural } from "../text";
import type { WireLayout, WirePipeline } from "../wire";
import { chart } from "./chart";

const LINE = 32; // elements of a row, where a tile has one dimension
const LEAST = 3; // px of an element
const MOST = 26;
const SMALL = 7; // below which a tile is not made to fit into the height
const ROW_NAMES = 26; // px in front of a row, for the index of its first element
const NUMBERED = 19; // px from which an element has room for its number

type Item = { readonly name: string; readonly tile?: WireLayout; readonly loop?: WirePipeline };

export class TilesPane implements Pane {
  readonly element: HTMLElement;
  private readonly bar = h("div", { class: "sub names", role: "tablist", "aria-label": "tiles and pipelines" });
  private readonly page = div("report");
  private readonly board = h("canvas", { tabindex: 0, role: "application", class: "board", "data-k": "board", "data-tnb": "board" });
  private readonly readout = h("span", { class: "mono", "data-tnb": "readout" });
  private readonly watch: ResizeObserver | null;
  private picked = "";
  private byRegister = false;
  private drawn: { tile: WireLayout; places: Where[]; columns: number; size: number; side: number; base: HTMLCanvasElement } | null = null;
  private at = 0;

  constructor(private readonly shell: Shell) {
    this.element = div("body", this.bar, this.page);
    roving(this.bar, ACROSS, (distance) => {
      const items = this.items();
      const at = items.findIndex((item) => item.name === this.item()?.name);
      this.pick(items[clamp(at + distance, 0, items.length - 1)].name);
      this.bar.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
    });
    this.board.addEventListener("pointermove", (event) => {
      const at = this.drawn ? this.under(event.offsetX, event.offsetY) : -1;
      if (at >= 0) this.point(at);
    });
    const step = (distance: number, isRow: boolean): void => {
      if (!this.drawn) return;
      const { tile, columns, places } = this.drawn;
      this.point(this.at < 0 ? 0 : clamp(this.at + distance * (isRow ? columns : 1), 0, places.length - 1));
      this.shell.say(`${tile.name} ${this.readout.textContent}`);
    };
    roving(this.board, { ArrowRight: 1, ArrowLeft: -1 }, (distance) => step(distance, false));
    roving(this.board, { ArrowDown: 1, ArrowUp: -1 }, (distance) => step(distance, true));
    this.watch = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => this.paint());
    this.watch?.observe(this.page);
  }

  close(): void {
    this.watch?.disconnect();
  }

  draw(): void {
    const picked = this.item()!;
    fill(
      this.bar,
      this.items().map((item) =>
        button(`tile-${item.name}`, [item.name, " ", span("dim", item.tile ? item.tile.shape.join("×") : "pipeline")], () => this.pick(item.name), {
          on: { click: () => this.pick(item.name), mouseenter: () => this.shell.soften([(item.tile ?? item.loop)?.line ?? 0]), mouseleave: () => this.shell.soften(null) },
          class: "name",
          role: "tab",
          "data-tnb": "tile",
          "data-name": item.name,
          "aria-selected": String(item.name === picked.name),
          tabindex: item.name === picked.name ? 0 : -1,
        }),
      ),
    );
    this.drawn = null;
    fill(this.page, picked.tile ? this.picture(picked.tile) : this.pipeline(picked.loop!));
    this.paint();
  }

  /** The tiles, then the loops; those of equal names are numbered. */
  private items(): Item[] {
    const { layouts, pipelines } = this.shell.state.kernel.wire;
    const items: Item[] = [];
    for (const item of [...(layouts ?? []).map((tile) => ({ name: tile.name, tile })), ...(pipelines ?? []).map((loop) => ({ name: loop.variable, loop }))]) {
      let { name } = item;
      for (let time = 2; items.some((one) => one.name === name); time++) name = `${item.name} (${time})`;
      items.push({ ...item, name });
    }
    return items;
  }

  private item(): Item | undefined {
    const items = this.items();
    return items.find((item) => item.name === this.picked) ?? items[0];
  }

  private pick(name: string): void {
    this.picked = name;
    this.at = 0;
    this.shell.set({});
    this.shell.say(name);
  }

  private line(line: number | null | undefined, what: string): Kid {
    return line ? button(`tiles-${what}-${line}`, `line ${line}`, () => this.shell.pin(line, false, "other"), { class: "link" }) : null;
  }

  // ---- a tile

  private picture(tile: WireLayout): Kid {
    const modes = ["thread", "register"].map((name, i) =>
      button(`mode-${name}`, name, () => {
        this.byRegister = i === 1;
        this.shell.set({});
      }, { "aria-pressed": String(this.byRegister === (i === 1)), "data-tnb": "mode", "data-name": name }),
    );
    this.board.setAttribute("aria-label", `elements of ${tile.name}; the arrows walk over them`);
    return [
      h("p", null, bold(tile.name), `, ${tile.dtype} ${tile.shape.join(" × ")}, `, this.about(tile), tile.own && "; added by the compiler", tile.line ? ": " : "", this.line(tile.line, tile.name)),
      tile.note && h("p", { class: "dim" }, tile.note),
      (tile.uses ?? []).map(([subject, words, line], i) => h("p", { class: "dim", "data-tnb": "use" }, bold(subject), ` ${words}`, line ? [" (", this.line(line, `use-${i}`), ")"] : null)),
      div("choice", tile.digits && span("segments", modes), span("dim", !tile.digits ? "hue and light to dark: bank" : this.byRegister ? "light to dark: register" : "hue: warp, light to dark: lane"), span("grow"), this.readout),
      this.board,
    ];
  }

  private about(tile: WireLayout): string {
    if (tile.digits) {
      const copies = (tile.copies ?? 1) > 1 ? `, each element ${grouped(tile.copies!)} times` : "";
      return `${plural(tile.registers ?? 0, "register")} of ${grouped(tile.threads ?? 0)} threads${copies}`;
    }
    const versions = (tile.versions ?? 1) > 1 ? `${tile.versions} versions in ` : "";
    const { every, span: of } = tile.swizzle ?? {};
    const order = tile.uses ? "" : tile.swizzle ? `, 16-byte chunk c of row r at c xor (r${every! > 1 ? ` / ${every}` : ""} mod ${of})` : tile.places ? ", in the order of the text" : ", row by row";
    return `${versions}${bytes(tile.bytes ?? 0)} of shared memory from ${grouped(tile.offset ?? 0)}${order}`;
  }

  private value(place: Where): number {
    return place.bank ?? (this.byRegister ? place.register! : place.thread!);
  }

  /** A colour for a number: neighbours differ in hue or in lightness. */
  private colour(tile: WireLayout, value: number): string {
    const isDark = this.element.closest(".dark") !== null;
    const [count, hue] = tile.digits && !this.byRegister ? [32, 205 + 67 * Math.floor(value / 32)] : tile.digits ? [Math.max(2, tile.registers ?? 2), 160] : [8, 30 + 83 * Math.floor(value / 8)];
    const share = (value % count) / Math.max(1, count - 1);
    return `hsl(${hue % 360} ${isDark ? 42 : 55}% ${isDark ? 18 + 20 * share : 90 - 34 * share}%)`;
  }

  /** Draws the picture as wide as there is room. */
  private paint(): void {
    const tile = this.item()?.tile;
    const room = this.page.clientWidth - 28;
    const context = tile && room > 0 ? this.board.getContext?.("2d") : null;
    if (!tile || !context) return;
    const count = tile.shape.reduce((product, extent) => product * extent, 1);
    const columns = tile.shape.length > 1 ? tile.shape[tile.shape.length - 1] : Math.min(count, LINE);
    const rows = Math.ceil(count / columns);
    const side = tile.shape.length < 2 && rows > 1 ? ROW_NAMES : 0;
    const high = Math.max(SMALL, Math.floor((this.page.clientHeight - this.board.offsetTop + this.page.offsetTop - 8) / rows));
    const size = clamp(Math.min(Math.floor((room - side) / columns), high), LEAST, MOST);
    const places = this.drawn?.tile === tile ? this.drawn.places : Array.from({ length: count }, (_, flat) => whereIs(tile, flat));
    const ratio = globalThis.devicePixelRatio || 1;
    const base = document.createElement("canvas");
    for (const canvas of [base, this.board]) [canvas.width, canvas.height] = [(side + columns * size) * ratio, rows * size * ratio];
    [this.board.style.width, this.board.style.height] = [`${side + columns * size}px`, `${rows * size}px`];
    const pen = base.getContext("2d")!;
    pen.scale(ratio, ratio);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.font = `10px ${getComputedStyle(this.page).fontFamily}`;
    const ink = getComputedStyle(this.page).color;
    const gap = size > 7 ? 1 : 0;
    pen.fillStyle = ink;
    for (let row = 0; side && row < rows; row++) pen.fillText(String(row * columns), side / 2, (row + 0.5) * size);
    places.forEach((place, flat) => {
      const [x, y] = [side + (flat % columns) * size, Math.floor(flat / columns) * size];
      const value = this.value(place);
      pen.fillStyle = this.colour(tile, value);
      pen.fillRect(x, y, size - gap, size - gap);
      if (size < NUMBERED) return;
      pen.fillStyle = ink;
      pen.fillText(String(value), x + size / 2, y + size / 2);
    });
    pen.fillStyle = ink;
    for (let at = tile.piece ?? columns; at < columns; at += tile.piece!) pen.fillRect(at * size - 1.5, 0, 2, rows * size);
    this.drawn = { tile, places, columns, size, side, base };
    this.point(this.at);
  }

  private under(x: number, y: number): number {
    const { columns, size, side, places } = this.drawn!;
    const column = Math.floor((x - side) / size);
    const flat = Math.floor(y / size) * columns + column;
    return column < 0 || y < 0 || column >= columns || flat >= places.length ? -1 : flat;
  }

  /** Shows where an element is, and rings those that share its thread, register or bank. */
  private point(flat: number): void {
    if (!this.drawn) return;
    this.at = flat;
    const { tile, places, columns, size, side, base } = this.drawn;
    const context = this.board.getContext("2d")!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, base.width, base.height);
    context.drawImage(base, 0, 0);
    const place = places[flat];
    fill(this.readout, place ? `[${indexOf(tile.shape, flat).join(", ")}] ${said(place)}` : span("dim", "point at an element"));
    if (!place) return;
    const ratio = globalThis.devicePixelRatio || 1;
    context.scale(ratio, ratio);
    context.strokeStyle = getComputedStyle(this.page).color;
    places.forEach((other, at) => {
      if (this.value(other) !== this.value(place)) return;
      context.lineWidth = at === flat ? 3 : 1.5;
      context.strokeRect(side + (at % columns) * size + 1, Math.floor(at / columns) * size + 1, size - 3, size - 3);
    });
  }

  // ---- a pipelined loop

  private pipeline(loop: WirePipeline): Kid {
    const copies = (loop.groups ?? []).flatMap((group) => group.copies);
    const turns = loop.turns === null || loop.turns === undefined ? "" : ` ${plural(loop.turns, "turn")}:`;
    return [
      h(
        "p",
        null,
        bold(`for ${loop.variable}`),
        `,${turns} `,
        !loop.chart
          ? "no copy runs ahead"
          : `${plural(loop.stages, "version")} of ${copies.map(({ tile }) => tile).join(", ")}, ${loop.engine === "bulk" ? "filled by bulk copies of a warp group of their own" : `copied ${plural(loop.ahead, "turn")} ahead with ${loop.engine}`}`,
        loop.reason && [" (", prose(loop.reason), ")"],
        ": ",
        this.line(loop.line, "loop"),
      ),
      loop.chart && chart(this.shell, loop),
      (loop.groups ?? []).map((group, i) =>
        h(
          "p",
          null,
          group.copies.map((copy, at) => [at > 0 && ", ", bold(copy.tile), ` from ${copy.source}, ${bytes(copy.bytes)} a turn (`, this.line(copy.line, `copy-${copy.tile}`), ")"]),
          ", awaited at ",
          this.line(group.waits_at, `wait-${i}`),
          loop.engine !== "bulk" && group.pending > 0 && `; those of the next ${group.pending > 1 ? `${group.pending} turns` : "turn"} may still be under way`,
        ),
      ),
      (loop.staying ?? []).map((copy) => h("p", null, bold(copy.tile), ` from ${copy.source} is copied in its turn: `, prose(copy.reason), " (", this.line(copy.line, `stay-${copy.tile}`), ")")),
    ];
  }
}
