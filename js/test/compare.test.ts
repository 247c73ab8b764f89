import { describe, expect, test } from "vitest";
import { compare, comparedNow } from "../src/compare";
import { ADDED, CHANGED, diffRows, FOLDED, REMOVED, SAME } from "../src/diff_rows";
import { across, added, back } from "../src/lineage";
import { differences, likeness } from "../src/words";

const chars = (text: string): string[] => [...text];

/** Length of the longest common subsequence, by the table. */
function longest(a: readonly string[], b: readonly string[]): number {
  const row = new Array<number>(b.length + 1).fill(0);
  for (const x of a) {
    let diagonal = 0;
    b.forEach((y, j) => {
      const above = row[j + 1];
      row[j + 1] = x === y ? diagonal + 1 : Math.max(above, row[j]);
      diagonal = above;
    });
  }
  return row[b.length];
}

function sound(a: readonly string[], b: readonly string[], runs: Int32Array): number {
  let [x, y, total] = [0, 0, 0];
  for (let run = 0; run < runs.length; run += 3) {
    const [i, j, n] = runs.subarray(run, run + 3);
    expect(i >= x && j >= y && n > 0).toBe(true);
    for (let k = 0; k < n; k++) expect(a[i + k].trim()).toBe(b[j + k].trim());
    [x, y, total] = [i + n, j + n, total + n];
  }
  expect(x <= a.length && y <= b.length).toBe(true);
  return total;
}

let seed = 1;
const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;

describe("comparison of texts", () => {
  test("small random texts have the longest common subsequence", () => {
    for (let round = 0; round < 400; round++) {
      const a = Array.from({ length: random(24) }, () => "abcd"[random(4)]);
      const b = Array.from({ length: random(24) }, () => "abcd"[random(4)]);
      expect(sound(a, b, comparedNow(a, b))).toBe(longest(a, b));
    }
  });
  test("empty, equal and disjoint texts", () => {
    expect(comparedNow([], []).length).toBe(0);
    expect([...comparedNow(["a", "b"], ["a", "b"])]).toEqual([0, 0, 2]);
    expect(comparedNow(["a"], ["b"]).length).toBe(0);
    expect(comparedNow([], ["b"]).length).toBe(0);
  });
  test("white space around a line does not count", () => {
    expect([...comparedNow(["x = 1"], ["    x = 1"])]).toEqual([0, 0, 1]);
  });
  test("long texts with scattered changes keep all that is common", () => {
    const a = Array.from({ length: 20_000 }, (_, i) => `line ${i}`);
    const b = a.flatMap((line, i) => (i % 101 === 0 ? [] : i % 97 === 0 ? [line, "new"] : [line]));
    expect(sound(a, b, comparedNow(a, b))).toBe(a.length - Math.ceil(a.length / 101));
  });
  test("long texts without anything unique end too", () => {
    const a = Array.from({ length: 6000 }, (_, i) => `x${i % 3}`);
    const b = Array.from({ length: 6000 }, (_, i) => `x${(i * 7) % 5}`);
    sound(a, b, comparedNow(a, b));
  });
  test("long texts without anything in common end too", () => {
    const a = Array.from({ length: 50_000 }, (_, i) => `a${i}`);
    expect(comparedNow(a, a.map((line) => `b${line}`)).length).toBe(0);
  });
  test("it pauses on long texts, so that it can run in slices", () => {
    const a = Array.from({ length: 90_000 }, (_, i) => `a${i}`);
    const steps = compare(a, [...a].reverse());
    let pauses = 0;
    while (!steps.next().done) pauses++;
    expect(pauses).toBeGreaterThan(2);
  });
});

describe("lines followed through a comparison", () => {
  const runs = comparedNow(chars("abcdef"), chars("xbcyef"));
  test("to the other side and back", () => {
    expect([0, 1, 2, 3, 4, 5].map((at) => across(runs, at))).toEqual([-1, 1, 2, -1, 4, 5]);
    expect([0, 1, 3, 5].map((at) => back(runs, at))).toEqual([-1, 1, -1, 5]);
  });
  test("what is new", () => {
    expect(added(runs, 6)).toEqual([[1, 1], [4, 1]]);
    expect(added(new Int32Array(0), 3)).toEqual([[1, 3]]);
    expect(added(comparedNow(["a"], ["a", "b", "c"]), 3)).toEqual([[2, 2]]);
  });
});

describe("rows of a comparison", () => {
  const a = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "value = old(1)", "tail"];
  const b = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "new line", "value = fresh(1)", "tail"];
  const runs = comparedNow(a, b);
  const rowsOf = (mode: "unified" | "split", opened = new Set<number>()) => diffRows({ a, b }, runs, mode, opened);

  test("every line of either text stands exactly once, in order, or is hidden in a fold", () => {
    for (const mode of ["unified", "split"] as const)
      for (const opened of [new Set<number>(), new Set([1])]) {
        const rows = rowsOf(mode, opened);
        const seen = (side: Int32Array): number[] => [...side].flatMap((line, row) => (rows.kind[row] === FOLDED ? Array.from({ length: rows.hidden[row] }, (_, k) => line + k) : line ? [line] : []));
        expect(seen(rows.a)).toEqual(a.map((_, i) => i + 1));
        expect(seen(rows.b)).toEqual(b.map((_, i) => i + 1));
        expect([rows.removed, rows.added]).toEqual([1, 2]);
      }
  });
  test("a long equal stretch folds up to three lines before a change, and opens", () => {
    const folded = rowsOf("unified");
    expect([...folded.kind].slice(0, 4)).toEqual([FOLDED, SAME, SAME, SAME]);
    expect(folded.hidden[0]).toBe(6);
    expect([...rowsOf("unified", new Set([1])).kind]).not.toContain(FOLDED);
  });
  test("unified: removed lines stand before added ones, alike lines are mates", () => {
    const rows = rowsOf("unified");
    expect([...rows.kind].slice(4, 7)).toEqual([REMOVED, ADDED, ADDED]);
    expect([...rows.mates]).toEqual([[10, 11]]);
  });
  test("side by side: a line stands beside the one that it became", () => {
    const rows = rowsOf("split");
    const changed = [...rows.kind].flatMap((kind, row) => (kind === CHANGED ? [[rows.a[row], rows.b[row]]] : []));
    expect(changed).toEqual([[0, 10], [10, 11]]);
  });
});

describe("words", () => {
  test("only the words that differ are marked", () => {
    const { a, b } = differences("C[i] = A[i] + B[i]", "C[j] = A[i] - B[i]");
    expect(a.map(([s, e]) => "C[i] = A[i] + B[i]".slice(s, e))).toEqual(["i", "+"]);
    expect(b.map(([s, e]) => "C[j] = A[i] - B[i]".slice(s, e))).toEqual(["j", "-"]);
  });
  test("likeness is about names, not about brackets", () => {
    expect(likeness("x = f(1)", "x = f(1)")).toBe(1);
    expect(likeness("f(a, b)", "g(c, d)")).toBe(0);
    expect(likeness("}", "}")).toBe(1);
  });
});
