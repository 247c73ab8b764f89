// A pipelined loop over time: who copies, what each version of a tile holds, the barriers, and who computes.

import { ACROSS, DOWN, div, h, roving, span, type Kid } from "../dom";
import { PINS, type Shell } from "../state";
import type { WirePipeline } from "../wire";

const WORDS: Record<string, string> = { copy: "the copy starts", wait: "under way, or there", use: "in use" };

/** The chart of a loop, as a grid whose cells light and pin their source lines. */
export function chart(shell: Shell, loop: WirePipeline): Kid {
  const { columns, lanes } = loop.chart!;
  const readout = h("p", { class: "dim", "data-tnb": "readout" }, "point at a cell; a click pins its lines");
  const cells: { element: HTMLElement; lane: number; first: number; last: number }[] = [];
  let isNextSaid = false;
  const ends = new Set<number>(); // columns after which a name ends
  columns.reduce((sum, [, count]) => (ends.add(sum + count - 1), sum + count), 0);
  const width = Math.max(...ends) + 1;

  const cell = (lane: number, at: number): Kid => {
    const found = lanes[lane].cells.find(([first]) => first === at);
    if (!found) return lanes[lane].cells.some(([first, count]) => first < at && at < first + count) ? null : h("td", { class: ends.has(at) ? "end" : "" });
    const [first, count, what, text, said, lines] = found;
    isNextSaid ||= text.includes("′");
    const pin = shell.state.pins.findIndex((line) => line !== null && lines.includes(line));
    const tell = (): void => {
      for (const one of cells) one.element.tabIndex = -1;
      element.tabIndex = 0;
      readout.textContent = said;
      shell.soften(lines);
    };
    const press = (): void => lines.slice(0, PINS).forEach((line, i) => shell.pin(line, i > 0, "other"));
    const element = h(
      "td",
      {
        class: `${what}${ends.has(first + count - 1) ? " end" : ""}`,
        colspan: count > 1 ? count : null,
        tabindex: cells.length ? -1 : 0,
        "data-k": `cell-${lane}-${first}`,
        "data-state": what,
        "aria-label": said,
        "data-pin": pin < 0 ? null : pin + 1,
        style: pin < 0 ? {} : { "--pin": `var(--pin${pin})` },
        on: { click: press, mouseenter: tell, focus: tell, mouseleave: () => shell.soften(null), blur: () => shell.soften(null), keydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), event.stopPropagation(), press()) },
      },
      text,
    );
    cells.push({ element, lane, first, last: first + count });
    return element;
  };

  const rows = lanes.map(({ part, name }, lane) => {
    const isNew = part !== lanes[lane - 1]?.part;
    const isTile = name.startsWith(part); // its versions come first
    const heading = !isNew ? "" : !isTile ? part : lane === lanes.findIndex((one) => one.name.startsWith(one.part)) ? "shared memory" : "";
    return [
      heading && h("tr", { class: "part" }, h("th", { scope: "rowgroup" }, heading), h("td", { colspan: width })),
      h("tr", { class: isNew && !heading ? "part" : "" }, h("th", { scope: "row" }, name), Array.from({ length: width }, (_, at) => cell(lane, at))),
    ];
  });
  const table = h(
    "table",
    { class: "values steps", role: "grid", "data-tnb": "steps", "aria-label": `the loop over ${loop.variable} over time` },
    h("thead", null, h("tr", null, h("th", null, `${loop.variable} =`), columns.map(([name, count]) => h("th", { scope: "col", class: "end", colspan: count }, name.replace(/^.* = /, ""))))),
    h("tbody", null, rows),
  );
  const here = (): number => cells.findIndex(({ element }) => element.matches(":focus"));
  roving(table, ACROSS, (distance) => cells[here() + distance]?.element.focus());
  roving(table, DOWN, (distance) => {
    const at = cells[here()];
    if (!at) return;
    for (let lane = at.lane + distance; lane >= 0 && lane < lanes.length; lane += distance) {
      const row = cells.filter((one) => one.lane === lane);
      if (row.length) return (row.find((one) => one.last > at.first) ?? row.at(-1)!).element.focus();
    }
  });
  return [
    div("chart", table),
    h("p", { class: "chart dim" }, Object.entries(WORDS).map(([what, words]) => span("key", h("i", { class: what }), words)), isNextSaid && "′ of the next execution of the loop"),
    readout,
  ];
}
