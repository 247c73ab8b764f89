// A trace, read once: kernels with their stages and listings, the cell's lines, its problems.

import { Listing } from "./listing";
import { unitColumn } from "./text";
import { sites, type Site } from "./expansion";
import { checked, type Language, type StageState, type WireDiagnostic, type WireFix, type WireKernel, type WirePrevious, type WireStage, type WireTrace } from "./wire";

export interface Stage {
  readonly name: string;
  readonly group: string | null;
  readonly language: Language;
  readonly reason: string;
  readonly state: StageState;
  readonly landmark: boolean;
  readonly why: string | null;
  readonly milliseconds: number | null;
  readonly plus: number;
  readonly minus: number;
  readonly sameAs: string | null;
  /** Shared by the stages of equal text; null where the stage was not reached. */
  readonly listing: Listing | null;
}

/** A place in the cell: rows counted from 0 within the shown text, columns in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
}

export interface Problem {
  readonly wire: WireDiagnostic;
  readonly place: Place | null;
  readonly notes: readonly { message: string; place: Place | null }[];
  readonly fixes: readonly { readonly wire: WireFix; readonly sure: boolean; readonly patched: string | null }[];
  /** The kernel that was running, for a finding of the simulated device; null for a diagnostic of the cell. */
  readonly foundIn: string | null;
}

export interface Kernel {
  readonly wire: WireKernel;
  readonly name: string;
  readonly ok: boolean;
  readonly stages: readonly Stage[];
  /** The expansion sites, outermost first, in the order of the text. */
  readonly sites: readonly Site[];
  readonly initial: Stage;
}

export interface Trace {
  readonly wire: WireTrace;
  /** The cell's lines; `first` is the number of the first. */
  readonly rows: readonly string[];
  readonly first: number;
  readonly kernels: readonly Kernel[];
  /** Diagnostics of the cell, then the findings of its launches. */
  readonly problems: readonly Problem[];
  readonly previous: WirePrevious | null;
}

/** Reads a trace. Throws WireError where it is none, or of another version. */
export function opened(data: unknown): Trace {
  const wire = checked(data);
  const shown = wire.cell ?? wire.source;
  const rows = shown.text.split("\n");
  const first = shown.first_line ?? 1;
  const problems = [
    ...(wire.diagnostics ?? []).map((found) => problem(found, rows, first, null)),
    ...(wire.kernels ?? []).flatMap((kernel) => (kernel.findings ?? []).map((found) => problem(found, rows, first, kernel.name))),
  ];
  const wires = wire.kernels?.length ? wire.kernels : [{ name: "", ok: wire.ok, stages: [] }];
  return { wire, rows, first, problems, previous: wire.previous ?? null, kernels: wires.map((kernel) => openKernel(kernel, wire, rows, first)) };
}

export const lineText = (trace: Trace, line: number): string => trace.rows[line - trace.first] ?? "";

function openKernel(wire: WireKernel, trace: WireTrace, rows: readonly string[], first: number): Kernel {
  const stages = openStages(wire.stages ?? [], trace, rows, first);
  const reached = stages.filter((stage) => stage.listing);
  const initial =
    // a default that only repeats another stage's text says less than the device code
    stages.find((stage) => stage.name === "cuda" && stage.listing && stages.find((one) => one.name === wire.default)?.sameAs) ??
    stages.find((stage) => stage.name === wire.default && stage.listing) ??
    reached.findLast((stage) => stage.name === "cuda" || stage.name === "thread") ??
    reached.at(-1) ??
    stages[0];
  return {
    wire,
    name: wire.name,
    ok: wire.ok,
    stages,
    initial,
    sites: wire.unroll ? sites(wire.unroll, (line) => rows[line - first]?.trim() ?? "") : [],
  };
}

const LANDMARKS = new Set(["source", "tile", "thread", "cuda", "ptx", "sass"]);

function openStages(wires: readonly WireStage[], trace: WireTrace, rows: readonly string[], first: number): Stage[] {
  const listings = new Map<string, Listing>();
  const stages: Stage[] = [];
  for (const wire of wires) {
    const language = wire.language ?? "tir";
    const listing = wire.same_as ? (listings.get(wire.same_as) ?? null) : typeof wire.text === "string" ? new Listing(wire.text, language, wire) : null;
    if (listing) listings.set(wire.name, listing);
    stages.push({
      name: wire.name,
      group: wire.group ?? null,
      language,
      reason: wire.reason ?? "",
      state: wire.state ?? (listing === null ? "not_reached" : wire.same_as || wire.changed === false ? "same" : "changed"),
      landmark: wire.landmark ?? LANDMARKS.has(wire.name),
      why: wire.why ?? null,
      milliseconds: wire.milliseconds ?? null,
      plus: wire.plus ?? 0,
      minus: wire.minus ?? 0,
      sameAs: wire.same_as ?? null,
      listing,
    });
  }
  if (!stages.some((stage) => stage.listing)) {
    // a cell that failed before any stage: its own text, and what would have followed
    const text = rows.join("\n");
    const source = new Listing(text, "python", { lines: rows.map((_, i) => [i + 1, 1, [first + i]]) });
    const base = { group: null, why: null, milliseconds: null, plus: 0, minus: 0, sameAs: null };
    stages.unshift({ ...base, name: "source", language: "python", reason: "what the cell says", state: "landmark", landmark: true, listing: source });
    if (!wires.length)
      for (const { name, group, reason } of trace.pipeline ?? [])
        if (name !== "source")
          stages.push({ ...base, name, group: group ?? null, language: "tir", reason: reason ?? "", state: "not_reached", landmark: LANDMARKS.has(name), listing: null });
  }
  const seen = new Set<string>();
  return stages.filter((stage) => !seen.has(stage.name) && seen.add(stage.name));
}

function place(span: WireDiagnostic["span"], rows: readonly string[], first: number): Place | null {
  if (!span) return null;
  const [line, column, endLine, endColumn] = span;
  return {
    line,
    column: unitColumn(rows[line - first] ?? "", column),
    endLine,
    endColumn: unitColumn(rows[endLine - first] ?? "", endColumn),
  };
}

function problem(wire: WireDiagnostic, rows: readonly string[], first: number, foundIn: string | null): Problem {
  return {
    wire,
    foundIn,
    place: place(wire.span, rows, first),
    notes: (wire.notes ?? []).map((note) => ({ message: note.message, place: place(note.span, rows, first) })),
    fixes: (wire.fixes ?? []).map((fix) => ({ wire: fix, sure: fix.sure ?? true, patched: fix.patched ?? patched(rows, first, [fix]) })),
  };
}

/** The cell's text with the edits of some fixes made; null where a fix has no place. */
export function patched(rows: readonly string[], first: number, fixes: readonly WireFix[]): string | null {
  const edits = fixes.flatMap((fix): readonly (readonly [number, number, number, number, string])[] =>
    fix.edits?.length ? fix.edits : fix.span ? [[...fix.span, fix.replacement ?? ""]] : [],
  );
  if (!edits.length) return null;
  const lines = [...rows];
  for (const [line, column, endLine, endColumn, text] of [...edits].sort((a, b) => b[0] - a[0] || b[1] - a[1])) {
    const from = line - first;
    const to = endLine - first;
    if (lines[from] === undefined || lines[to] === undefined) return null;
    const head = lines[from].slice(0, unitColumn(lines[from], column));
    const tail = lines[to].slice(unitColumn(lines[to], endColumn));
    lines.splice(from, to - from + 1, head + text + tail);
  }
  return lines.join("\n");
}
