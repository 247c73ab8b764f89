// What two texts have in common, line by line: patience anchors for long texts, the shortest edit script for short stretches between
// them. A generator, so that it runs in a worker at once and on the page's own thread in slices.

const SHORT = 2400; // lines of a stretch that gets the shortest script
const MOST_EDITS = 1200; // edits of it; beyond, the stretch counts as replaced
const SLICE = 20_000; // steps between two pauses

/**
 * Equal lines of a and b as runs [place in a, place in b, length, ...], in order, places from 0. Lines are compared without the white
 * space around them: a statement that is only indented differently is the same statement.
 */
export function* compare(a: readonly string[], b: readonly string[]): Generator<void, Int32Array> {
  const numbers = new Map<string, number>();
  const numbered = (lines: readonly string[]): Int32Array => {
    const result = new Int32Array(lines.length);
    lines.forEach((line, i) => {
      const key = line.trim();
      let number = numbers.get(key);
      if (number === undefined) numbers.set(key, (number = numbers.size));
      result[i] = number;
    });
    return result;
  };
  const left = numbered(a);
  yield;
  const right = numbered(b);
  yield;
  const mate = new Int32Array(left.length).fill(-1);
  const stretches: [number, number, number, number][] = [[0, left.length, 0, right.length]];
  let steps = 0;
  while (stretches.length) {
    let [a0, a1, b0, b1] = stretches.pop()!;
    while (a0 < a1 && b0 < b1 && left[a0] === right[b0]) mate[a0++] = b0++;
    while (a0 < a1 && b0 < b1 && left[a1 - 1] === right[b1 - 1]) mate[--a1] = --b1;
    if (a0 === a1 || b0 === b1) continue;
    steps += a1 - a0 + b1 - b0;
    if (steps > SLICE) {
      steps = 0;
      yield;
    }
    if (a1 - a0 + b1 - b0 <= SHORT && shortest(left, right, a0, a1, b0, b1, mate)) continue;
    const anchors = uniqueInBoth(left, right, a0, a1, b0, b1);
    let [x, y] = [a0, b0];
    for (const [i, j] of anchors) {
      mate[i] = j;
      stretches.push([x, i, y, j]);
      [x, y] = [i + 1, j + 1];
    }
    if (anchors.length) stretches.push([x, a1, y, b1]);
  }
  const runs: number[] = [];
  for (let i = 0; i < mate.length; i++) {
    if (mate[i] < 0) continue;
    const end = runs.length;
    if (end && runs[end - 3] + runs[end - 1] === i && runs[end - 2] + runs[end - 1] === mate[i]) runs[end - 1]++;
    else runs.push(i, mate[i], 1);
  }
  return Int32Array.from(runs);
}

/** Runs the whole of it at once. */
export function comparedNow(a: readonly string[], b: readonly string[]): Int32Array {
  const steps = compare(a, b);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Myers' greedy search. Fills mate and says true, or gives up where the texts differ too much. */
function shortest(left: Int32Array, right: Int32Array, a0: number, a1: number, b0: number, b1: number, mate: Int32Array): boolean {
  const n = a1 - a0;
  const m = b1 - b0;
  const most = Math.min(n + m, MOST_EDITS);
  const frontier = new Int32Array(2 * most + 3);
  const history: Int32Array[] = [];
  const middle = most + 1;
  for (let d = 0; d <= most; d++) {
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && frontier[middle + k - 1] < frontier[middle + k + 1]) ? frontier[middle + k + 1] : frontier[middle + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && left[a0 + x] === right[b0 + y]) (x++, y++);
      frontier[middle + k] = x;
      if (x >= n && y >= m) {
        for (let back = d; back > 0; back--) {
          const before = history[back - 1]; // frontier of back - 1, from diagonal -(back - 1)
          const at = (diagonal: number): number => (Math.abs(diagonal) > back - 1 ? -1 : before[diagonal + back - 1]);
          const diagonal = x - y;
          const down = diagonal === -back || (diagonal !== back && at(diagonal - 1) < at(diagonal + 1));
          const from = down ? diagonal + 1 : diagonal - 1;
          const startX = at(from);
          const startY = startX - from;
          const [snakeX] = down ? [startX] : [startX + 1];
          while (x > snakeX) mate[a0 + --x] = b0 + --y;
          [x, y] = [startX, startY];
        }
        while (x > 0 && y > 0) mate[a0 + --x] = b0 + --y;
        return true;
      }
    }
    history.push(frontier.slice(middle - d, middle + d + 1));
  }
  return false;
}

/** Pairs of lines that stand once in both stretches, the longest chain of them that keeps the order. */
function uniqueInBoth(left: Int32Array, right: Int32Array, a0: number, a1: number, b0: number, b1: number): [number, number][] {
  const inLeft = new Map<number, number>(); // line -> place, or -1 where it stands twice
  for (let i = a0; i < a1; i++) inLeft.set(left[i], inLeft.has(left[i]) ? -1 : i);
  const inRight = new Map<number, number>();
  for (let j = b0; j < b1; j++) inRight.set(right[j], inRight.has(right[j]) ? -1 : j);
  const pairs: [number, number][] = [];
  for (const [line, i] of inLeft) {
    const j = i < 0 ? undefined : inRight.get(line);
    if (j !== undefined && j >= 0) pairs.push([i, j]);
  }
  pairs.sort((p, q) => p[0] - q[0]);
  const ends: number[] = []; // ends[k]: index of the pair that ends the best chain of length k + 1
  const before = new Int32Array(pairs.length).fill(-1);
  pairs.forEach(([, j], index) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const half = (low + high) >> 1;
      if (pairs[ends[half]][1] < j) low = half + 1;
      else high = half;
    }
    before[index] = low ? ends[low - 1] : -1;
    ends[low] = index;
  });
  const chain: [number, number][] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at]) chain.push(pairs[at]);
  return chain.reverse();
}
