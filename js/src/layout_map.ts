// Where an element of a tile is: in which register of which threads, or at which byte of shared memory.

import type { WireLayout } from "./wire";

const BANKS = 32;
const BANK_BYTES = 4;
const WARP = 32;

export interface Where {
  /** Fragments: the thread and its register. */
  readonly thread?: number;
  readonly register?: number;
  /** Further threads that hold a copy. */
  readonly copies?: readonly number[];
  /** Shared tiles: the byte in the arena of the block, and its bank. */
  readonly byte?: number;
  readonly bank?: number;
  /** Of a tile in several boxes. */
  readonly box?: number;
}

/** The index of an element by its number in row-major order. */
export function indexOf(shape: readonly number[], flat: number): number[] {
  const index: number[] = [];
  for (let dim = shape.length - 1; dim >= 0; dim--) {
    index.unshift(flat % shape[dim]);
    flat = Math.floor(flat / shape[dim]);
  }
  return index;
}

export function whereIs(layout: WireLayout, flat: number): Where {
  return layout.digits ? inRegisters(layout, indexOf(layout.shape, flat)) : inShared(layout, flat);
}

function inRegisters(layout: WireLayout, index: readonly number[]): Where {
  let [thread, register] = [0, 0];
  layout.digits!.forEach((digits, dim) => {
    let rest = index[dim];
    for (let at = digits.length - 1; at >= 0; at--) {
      const [extent, kind, stride] = digits[at];
      const part = at > 0 ? rest % extent : rest;
      rest = Math.floor(rest / extent);
      if (kind === "t") thread += part * stride;
      else register += part * stride;
    }
  });
  const copies: number[] = [];
  for (let copy = 1; copy < (layout.copies ?? 1); copy++) {
    let [rest, other] = [copy, thread];
    for (const [extent, stride] of layout.replication ?? []) {
      other += (rest % extent) * stride;
      rest = Math.floor(rest / extent);
    }
    copies.push(other);
  }
  return { thread, register, copies };
}

function inShared(layout: WireLayout, flat: number): Where {
  const width = layout.shape[layout.shape.length - 1] ?? 1;
  const rows = layout.shape[layout.shape.length - 2] ?? 1;
  const column = flat % width;
  const row = Math.floor(flat / width) % rows;
  const piece = layout.piece ?? width;
  let inside = column % piece;
  if (layout.swizzle) {
    const { chunk, every, span } = layout.swizzle;
    inside = (Math.floor(inside / chunk) ^ Math.floor(row / every) % span) * chunk + (inside % chunk);
  }
  const place = layout.places?.[flat] ?? flat - row * width - column + (column - (column % piece)) * rows + row * piece + inside;
  const byte = (layout.offset ?? 0) + place * (layout.item ?? 1);
  return { byte, bank: Math.floor(byte / BANK_BYTES) % BANKS, box: layout.piece ? Math.floor(column / piece) : undefined };
}

/** A place in words. */
export function said({ thread, register, copies, byte, bank, box }: Where): string {
  if (thread === undefined) return `byte ${byte}, bank ${bank}${box === undefined ? "" : `, box ${box}`}`;
  const more = copies!.length > 3 ? `${copies!.slice(0, 3).join(", ")} … ${copies!.at(-1)}` : copies!.join(", ");
  return `thread ${thread} (warp ${Math.floor(thread / WARP)}, lane ${thread % WARP}), register ${register}${more ? `; copies in ${more}` : ""}`;
}
