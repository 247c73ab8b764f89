// One line as coloured text, with marks (squiggles, hits, changed words) around parts of it.

import { append, h } from "./dom";
import { tokens, type Carry } from "./highlight";
import type { Language } from "./wire";

const LONGEST = 3000; // characters of a line that are drawn; the rest is counted

export interface Mark {
  readonly start: number;
  readonly end: number;
  readonly class: string;
  readonly data?: Record<string, string>;
}

/** The line as nodes. Tokens are cut at the edges of marks. */
export function painted(line: string, language: Language, marks: readonly Mark[] = [], carry: Carry = 0): DocumentFragment {
  const fragment = document.createDocumentFragment();
  const text = line.length > LONGEST ? line.slice(0, LONGEST) : line;
  const cuts = [...new Set(marks.flatMap((mark) => [mark.start, mark.end]))].sort((a, b) => a - b);
  let holder: { mark: Mark[]; element: HTMLElement } | null = null;
  for (const [start, end, kind] of tokens(text, language, carry).tokens) {
    const edges = [start, ...cuts.filter((cut) => cut > start && cut < end), end];
    for (let i = 0; i + 1 < edges.length; i++) {
      const piece = text.slice(edges[i], edges[i + 1]);
      const leaf = kind ? h("span", { class: kind }, piece) : piece;
      const around = marks.filter((mark) => mark.start <= edges[i] && mark.end >= edges[i + 1] && mark.start < mark.end);
      if (!around.length) {
        holder = null;
        append(fragment, leaf);
      } else if (holder && holder.mark.length === around.length && holder.mark.every((mark, at) => mark === around[at])) append(holder.element, leaf);
      else {
        // neighbouring pieces under the same marks share their elements
        let inner: HTMLElement | null = null;
        let outer: Node | null = null;
        for (const mark of around) {
          const element = h("span", { class: mark.class, ...mark.data });
          if (outer) element.append(outer);
          inner ??= element;
          outer = element;
        }
        append(inner!, leaf);
        fragment.append(outer!);
        holder = { mark: around, element: inner! };
      }
    }
  }
  if (text !== line) fragment.append(h("span", { class: "cut" }, ` … ${line.length - LONGEST} more characters`));
  return fragment;
}
