// The keyboard map. Keys work only while the focus is inside the view, and stop there: the notebook around must not see `b` or `dd`.

import { bold, button, div, h, keycap, type Kid } from "./dom";

export interface Actions {
  readonly search: () => void;
  readonly help: () => void;
  readonly linked: (distance: 1 | -1) => void;
  readonly stage: (distance: 1 | -1) => void;
  readonly tall: () => void;
  readonly next: (distance: 1 | -1) => void;
  readonly split: () => void;
  readonly copy: () => void;
  readonly problem: (distance: 1 | -1) => void;
  readonly sweep: (distance: 1 | -1) => void;
  readonly view: (number: number) => void;
  /** Leaves the innermost thing that is open; typing: in a text field. */
  readonly escape: (typing: boolean) => void;
}

const TYPING = new Set(["text", "search"]);

/** Handles a key event at the root of the view. */
export function handle(event: KeyboardEvent, actions: Actions): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.composedPath()[0] as HTMLElement;
  const typing = (target instanceof HTMLInputElement && TYPING.has(target.type)) || target instanceof HTMLTextAreaElement;
  event.stopPropagation();
  const act = event.key === "Escape" ? () => actions.escape(typing) : typing ? undefined : action(event, actions, target);
  if (!act) return;
  event.preventDefault();
  act();
}

function action(event: KeyboardEvent, actions: Actions, target: HTMLElement): (() => void) | undefined {
  if (target instanceof HTMLSelectElement && event.key.length > 1) return undefined;
  const { key } = event;
  const back = event.shiftKey ? -1 : 1;
  if (/^[1-6]$/.test(key)) return () => actions.view(Number(key));
  const known: Record<string, () => void> = {
    "/": actions.search,
    "?": actions.help,
    "[": () => actions.linked(-1),
    "]": () => actions.linked(1),
    ",": () => actions.stage(-1),
    ".": () => actions.stage(1),
    f: actions.tall,
    n: () => actions.next(1),
    p: () => actions.next(-1),
    s: actions.split,
    c: actions.copy,
    F8: () => actions.problem(back),
    h: () => actions.sweep(-1),
    l: () => actions.sweep(1),
  };
  return Object.hasOwn(known, key) ? known[key] : undefined;
}

const MAP: [string, [string[], string][]][] = [
  [
    "Lines and links",
    [
      [["↑", "↓", "j", "k"], "move the line cursor"],
      [["Enter"], "pin the line; Shift+Enter adds a pin"],
      [["[", "]"], "linked line before, after"],
      [["Esc"], "leave search, unpin all, then back to the notebook"],
    ],
  ],
  [
    "Stages",
    [
      [[",", "."], "stage before, after"],
      [["/"], "search every stage; Enter walks on"],
      [["f"], "taller or compact"],
      [["c"], "copy the stage"],
    ],
  ],
  [
    "Views",
    [
      [["1", "…", "6"], "Stage, Diff, Unroll, Problems, Run, Tiles"],
      [["n", "p"], "next, previous change or hit"],
      [["s"], "diff: unified or side by side"],
      [["h", "l"], "unroll: turn before, after"],
      [["F8"], "next problem; Shift+F8 the one before"],
    ],
  ],
  [
    "Mouse",
    [
      [["click"], "pin only this line; Shift adds it"],
      [["a stage"], "show it; Shift compares with it"],
    ],
  ],
];

/** The map as a sheet over the view. */
export function sheet(close: () => void): HTMLElement {
  const blocks: Kid = MAP.map(([title, rows]) => h("section", null, h("h4", null, title), h("dl", null, rows.map(([keys, what]) => [h("dt", null, keycap(...keys)), h("dd", null, what)]))));
  return h("div", { class: "help", role: "dialog", "aria-label": "keys", tabindex: -1 }, bold("Keys"), div("columns", blocks), button("help-close", "×", close, { class: "tool close", "aria-label": "close" }));
}
