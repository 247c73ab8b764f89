// The worker's end of a comparison: two texts in, the runs of equal lines out.

import { comparedNow } from "./compare";

self.onmessage = ({ data }: MessageEvent<{ id: number; a: string; b: string }>) => {
  const runs = comparedNow(data.a.split("\n"), data.b.split("\n"));
  (self as unknown as { postMessage(message: object, transfer: Transferable[]): void }).postMessage({ id: data.id, runs }, [runs.buffer]);
};
