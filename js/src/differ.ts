// Comparisons of listings: short ones at once, long ones in a worker; where the page refuses workers, in slices between two frames.

import workerText from "./compare_worker?worker";
import { compare, comparedNow } from "./compare";

const AT_ONCE = 3000; // lines of both together that compare faster than a message travels
const QUICK = 400_000; // characters of both
const SLICE = 8; // ms of the page's own thread between two frames

/** Texts to compare; equal objects are compared once. */
export interface Text {
  readonly text: string;
  readonly rows: readonly string[];
}

export class Differ {
  private readonly known = new WeakMap<Text, WeakMap<Text, Int32Array | Promise<Int32Array>>>();
  private readonly waiting = new Map<number, (runs: Int32Array) => void>();
  private worker: Worker | null | undefined;
  private serial = 0;
  private closed = false;

  /** Runs of equal lines (see compare), or a promise of them. */
  runs(a: Text, b: Text): Int32Array | Promise<Int32Array> {
    let of = this.known.get(a);
    if (!of) this.known.set(a, (of = new WeakMap()));
    const found = of.get(b);
    if (found) return found;
    if (a === b || a.text === b.text) return remember(of, b, Int32Array.of(0, 0, a.rows.length));
    if (a.rows.length + b.rows.length <= AT_ONCE) return remember(of, b, comparedNow(a.rows, b.rows));
    const cache = of;
    return remember(
      of,
      b,
      this.ask(a, b).then((runs) => remember(cache, b, runs)),
    );
  }

  /** Would runs answer without work that a person notices? */
  isQuick(a: Text, b: Text): boolean {
    return this.known.get(a)?.get(b) instanceof Int32Array || a.text.length + b.text.length < QUICK;
  }

  close(): void {
    this.closed = true;
    this.worker?.terminate();
    this.worker = null;
    this.waiting.clear();
  }

  private ask(a: Text, b: Text): Promise<Int32Array> {
    const worker = this.started();
    if (!worker) return sliced(a.rows, b.rows);
    const id = ++this.serial;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.lost.set(id, () => void sliced(a.rows, b.rows).then(resolve));
      worker.postMessage({ id, a: a.text, b: b.text });
    });
  }

  private readonly lost = new Map<number, () => void>();

  private started(): Worker | null {
    if (this.worker !== undefined || this.closed) return this.worker ?? null;
    if (!workerText || typeof Worker === "undefined") return (this.worker = null);
    try {
      const url = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
      const worker = new Worker(url);
      worker.onmessage = ({ data }: MessageEvent<{ id: number; runs: Int32Array }>) => {
        URL.revokeObjectURL(url);
        this.waiting.get(data.id)?.(data.runs);
        this.waiting.delete(data.id);
        this.lost.delete(data.id);
      };
      worker.onerror = () => {
        // refused by the page's policy after all: what was asked of it is done here
        this.worker = null;
        for (const again of this.lost.values()) again();
        this.lost.clear();
        this.waiting.clear();
      };
      return (this.worker = worker);
    } catch {
      return (this.worker = null);
    }
  }
}

function remember<T extends Int32Array | Promise<Int32Array>>(of: WeakMap<Text, Int32Array | Promise<Int32Array>>, b: Text, value: T): T {
  of.set(b, value);
  return value;
}

async function sliced(a: readonly string[], b: readonly string[]): Promise<Int32Array> {
  const steps = compare(a, b);
  for (;;) {
    const end = performance.now() + SLICE;
    while (performance.now() < end) {
      const { done, value } = steps.next();
      if (done) return value;
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
