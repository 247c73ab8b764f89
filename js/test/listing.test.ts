import { describe, expect, test } from "vitest";
import { Listing } from "../src/listing";
import { names, trace } from "./fixtures";

const listing = new Listing("a\nb\n\nc\nd", "tir", {
  lines: [
    [1, 1, [7]],
    [2, 1, [8, 7, 3], ["call", "definition"]],
    [5, 1, [8]],
  ],
  gaps: [[4, 1, "made by insert-barriers: reads follow writes"]],
  statements: [
    [1, 2, 10],
    [5, 1, 3],
  ],
});

describe("links of a listing", () => {
  test("a line knows its source lines and what they are", () => {
    expect(listing.origin(2)).toEqual({ lines: [8, 7, 3], kinds: ["call", "definition"] });
    expect(listing.origin(4)).toBeNull();
  });
  test("a source line knows its lines", () => {
    expect(listing.stretches(7)).toEqual([
      { first: 1, count: 1, kind: "origin" },
      { first: 2, count: 1, kind: "call" },
    ]);
    expect(listing.stretches(8).map((s) => s.first)).toEqual([2, 5]);
    expect(listing.stretches(1)).toEqual([]);
  });
  test("the weight of a source line counts what it makes, not what names its buffer", () => {
    expect(listing.weight(7)).toBe(2);
    expect(listing.weight(3)).toBe(0);
  });
  test("coverage counts written lines and gives the reasons of the gaps", () => {
    expect([listing.coverage.linked, listing.coverage.written]).toEqual([3, 4]);
    expect([...listing.coverage.reasons]).toEqual([["made by insert-barriers: reads follow writes", 1]]);
  });
  test("statements count on within a run", () => {
    expect([1, 2, 3, 5].map((line) => listing.statement(line))).toEqual([10, 11, -1, 3]);
  });
  test("every line of every fixture has an origin, a reason, or nothing in it", () => {
    for (const name of names)
      for (const kernel of trace(name).kernels)
        for (const { listing: of, name: stage } of kernel.stages)
          of?.rows.forEach((row, i) => expect(of.origin(i + 1) !== null || of.gap(i + 1) !== null || row.trim() === "", `${name} ${stage} ${i + 1}: ${row}`).toBe(true));
  });
  test("stretches and origins agree in both directions", () => {
    for (const name of names)
      for (const kernel of trace(name).kernels)
        for (const { listing: of } of kernel.stages) {
          if (!of) continue;
          for (let line = 1; line <= of.rows.length; line++)
            for (const source of of.origin(line)?.lines ?? []) expect(of.stretches(source).some(({ first, count }) => first <= line && line < first + count)).toBe(true);
        }
  });
  test("a hundred thousand lines are read quickly enough to count", () => {
    const text = Array.from({ length: 100_000 }, (_, i) => `    A[${i}] = B[${i}]`).join("\n");
    const large = new Listing(text, "tir", { lines: [[1, 100_000, [5]]], statements: [[1, 100_000, 0]] });
    expect(large.weight(5)).toBe(100_000);
    expect(large.statement(99_999)).toBe(99_998);
  });
});
