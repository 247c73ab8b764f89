import { describe, expect, test } from "vitest";
import { Carries, tokens, type Carry } from "../src/highlight";
import type { Language } from "../src/wire";

const kinds = (line: string, language: Language, carry: Carry = 0): [string, string][] => tokens(line, language, carry).tokens.flatMap(([start, end, kind]) => (kind ? [[line.slice(start, end), kind]] : []));

describe("colours", () => {
  test("python and TIR", () => {
    expect(kinds('for i in T.serial(4): x = "a # b"  # c', "python")).toEqual([["for", "k"], ["in", "k"], ["T.serial", "t"], ["4", "n"], ['"a # b"', "s"], ["# c", "c"]]);
    expect(kinds("%%tilelang --arch sm_80", "python")).toEqual([["%%tilelang --arch sm_80", "c"]]);
  });
  test("CUDA C", () => {
    expect(kinds('const float x = 1.0f; /* a */ return; // b', "cuda")).toEqual([["const", "k"], ["float", "k"], ["1.0f", "n"], ["/* a */", "c"], ["return", "k"], ["// b", "c"]]);
  });
  test("tokens cover the line without overlap, whatever it holds", () => {
    for (const line of ['"""a""" b', "'''", 'x = """', "/* /* */ */", '"unclosed', "\\\"'", "", "  ", "é\u202e𝔸 = 1"])
      for (const language of ["python", "tir", "cuda", "ptx", "sass"] as const)
        for (const carry of [0, 1, 2, 3] as const) {
          let at = 0;
          for (const [start, end] of tokens(line, language, carry).tokens) {
            expect(start).toBe(at);
            at = end;
          }
          expect(at).toBe(line.length);
        }
  });
});

describe("state between lines", () => {
  test("a string or comment that goes on colours the next lines", () => {
    const rows = ['a = """one', "two", 'three""" + 4', "b"];
    const carries = new Carries(rows, "python", rows.join("\n"));
    expect(rows.map((_, row) => carries.at(row))).toEqual([0, 1, 1, 0]);
    expect(kinds(rows[2], "python", 1)).toEqual([['three"""', "s"], ["4", "n"]]);
    const cuda = ["x; /* one", "two */ int y;"];
    expect(new Carries(cuda, "cuda", cuda.join("\n")).at(1)).toBe(3);
    expect(kinds(cuda[1], "cuda", 3)).toEqual([["two */", "c"], ["int", "k"]]);
  });
  test("any line can be asked for first", () => {
    const rows = Array.from({ length: 1000 }, (_, i) => (i === 10 ? "'''" : i === 900 ? "'''" : "x"));
    const carries = new Carries(rows, "python", rows.join("\n"));
    expect([carries.at(950), carries.at(899), carries.at(11), carries.at(10)]).toEqual([0, 2, 2, 0]);
  });
});
