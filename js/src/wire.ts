// The report as it comes over the wire: JSON, version 1. Lines count from 1 as the editor counts them, columns from 0 in code
// points, ends are exclusive; null and a missing key mean the same. Additions keep the version; a reader refuses another one.

export const FORMAT = "tilelang_nb.trace";
export const VERSION = 1;

export type Language = "python" | "tir" | "cuda" | "ptx" | "sass";
export type Severity = "error" | "warning" | "note";
export type StageState = "landmark" | "changed" | "same" | "failed" | "not_reached" | "on_demand";
/** line, column, end line, end column */
export type WireSpan = readonly [number, number, number, number];
/** What a further source line of an IR line is: where the macro was called, or gave a value back that is in the line; where the buffer
    was defined, its layout decided; where the statement goes on. */
export type LinkKind = "call" | "return" | "definition" | "layout" | "statement";

export interface WireFact {
  name: string;
  value: string;
  unit?: string | null;
  detail?: string | null;
  origin?: string | null;
  ok?: boolean | null;
  line?: number | null;
  used?: number | null;
  max?: number | null;
}

export interface WireFix {
  title: string;
  sure?: boolean | null;
  span?: WireSpan | null;
  replacement?: string | null;
  edits?: readonly (readonly [number, number, number, number, string])[] | null;
  patched?: string | null;
}

export interface WireDiagnostic {
  code: string;
  slug: string;
  severity: Severity;
  message: string;
  label?: string | null;
  help?: string | null;
  span?: WireSpan | null;
  notes?: readonly { message: string; span?: WireSpan | null }[] | null;
  fixes?: readonly WireFix[] | null;
  kernel?: string | null;
  where?: string | null;
  count?: string | null;
  node?: number | null;
  path?: readonly number[] | null;
}

export interface WirePage {
  slug?: string | null;
  severity?: string | null;
  title?: string | null;
  meaning?: string | null;
  bad?: string | null;
  said?: string | null;
  good?: string | null;
}

export interface WireStage {
  name: string;
  group?: string | null;
  language?: Language | null;
  reason?: string | null;
  state?: StageState | null;
  landmark?: boolean | null;
  why?: string | null;
  milliseconds?: number | null;
  changed?: boolean | null;
  plus?: number | null;
  minus?: number | null;
  text?: string | null;
  same_as?: string | null;
  lines?: readonly (readonly [number, number, readonly number[], (readonly LinkKind[])?])[] | null;
  gaps?: readonly (readonly [number, number, string])[] | null;
  statements?: readonly (readonly [number, number, number])[] | null;
}

export interface WireTurn {
  value?: string | null;
  bound?: readonly (string | null)[] | null;
  statements?: readonly [number, number] | null;
  also?: readonly (readonly [number, number])[] | null;
  children?: readonly WireNode[] | null;
}

export interface WireNode {
  id?: number | null;
  kind: string;
  line: number;
  label?: string | null;
  header?: string | null;
  definition_line?: number | null;
  names?: readonly string[] | null;
  iterations: readonly WireTurn[];
}

export interface WireArena {
  name: string;
  offset: number;
  bytes: number;
  line?: number | null;
  shape?: unknown;
  dtype?: string | null;
  layout?: string | null;
}

/** Where the elements of a tile are; digits are those of a fragment, most significant first, item to places those of a shared tile. */
export interface WireLayout {
  name: string;
  memory: string;
  dtype: string;
  shape: readonly number[];
  line?: number | null;
  /** The compiler added it. */
  own?: boolean | null;
  note?: string | null;
  threads?: number | null;
  registers?: number | null;
  copies?: number | null;
  digits?: readonly (readonly (readonly [number, "t" | "r", number])[])[] | null;
  replication?: readonly (readonly [number, number])[] | null;
  item?: number | null;
  offset?: number | null;
  bytes?: number | null;
  versions?: number | null;
  swizzle?: { chunk: number; every: number; span: number } | null;
  /** Columns of a box, where boxes stand one after the other. */
  piece?: number | null;
  places?: readonly number[] | null;
  /** What bulk copies and products of warp groups make of it: subject, words, line. */
  uses?: readonly (readonly [string, string, number | null])[] | null;
}

/** first column, how many, "copy" | "wait" | "use" | "barrier" | "run", short text, words, source lines */
export type WireChartCell = readonly [number, number, string, string, string, readonly number[]];

/** A pipelined loop. Columns of its chart: name, how many share it. */
export interface WirePipeline {
  line?: number | null;
  variable: string;
  wanted: number;
  stages: number;
  ahead: number;
  turns?: number | null;
  engine?: string | null;
  groups?: readonly { waits_at: number; pending: number; copies: readonly { tile: string; source: string; line: number; bytes: number }[] }[] | null;
  chart?: { columns: readonly (readonly [string, number])[]; lanes: readonly { part: string; name: string; cells: readonly WireChartCell[] }[] } | null;
  staying?: readonly { tile: string; source: string; line: number; reason: string }[] | null;
  reason?: string | null;
}

export interface WireKernel {
  name: string;
  ok: boolean;
  span?: WireSpan | null;
  line?: number | null;
  default?: string | null;
  parameters?: readonly { name: string; kind: string; dtype: string; shape: readonly unknown[] }[] | null;
  stages?: readonly WireStage[] | null;
  unroll?: WireNode | null;
  launches?: readonly { name: string; grid: readonly string[]; block: readonly string[] }[] | null;
  facts?: readonly WireFact[] | null;
  arena?: readonly WireArena[] | null;
  layouts?: readonly WireLayout[] | null;
  pipelines?: readonly WirePipeline[] | null;
  findings?: readonly WireDiagnostic[] | null;
  counters?: readonly WireFact[] | null;
  printed?: readonly string[] | null;
}

export interface WireText {
  name?: string | null;
  text: string;
  first_line?: number | null;
}

export interface WireRun {
  call?: string | null;
  result?: string | null;
  launches?: readonly { kernel: string; count: number }[] | null;
  facts?: readonly WireFact[] | null;
  findings?: number | null;
  /** The cell failed with an error that says nothing beside the diagnostics. */
  told?: boolean | null;
}

export interface WirePrevious {
  execution?: number | null;
  cell?: WireText | null;
  kernels?: Record<string, { stages?: Record<string, string | null> | null; facts?: Record<string, string> | null } | null> | null;
}

export interface WireTrace {
  format: string;
  version: number;
  generator?: string | null;
  ident?: string | null;
  execution?: number | null;
  ok: boolean;
  target?: string | null;
  arch?: string | null;
  device?: string | null;
  elapsed?: number | null;
  source: WireText;
  cell?: WireText | null;
  diagnostics?: readonly WireDiagnostic[] | null;
  pages?: Record<string, WirePage> | null;
  patched?: { text: string; titles?: readonly string[] | null } | null;
  pipeline?: readonly { name: string; group?: string | null; reason?: string | null }[] | null;
  kernels?: readonly WireKernel[] | null;
  run?: WireRun | null;
  previous?: WirePrevious | null;
}

export class WireError extends Error {}

/** The data as a trace, or a WireError that says what it is instead. */
export function checked(data: unknown): WireTrace {
  if (typeof data !== "object" || data === null) throw new WireError("This is no report of tilelang_nb: it holds no object.");
  const { format, version, source } = data as Partial<WireTrace>;
  if (format !== FORMAT) throw new WireError(`This is no report of tilelang_nb: its format is ${JSON.stringify(format) ?? "not named"}.`);
  if (version !== VERSION)
    throw new WireError(`This view reads version ${VERSION} of the report, and this one has version ${JSON.stringify(version)}. Run the cell again.`);
  if (typeof source?.text !== "string") throw new WireError("This report has no source text.");
  return data as WireTrace;
}

/** What zlib compressed. */
export const inflated = (compressed: BufferSource): Response => new Response(new Blob([compressed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate")));

/** zlib-compressed JSON, as Python's zlib.compress makes it. */
export const unpacked = async (compressed: BufferSource): Promise<unknown> => inflated(compressed).json();
