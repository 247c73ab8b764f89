import { describe, expect, test } from "vitest";
import { opened, patched } from "../src/trace";
import { checked, unpacked } from "../src/wire";
import { deflateSync } from "node:zlib";
import { made, names, trace, wire } from "./fixtures";

describe("reading a trace", () => {
  test("another version is refused with both versions named", () => {
    expect(() => checked({ ...made([]), version: 2 })).toThrow(/reads version 1 .* has version 2/);
  });
  test("another format and no object are refused", () => {
    expect(() => checked({ ...made([]), format: "x" })).toThrow(/format is "x"/);
    expect(() => checked([])).toThrow(/no report/);
    expect(() => checked(null)).toThrow(/no object/);
    expect(() => checked({ ...made([]), source: undefined })).toThrow(/no source text/);
  });
  test("a compressed trace is unpacked", async () => {
    const packed = deflateSync(Buffer.from(JSON.stringify({ a: "ä" })));
    expect(await unpacked(new Uint8Array(packed))).toEqual({ a: "ä" });
  });
  test.each(names)("%s is read", (name) => {
    const read = trace(name);
    expect(read.kernels.length).toBeGreaterThan(0);
    for (const kernel of read.kernels) expect(kernel.stages.some((stage) => stage.listing)).toBe(true);
  });
});

describe("stages", () => {
  test("a stage that says same_as shares the listing of that stage", () => {
    const [kernel] = opened(made([{ name: "a", text: "x" }, { name: "b", same_as: "a" }, { name: "c", text: "y" }, { name: "d", same_as: "b" }])).kernels;
    const [a, b, , d] = kernel.stages;
    expect(b.listing).toBe(a.listing);
    expect(d.listing).toBe(a.listing);
    expect(b.state).toBe("same");
  });
  test("the named default is shown first; without one, the last of the program", () => {
    const stages = [{ name: "tile", text: "x" }, { name: "thread", text: "y" }, { name: "extra", text: "z" }];
    expect(opened(made(stages, {}, { default: "tile" })).kernels[0].initial.name).toBe("tile");
    expect(opened(made(stages)).kernels[0].initial.name).toBe("thread");
  });
  test("a cell without kernels shows its own text and the stages that were not reached", () => {
    const [kernel] = opened(made([], { ok: false, kernels: [], pipeline: [{ name: "source" }, { name: "tile" }, { name: "legalise", group: "lowering" }] })).kernels;
    expect(kernel.stages.map((stage) => [stage.name, stage.state])).toEqual([["source", "landmark"], ["tile", "not_reached"], ["legalise", "not_reached"]]);
    expect(kernel.initial.listing!.rows[1]).toBe("def k():");
    expect(kernel.initial.listing!.origin(2)!.lines).toEqual([3]);
  });
});

describe("places and fixes", () => {
  test("columns in code points become columns in UTF-16 units", () => {
    const text = '𝔸𝔹 = T.expp("x")';
    const problem = { code: "TL003", slug: "s", severity: "error" as const, message: "m", span: [1, 5, 1, 11] as const };
    const { place } = opened(made([], { source: { text, first_line: 1 }, diagnostics: [problem] })).problems[0];
    expect(text.slice(place!.column, place!.endColumn)).toBe("T.expp");
  });
  test("edits are made from the end, in code points", () => {
    const rows = ["𝔸 = a", "b", "c"];
    const fix = { title: "", edits: [[1, 4, 1, 5, "x"], [2, 0, 3, 1, "d\ne"]] as [number, number, number, number, string][] };
    expect(patched(rows, 1, [fix])).toBe("𝔸 = x\nd\ne");
  });
  test("a fix outside of the text gives none", () => {
    expect(patched(["a"], 1, [{ title: "", span: [9, 0, 9, 1], replacement: "" }])).toBeNull();
  });
  test("the fixes that Python made are those of the edits", () => {
    for (const name of names)
      for (const { fixes } of trace(name).problems)
        for (const fix of fixes) if (fix.wire.patched && wire(name).cell) expect(patched(trace(name).rows, trace(name).first, [fix.wire])).toBe(fix.wire.patched);
  });
});
