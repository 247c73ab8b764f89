// The view of a report: draws a trace into an element and nothing but it. It knows no notebook; what one offers (a new cell below, a
// stage compiled on demand) comes in as options.

import { h } from "./dom";
import { faultNote } from "./fault";
import { Inspector, type Options } from "./inspector";
import packed from "./style.css?text";
import { opened } from "./trace";
import { inflated } from "./wire";

const STYLE = "tilelang-nb-style";
const sheet = await inflated(Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0))).text();

function styled(): void {
  if (document.getElementById(STYLE)) return;
  document.head.append(Object.assign(document.createElement("style"), { id: STYLE, textContent: sheet }));
}

export interface Mounted {
  update(trace: unknown): void;
  /** Says something in the foot, to end a wait. */
  note(text: string): void;
  destroy(): void;
}

/** Draws a trace into an element. update replaces it and keeps what is shown; a fault is shown in its place. */
export function mount(element: HTMLElement, trace: unknown, options: Options = {}): Mounted {
  styled();
  let inspector: Inspector | null = null;
  const update = (data: unknown): void => {
    const before = inspector;
    const focus = before?.root.contains(document.activeElement) ? document.activeElement!.getAttribute("data-k") : null;
    try {
      const read = opened(data);
      const ident = read.wire.ident ?? null;
      const isSameRun = before !== null && ident !== null && ident === before.trace.wire.ident;
      const places = isSameRun ? before.places() : null;
      const made = new Inspector(read, options, before?.state ?? null, isSameRun);
      before?.close();
      inspector = made;
      element.replaceChildren(made.root);
      made.start(places);
      if (focus !== null) (made.root.querySelector<HTMLElement>(`[data-k="${CSS.escape(focus)}"]`) ?? made.root).focus({ preventScroll: true });
    } catch (fault) {
      inspector?.close();
      inspector = null;
      element.replaceChildren(h("section", { class: "tnb", "data-tnb": "root" }, faultNote(fault)));
    }
  };
  update(trace);
  return {
    update,
    note: (text) => (inspector as Inspector | null)?.note(text),
    destroy: () => {
      (inspector as Inspector | null)?.close();
      inspector = null;
      element.replaceChildren();
    },
  };
}
