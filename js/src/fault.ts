// What stands in place of what could not be drawn.

import { bold, h } from "./dom";

/** A note in place of what could not be drawn. */
export function faultNote(fault: unknown): HTMLElement {
  const error = fault instanceof Error ? fault : new Error(String(fault));
  return h(
    "div",
    { class: "fault", role: "alert", "data-tnb": "error" },
    bold(error.name === "Error" ? "The view cannot show this. " : "The view has a fault. "),
    error.message,
    error.stack && h("details", null, h("summary", null, "details"), h("pre", null, error.stack.split("\n").map((line) => [line, h("br")]))),
  );
}
