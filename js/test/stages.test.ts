import { describe, expect, test } from "vitest";
import { Differ } from "../src/differ";
import { before, comparable, life } from "../src/lineage";
import { firstState, inTimeline, type State } from "../src/state";
import { opened, type Kernel } from "../src/trace";
import type { WireStage } from "../src/wire";
import { made, trace } from "./fixtures";

const kernelOf = (stages: Partial<WireStage>[]): Kernel => opened(made(stages)).kernels[0];

describe("the life of a line", () => {
  const kernel = kernelOf([
    { name: "source", language: "python", text: "def k" },
    { name: "tile", text: "a\nb\nc" },
    { name: "same", same_as: "tile" },
    { name: "mid", text: "a\n  b\nnew\nc" },
    { name: "thread", text: "b\nnew" },
    { name: "cuda", language: "cuda", text: "b;" },
  ]);
  const stage = (name: string) => kernel.stages.find((one) => one.name === name)!;
  const lived = (name: string, line: number) => life(new Differ(), kernel.stages, stage(name), line, () => undefined);

  test("from the stage that made it to the one that removes it", () => {
    expect(lived("mid", 1)).toEqual({ madeBy: "tile", removedBy: "thread" });
    expect(lived("mid", 3)).toEqual({ madeBy: "mid", removedBy: null });
    expect(lived("thread", 1)).toEqual({ madeBy: "tile", removedBy: null });
    expect(lived("same", 3)).toEqual({ madeBy: "tile", removedBy: "thread" });
    expect(lived("cuda", 1)).toEqual({ madeBy: "cuda", removedBy: null });
  });
  test("stages of one language and of different text are compared", () => {
    expect(comparable(kernel.stages, stage("mid")).map((one) => one.name)).toEqual(["tile", "mid", "thread"]);
    expect(before(kernel.stages, stage("mid"))?.name).toBe("tile");
    expect(before(kernel.stages, stage("tile"))).toBeNull();
    expect(before(kernel.stages, stage("cuda"))).toBeNull();
  });
  test("every line of every fixture has one, and it begins no later than where it is seen", () => {
    const differ = new Differ();
    for (const name of ["matmul", "stencil"])
      for (const { stages } of trace(name).kernels) {
        const names = stages.map((one) => one.name);
        for (const one of comparable(stages, stages.find((s) => s.name === "tile")!))
          one.listing!.rows.forEach((_, i) => {
            const found = life(differ, stages, one, i + 1, () => undefined)!;
            expect(names.indexOf(found.madeBy)).toBeLessThanOrEqual(names.indexOf(one.name));
            if (found.removedBy) expect(names.indexOf(found.removedBy)).toBeGreaterThan(names.indexOf(one.name));
          });
      }
  });
});

describe("comparing", () => {
  const listing = (n: number, by: number) => kernelOf([{ name: "tile", text: Array.from({ length: n }, (_, i) => `x${i * by}`).join("\n") }]).stages[0].listing!;
  test("short texts are compared at once, and equal objects once", () => {
    const differ = new Differ();
    const [a, b] = [listing(10, 1), listing(10, 2)];
    const runs = differ.runs(a, b);
    expect(runs).toBeInstanceOf(Int32Array);
    expect(differ.runs(a, b)).toBe(runs);
  });
  test("long texts give a promise, also where the page has no workers, and are known afterwards", async () => {
    const differ = new Differ();
    const [a, b] = [listing(4000, 1), listing(4000, 2)];
    const runs = differ.runs(a, b);
    expect(runs).toBeInstanceOf(Promise);
    expect((await runs).length).toBeGreaterThan(0);
    expect(differ.runs(a, b)).toBe(await runs);
  });
  test("two reports with the same text need no comparison", () => {
    expect([...(new Differ().runs(listing(4000, 1), listing(4000, 1)) as Int32Array)]).toEqual([0, 0, 4000]);
  });
});

describe("the timeline", () => {
  const stages: Partial<WireStage>[] = [
    { name: "source", language: "python", text: "s", landmark: true },
    { name: "tile", text: "a", landmark: true },
    { name: "legalise", group: "lowering", same_as: "tile" },
    { name: "guard", group: "lowering", text: "b" },
    { name: "thread", same_as: "guard", landmark: true },
    { name: "flatten", group: "tir", text: "c" },
    { name: "narrow", group: "tir", same_as: "flatten" },
    { name: "cuda", language: "cuda", text: "d", landmark: true },
    { name: "ptx", language: "ptx", state: "on_demand", landmark: true },
  ];
  const state = (patch: Partial<State> = {}): State => ({ ...firstState(opened(made(stages, {}, { default: "cuda" })), null, false), ...patch });
  const names = (of: State): string[] => inTimeline(of).items.map((item) => ("name" in item ? item.name : `${item.group}:${item.stages.length}`));

  test("stages that changed nothing are hidden and counted, landmarks stay, the passes of the tail fold", () => {
    expect(names(state())).toEqual(["source", "tile", "guard", "thread", "tir:2", "cuda", "ptx"]);
    expect(inTimeline(state()).hidden).toBe(1);
  });
  test("they are shown when asked for, and an open group stands stage by stage", () => {
    expect(names(state({ showsSame: true }))).toContain("legalise");
    expect(names(state({ openGroups: new Set(["tir"]) }))).toEqual(["source", "tile", "guard", "thread", "flatten", "cuda", "ptx"]);
  });
  test("a filter finds any stage by its name or group", () => {
    expect(names(state({ filter: "NARR" }))).toEqual(["narrow"]);
    expect(names(state({ filter: "lowering" }))).toEqual(["legalise", "guard"]);
    expect(names(state({ filter: "nothing" }))).toEqual([]);
  });
  test("stages that were not reached are one item", () => {
    const failed = opened(made([], { ok: false, kernels: [], pipeline: [{ name: "tile" }, { name: "a", group: "lowering" }, { name: "b", group: "lowering" }, { name: "thread" }] }));
    expect(names(firstState(failed, null, false))).toEqual(["source", "tile", "not reached:2", "thread"]);
  });
  test("an error or a finding opens the problems, a warning does not", () => {
    const diagnostic = (severity: "error" | "warning") => ({ code: "TL1", slug: "s", severity, message: "m" });
    const first = (found: object, kernel = {}) => firstState(opened(made(stages, found, kernel)), null, false).view;
    expect(first({ diagnostics: [diagnostic("warning")] })).toBe("stage");
    expect(first({ diagnostics: [diagnostic("error")] })).toBe("problems");
    expect(first({}, { findings: [diagnostic("warning")] })).toBe("problems");
  });
});
