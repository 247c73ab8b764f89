import { afterEach, describe, expect, test } from "vitest";
import { indexOf, said, whereIs } from "../src/layout_map";
import { mount, type Mounted } from "../src/view";
import type { WireLayout } from "../src/wire";
import { wire } from "./fixtures";

const tile = (name: string, of: string): WireLayout => wire(name).kernels![0].layouts!.find((one) => one.name === of)!;
const size = ({ shape }: WireLayout): number => shape.reduce((product, extent) => product * extent, 1);
const at = ({ shape }: WireLayout, ...index: number[]): number => index.reduce((flat, i, dim) => flat * shape[dim] + i, 0);

describe("where elements are", () => {
  test("numbers of elements are row-major", () => {
    expect(indexOf([3, 4], 0)).toEqual([0, 0]);
    expect(indexOf([3, 4], 7)).toEqual([1, 3]);
    expect(indexOf([2, 3, 4], 23)).toEqual([1, 2, 3]);
  });
  test("every register of every thread holds one element of a fragment that is not copied", () => {
    for (const [name, of] of [["matmul", "C_l"], ["layouts", "x"]]) {
      const layout = tile(name, of);
      const seen = new Set(Array.from({ length: size(layout) }, (_, flat) => whereIs(layout, flat)).map(({ thread, register }) => thread! * layout.registers! + register!));
      expect(seen.size, of).toBe(size(layout));
      expect(Math.max(...seen), of).toBe(layout.threads! * layout.registers! - 1);
    }
  });
  test("an accumulator of mma has two columns in a thread, and eight rows further down two more", () => {
    const layout = tile("matmul", "C_l");
    const of = (i: number, j: number): (number | undefined)[] => [whereIs(layout, at(layout, i, j)).thread, whereIs(layout, at(layout, i, j)).register];
    expect([of(0, 0), of(0, 1), of(0, 2), of(1, 0), of(8, 0)]).toEqual([[0, 0], [0, 1], [1, 0], [4, 0], [0, 2]]);
  });
  test("copies of an element are in other threads", () => {
    const layout = tile("layouts", "largest");
    const { thread, copies } = whereIs(layout, 9);
    expect(copies!.length).toBe(layout.copies! - 1);
    expect(new Set([thread, ...copies!]).size).toBe(layout.copies);
    expect(said(whereIs(layout, 9))).toMatch(/^thread 16 \(warp 0, lane 16\), register 1; copies in 17, 18, 19 … 31$/);
  });
  test("a swizzle moves pieces within a row, and eight rows of a column lie in different banks", () => {
    const layout = tile("matmul", "A_s");
    const bytes = Array.from({ length: size(layout) }, (_, flat) => whereIs(layout, flat).byte!);
    expect(new Set(bytes).size).toBe(bytes.length);
    expect(Math.max(...bytes) - Math.min(...bytes)).toBe((bytes.length - 1) * layout.item!);
    const banks = Array.from({ length: 8 }, (_, row) => Math.floor(whereIs(layout, at(layout, row, 0)).bank! / 4));
    expect(new Set(banks).size).toBe(8);
  });
  test("an order by hand is taken as it is", () => {
    const layout = tile("layouts", "turned");
    expect(whereIs(layout, at(layout, 2, 3)).byte).toBe(layout.offset! + (2 * 65 + 3) * layout.item!);
  });
});

describe("the view", () => {
  let view: Mounted;
  const show = (name: string): HTMLElement => {
    document.body.innerHTML = "<div></div>";
    view = mount(document.body.firstElementChild as HTMLElement, wire(name));
    const root = document.querySelector<HTMLElement>(".tnb")!;
    root.querySelector<HTMLElement>('[data-tnb="tab"][data-name="tiles"]')?.click();
    return root;
  };
  afterEach(() => view.destroy());

  test("each tile and each pipelined loop can be picked, by the keys too", () => {
    const root = show("layouts");
    const names = (): (string | undefined)[] => [...root.querySelectorAll<HTMLElement>('[data-tnb="tile"]')].map((one) => one.dataset.name);
    expect(names()).toEqual(["x", "largest", "rows", "scale", "turned", "k"]);
    const picked = (): HTMLElement => root.querySelector<HTMLElement>('[data-tnb="tile"][aria-selected="true"]')!;
    expect(picked().dataset.name).toBe("x");
    expect(root.querySelector('[data-tnb="mode"][data-name="thread"]')!.getAttribute("aria-pressed")).toBe("true");
    picked().dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    expect(picked().dataset.name).toBe("largest");
    root.querySelector<HTMLElement>('[data-tnb="tile"][data-name="rows"]')!.click();
    expect(root.querySelector('[data-tnb="mode"]')).toBeNull();
    expect(root.textContent).toContain("3 versions in 24 KiB of shared memory");
  });
  test("the versions of a pipelined loop are told turn by turn, and what does not run ahead with its reason", () => {
    const root = show("layouts");
    root.querySelector<HTMLElement>('[data-tnb="tile"][data-name="k"]')!.click();
    const lanes = new Map([...root.querySelectorAll<HTMLElement>('[data-tnb="steps"] tbody tr')].map((row) => [row.firstChild!.textContent, [...row.querySelectorAll("td")].map((cell) => `${cell.dataset.state ?? ""} ${cell.textContent}`.trim())]));
    expect(lanes.get("rows [0]")!.slice(0, 5)).toEqual(["copy 0", "use 0", "copy 3", "wait 3", "use 3"]);
    expect(lanes.get("rows [2]")!.slice(0, 4)).toEqual(["", "copy 2", "wait 2", "use 2"]);
    expect(lanes.get("rows")!.slice(0, 3)).toEqual(["copy 0, 1", "copy 2", "copy 3"]);
    expect(root.textContent).toContain("scale from S is copied in its turn: it stands in an if");
  });
  test("a cell of the chart lights and pins its lines, by the keys too", () => {
    const root = show("roles");
    root.querySelector<HTMLElement>('[data-tnb="tile"][data-name="k"]')!.click();
    const cell = (): HTMLElement => root.querySelector<HTMLElement>('[data-tnb="steps"] td[tabindex="0"]')!;
    const row = (): string => cell().parentElement!.firstChild!.textContent!;
    const key = (name: string): boolean => cell().dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
    cell().focus();
    expect([row(), cell().textContent]).toEqual(["a, b", "0–2"]);
    expect(root.querySelector('[data-tnb="readout"]')!.textContent).toMatch(/^copies a, b of turn 0–2, 32,768 bytes each$/);
    key("ArrowRight");
    expect(cell().textContent).toBe("3");
    key("ArrowDown");
    expect(row()).toBe("a, b [0]");
    cell().click();
    const pins = [...root.querySelectorAll<HTMLElement>('[data-tnb="source"] [data-pin]')].map(({ dataset }) => Number(dataset.line));
    expect(pins).toEqual([10, 11]);
    expect(root.querySelectorAll('[data-tnb="steps"] td[data-pin]').length).toBeGreaterThan(10);
    const last = [...root.querySelectorAll<HTMLElement>('[data-tnb="steps"] tbody tr')].at(-2)!;
    expect(last.firstChild!.textContent).toBe("c += a·b");
    last.querySelector<HTMLElement>("td[data-state]")!.focus();
    expect(row()).toBe("c += a·b");
  });
  test("elements of a tile in boxes are where bulk copies write them", () => {
    const layout = tile("roles", "b");
    expect(layout.piece).toBe(64);
    const byte = (i: number, j: number): number => whereIs(layout, at(layout, i, j)).byte! - layout.offset!;
    expect([byte(0, 0), byte(0, 8), byte(1, 0), byte(1, 8), byte(0, 64)]).toEqual([0, 16, 128 + 16, 128, 64 * 128]);
    expect(new Set(Array.from({ length: size(layout) }, (_, flat) => whereIs(layout, flat).byte)).size).toBe(size(layout));
    expect(said(whereIs(layout, at(layout, 1, 64)))).toMatch(/, bank \d+, box 1$/);
    const root = show("roles");
    root.querySelector<HTMLElement>('[data-tnb="tile"][data-name="b"]')!.click();
    const uses = [...root.querySelectorAll('[data-tnb="use"]')].map((one) => one.textContent);
    expect(uses[0]).toMatch(/^boxes 2 boxes, one after the other, each of 64 rows of 128 bytes/);
    expect(uses[1]).toMatch(/^tensor map 2 bulk copies of 8,192 bytes from B; 256 × 512, 512 bytes apart, box 64 × 64.* \(line 11\)$/);
    expect(uses[2]).toMatch(/^descriptor B of wgmma m64n128k16.*; rows along K, leading offset 8,192 bytes, stride 1,024 bytes.* \(line 12\)$/);
  });
  test("a line of the source tells what was decided about it", () => {
    const root = show("roles");
    root.querySelector<HTMLElement>('[data-tnb="source"] [data-line="12"]')!.click();
    expect(root.querySelector('[data-tnb="foot"]')!.textContent).toMatch(/^line 12 makes \d+ lines of cuda · wgmma m64n128k16.f32.f16.f16, 2 by 1 warp groups · a: A of wgmma/);
    root.querySelector<HTMLElement>('[data-tnb="source"] [data-line="11"]')!.click();
    expect(root.querySelector('[data-tnb="foot"]')!.textContent).toContain("b: 2 bulk copies of 8,192 bytes from B");
  });
  test("a kernel without tiles has no such view", () => {
    expect(show("comprehension").querySelector('[data-tnb="tab"][data-name="tiles"]')).toBeNull();
    view.destroy();
  });
});
