// Traces that the Python side makes and tests, read here as they are.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { opened, type Trace } from "../src/trace";
import type { WireKernel, WireStage, WireTrace } from "../src/wire";

const FOLDER = join(import.meta.dirname, "../../tests/fixtures/traces");

export const names = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".json"))
  .map((name) => name.slice(0, -5));

export const wire = (name: string): WireTrace => JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8")) as WireTrace;
export const trace = (name: string): Trace => opened(wire(name));

/** A small trace made by hand. */
export function made(stages: Partial<WireStage>[], more: Partial<WireTrace> = {}, kernel: Partial<WireKernel> = {}): WireTrace {
  return {
    format: "tilelang_nb.trace",
    version: 1,
    ok: true,
    target: "sim",
    source: { text: "@T.prim_func\ndef k():\n    x = 1\n    y = 2", first_line: 2 },
    kernels: [{ name: "k", ok: true, stages: stages.map((stage, i) => ({ name: `stage${i}`, language: "tir", ...stage })), ...kernel }],
    ...more,
  };
}
