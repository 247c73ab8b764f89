import { describe, expect, test } from "vitest";
import { sites } from "../src/expansion";
import { Listing } from "../src/listing";
import { holeName, Templates } from "../src/template";
import type { WireNode, WireTurn } from "../src/wire";
import { names, trace } from "./fixtures";

const turn = (bound: string[], statements: [number, number], children: WireNode[] = []): WireTurn => ({ value: bound.join(), bound, statements, children });
const inner = (from: number): WireNode => ({ id: 2, kind: "for", line: 3, header: "for j in (7, 8)", names: ["j"], iterations: [turn(["7"], [from, from]), turn(["8"], [from + 1, from + 1])] });
const root: WireNode = {
  id: 0,
  kind: "kernel",
  line: 1,
  iterations: [turn([], [0, 9], [{ id: 1, kind: "for", line: 2, header: "for i in range(2)", names: ["i"], iterations: [turn(["0"], [0, 1], [inner(0)]), turn(["1"], [2, 3], [inner(2)])] }])],
};
const [outerSite, innerSite] = sites(root, () => "");
const listing = new Listing("head\nA[0] = 7\nA[1] = 8\nA[2] = 7\nA[3] = 8\ntail", "tir", { statements: [[1, 1, 9], [2, 4, 0]] });

describe("sites", () => {
  test("the instances of one inner loop are one site", () => {
    expect(sites(root, () => "").map((site) => [site.id, site.depth, site.turns.length])).toEqual([[1, 0, 2], [2, 1, 4]]);
    expect(innerSite.parent?.id).toBe(1);
    expect(innerSite.chain().map((site) => site.id)).toEqual([1, 2]);
  });
  test("a turn is found by its path", () => {
    expect(innerSite.bound(innerSite.turn([1, 0])!)).toEqual(["7"]);
    expect(innerSite.turn([2, 0])).toBeNull();
    expect(innerSite.trips([0])).toBe(2);
    expect(outerSite.trips([])).toBe(2);
  });
  test("an iteration has exactly its lines", () => {
    expect(innerSite.linesOf(listing, innerSite.ordinal([1, 0]))).toEqual([4]);
    expect(outerSite.linesOf(listing, outerSite.ordinal([0]))).toEqual([2, 3]);
    expect(outerSite.share(listing)).toBeCloseTo(4 / 6);
  });
  test("statements of an `also` interval belong to the turn", () => {
    const node: WireNode = { kind: "kernel", line: 1, iterations: [{ children: [{ kind: "for", line: 2, iterations: [{ value: "0", statements: [0, 0], also: [[3, 3]] }] }] }] };
    const [site] = sites(node, () => "for i in x:  # why");
    expect(site.linesOf(listing, 0)).toEqual([2, 5]);
    expect(site.header).toBe("for i in x");
  });
  test("a macro called twice on one line is two sites", () => {
    const call = (from: number): WireNode => ({ kind: "macro", line: 4, label: "tap", iterations: [turn([], [from, from])] });
    expect(sites({ kind: "kernel", line: 1, iterations: [{ children: [call(0), call(1)] }] }, () => "").length).toBe(2);
  });
  test("every turn of every fixture owns its statements, and its lines lie within those of the turn around", () => {
    for (const name of names)
      for (const kernel of trace(name).kernels)
        for (const site of kernel.sites)
          for (const [ordinal, { path }] of site.turns.entries())
            for (const { listing: of } of kernel.stages) {
              if (!of?.hasStatements || !site.parent) continue;
              const around = new Set(site.parent.linesOf(of, site.parent.ordinal(path.slice(0, -1))));
              for (const line of site.linesOf(of, ordinal)) expect(around.has(line), `${name} ${site.header} ${path.join()}`).toBe(true);
            }
  });
  test("ten thousand turns are gathered, found and folded", () => {
    const many: WireNode = { kind: "kernel", line: 1, iterations: [{ children: [{ kind: "for", line: 2, names: ["i"], iterations: Array.from({ length: 10_000 }, (_, i) => turn([String(i)], [i, i])) }] }] };
    const [site] = sites(many, () => "");
    const text = new Listing(Array.from({ length: 10_000 }, (_, i) => `A[${i}] = ${i % 7}`).join("\n"), "tir", { statements: [[1, 10_000, 0]] });
    expect(site.linesOf(text, 9_999)).toEqual([10_000]);
    const templates = new Templates(site, text);
    expect([templates.makers, templates.compared]).toEqual([10_000, 1000]);
    expect(templates.of(5)!.holes.length).toBe(2);
    expect(templates.of(9_999)!.holes.length).toBe(2);
  });
});

describe("templates", () => {
  test("turns that differ in numbers share a template, the places that differ are its holes", () => {
    const template = new Templates(innerSite, listing).of(0)!;
    expect(template.members.size).toBe(4);
    expect(template.holes.map((hole) => [...hole.values.values()])).toEqual([["0", "1", "2", "3"], ["7", "8", "7", "8"]]);
    expect(template.tokens.join("")).toBe("A[0] = 7");
  });
  test("places that change together are one hole", () => {
    const text = new Listing("A[0] = B[0]\nA[1] = B[1]", "tir", { statements: [[1, 2, 0]] });
    const [site] = sites({ kind: "kernel", line: 1, iterations: [{ children: [{ kind: "for", line: 2, iterations: [turn([], [0, 0]), turn([], [1, 1])] }] }] }, () => "");
    const { holes } = new Templates(site, text).of(1)!;
    expect(holes.length).toBe(1);
    expect(holes[0].at.length).toBe(2);
  });
  test("an index without an offset and one with an offset share a template", () => {
    const text = new Listing("A[i] = B[i]\nA[i + 1] = B[i - 4]", "tir", { statements: [[1, 2, 0]] });
    const [site] = sites({ kind: "kernel", line: 1, iterations: [{ children: [{ kind: "for", line: 2, iterations: [turn([], [0, 0]), turn([], [1, 1])] }] }] }, () => "");
    const template = new Templates(site, text).of(0)!;
    expect(template.holes.map((hole) => [...hole.values.values()])).toEqual([["", " + 1"], ["", " - 4"]]);
  });
  test("other code is another template, and the rarer one is odd", () => {
    const text = new Listing("A[0] = 1\nA[1] = 2\nif x:\nA[3] = 4", "tir", { statements: [[1, 4, 0]] });
    const [site] = sites({ kind: "kernel", line: 1, iterations: [{ children: [{ kind: "for", line: 2, iterations: [0, 1, 2, 3].map((i) => turn([], [i, i])) }] }] }, () => "");
    const templates = new Templates(site, text);
    expect([0, 1, 2, 3].map((i) => templates.isOdd(i))).toEqual([false, false, true, false]);
    expect(templates.of(2)!.members.size).toBe(1);
  });
  test("names of holes go on after z", () => {
    expect([0, 25, 26, 27, 52].map(holeName)).toEqual(["a", "z", "aa", "ab", "ba"]);
  });
});

describe("names that only keep the iterations apart", () => {
  const folded = (lines: string[], each: number) => {
    const text = new Listing(lines.join("\n"), "tir", { statements: [[1, lines.length, 0]] });
    const turns = Array.from({ length: lines.length / each }, (_, i) => turn([], [i * each, i * each + each - 1]));
    const [site] = sites({ kind: "kernel", line: 1, iterations: [{ children: [{ kind: "for", line: 2, iterations: turns }] }] }, () => "");
    return new Templates(site, text).of(0)!;
  };
  test("a loop variable or a declared name with another number is no hole", () => {
    const template = folded(["for c in T.serial(8):", "    A[c] = x * 2", "for c_1 in T.serial(8):", "    A[c_1] = x * 3"], 2);
    expect(template.holes.map((hole) => [...hole.values.values()])).toEqual([["2", "3"]]);
    expect(folded(["int cse_v1 = i;", "int cse_v2 = i;"], 1).holes).toEqual([]);
    expect(folded(["x = A[0]", "x_1 = A[0]"], 1).holes).toEqual([]);
  });
  test("a buffer with another number is one: the iterations touch other memory", () => {
    expect(folded(["A[i] = r_1[0]", "A[i] = r_2[0]"], 1).holes.length).toBe(1);
  });
});
