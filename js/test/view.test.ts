import { afterEach, describe, expect, test } from "vitest";
import { CodeView } from "../src/code_view";
import { neighbour, Search } from "../src/search";
import { shown } from "../src/text";
import { Listing } from "../src/listing";
import { picked, pinOf, pinsOf } from "../src/state";
import { mount, type Mounted } from "../src/view";
import { made, names, wire } from "./fixtures";

let view: Mounted | null = null;
const show = (trace: unknown, options = {}): HTMLElement => {
  const host = document.createElement("div");
  document.body.replaceChildren(host);
  view = mount(host, trace, options);
  return host.querySelector<HTMLElement>(".tnb")!;
};
afterEach(() => {
  view?.destroy();
  view = null;
});
const click = (root: HTMLElement, selector: string, shiftKey = false): void => {
  const found = root.querySelector(selector);
  expect(found, selector).not.toBeNull();
  found!.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey }));
};
const press = (root: HTMLElement, key: string, more = {}): boolean => root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const faults = (root: HTMLElement): string[] => [...root.querySelectorAll('[data-tnb="error"]')].map((element) => element.textContent ?? "");

describe("every fixture", () => {
  test.each(names)("%s draws in every view and stage without a fault", (name) => {
    const root = show(wire(name));
    expect(root.dataset.ready).toBe("true");
    for (const tab of [...root.querySelectorAll<HTMLElement>('[data-tnb="tab"]')].map((element) => element.dataset.name)) {
      click(root, `[data-tnb="tab"][data-name="${tab}"]`);
      const chips = [...root.querySelectorAll<HTMLElement>('[data-tnb="chip"]')].map((element) => element.dataset.name);
      for (const chip of tab === "stage" ? chips : chips.slice(-2)) {
        click(root, `[data-tnb="chip"][data-name="${chip}"]`);
        expect(faults(root), `${tab} ${chip}`).toEqual([]);
      }
    }
    for (const key of ["n", "p", "s", "[", "]", ",", ".", "F8", "h", "l", "f", "?", "?", "1", "2", "3", "4", "5", "Escape"]) press(root, key);
    expect(faults(root)).toEqual([]);
  });
});

describe("text of others", () => {
  const attack = '</script><img src=x onerror="globalThis.attacked = 1"><b>';
  test("markup in any field makes no element", () => {
    for (const name of names) {
      const text = JSON.stringify(wire(name));
      // every string that is no key of the format is followed by markup
      const hostile = JSON.parse(text, (key, value: unknown) =>
        typeof value === "string" && !["format", "state", "language", "severity", "kind", "same_as", "name", "default", "group"].includes(key) && !/^(call|return|definition|layout|statement)$/.test(value) ? value + attack : value,
      ) as unknown;
      const root = show(hostile);
      for (const tab of [...root.querySelectorAll<HTMLElement>('[data-tnb="tab"]')].map((element) => element.dataset.name)) {
        click(root, `[data-tnb="tab"][data-name="${tab}"]`);
        expect(document.querySelectorAll("img, script, iframe").length, `${name} ${tab}`).toBe(0);
      }
    }
    expect((globalThis as { attacked?: number }).attacked).toBeUndefined();
  });
  test("the hostile fixture is shown literally", () => {
    const root = show(wire("hostile"));
    expect(document.querySelectorAll("img, script").length).toBe(0);
    expect(root.textContent).toContain("</script>");
  });
  test("characters without a shape are shown by their number or picture", () => {
    expect(shown("a\u001b[31mb\u202ec\u0000\u007f\ufeffd\ud800")).toBe("a␛[31mb⟨U+202E⟩c␀␡⟨U+FEFF⟩d⟨U+D800⟩");
    expect(shown("tab\tumlaut ä 𝔸 שלום")).toBe("tab\tumlaut ä 𝔸 שלום");
  });
  test("kernels and stages may have any name", () => {
    const name = 'x"]<b>.constructor';
    const root = show(made([{ name, text: "a" }, { name: "__proto__", text: "b" }], {}, { name: "constructor" }));
    expect(faults(root)).toEqual([]);
    click(root, '[data-tnb="chip"]');
    expect(root.dataset.stage).toBe(name);
  });
});

describe("what cannot be drawn", () => {
  test("another version says so in the view", () => {
    expect(faults(show({ ...made([]), version: 7 }))[0]).toMatch(/version 1 .* version 7/);
  });
  test("a trace that is broken inside says so in the view", () => {
    expect(faults(show({ ...made([{ text: "x", lines: 5 as never }]) })).length).toBe(1);
  });
  test("the next trace is drawn in its place", () => {
    const host = show({}).parentElement!;
    view!.update(made([{ name: "tile", text: "x" }]));
    expect(host.querySelector('[data-tnb="error"]')).toBeNull();
    expect(host.querySelector(".tnb")!.getAttribute("data-stage")).toBe("tile");
  });
});

describe("links", () => {
  const trace = made([{ name: "source", language: "python", text: "" }, { name: "tile", text: "a\nb\nc\nd", lines: [[1, 1, [3]], [2, 2, [4]], [4, 1, [5, 4], ["call"]]] }]);
  test("a pinned line marks its lines in the stage and itself", () => {
    const root = show(trace);
    click(root, '[data-tnb="source"] [data-line="4"]');
    expect([...root.querySelectorAll<HTMLElement>('[data-tnb="code"] [data-pin]')].map((row) => row.dataset.line)).toEqual(["2", "3", "4"]);
    expect(root.querySelector<HTMLElement>('[data-tnb="code"] [data-line="4"]')!.className).toContain("further");
    expect(root.querySelector<HTMLElement>('[data-tnb="source"] [data-line="4"]')!.dataset.pin).toBe("1");
    click(root, '[data-tnb="source"] [data-line="3"]', true);
    expect(root.querySelector<HTMLElement>('[data-tnb="code"] [data-line="1"]')!.dataset.pin).toBe("2");
    expect(root.querySelectorAll('[data-tnb="pin"]').length).toBe(2);
    press(root, "Escape");
    expect(root.querySelectorAll("[data-pin]").length).toBe(0);
  });
  test("a line of the stage pins where it comes from", () => {
    const root = show(trace);
    click(root, '[data-tnb="code"] [data-line="1"]');
    expect(root.querySelector<HTMLElement>('[data-tnb="source"] [data-pin="1"]')!.dataset.line).toBe("3");
  });
  test("hovering lights softly and scrolls nothing", () => {
    const root = show(trace);
    root.querySelector('[data-tnb="code"] [data-line="2"] .line')!.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    expect([...root.querySelectorAll<HTMLElement>("[data-lit]")].map((row) => row.dataset.line)).toEqual(["4", "2", "3", "4"]);
  });
  test("rows that are drawn anew stay in the page, with all of them that is the same", () => {
    const root = show(trace);
    const row = root.querySelector<HTMLElement>('[data-tnb="code"] [data-line="2"]')!;
    const kept = [row, row.querySelector(".number")!, row.querySelector(".origin")!, row.querySelector(".line")!.firstChild!];
    click(root, '[data-tnb="source"] [data-line="4"]');
    expect(row.dataset.pin).toBe("1");
    expect(row.style.getPropertyValue("--pin")).toBe("var(--pin0)");
    press(root, "Escape");
    expect(row.dataset.pin).toBeUndefined();
    for (const part of kept) expect(root.contains(part), part.textContent ?? "").toBe(true);
  });
  test("a row is clicked that was pressed, whatever is under the mouse when the button is let go", () => {
    const root = show(trace);
    const send = (selector: string, kind: string, clientX: number): boolean => root.querySelector(selector)!.dispatchEvent(new MouseEvent(kind, { bubbles: true, detail: 1, clientX }));
    send('[data-tnb="code"] [data-line="1"] .line', "mousedown", 40);
    send('[data-tnb="code"] .window', "click", 41);
    expect([...root.querySelectorAll<HTMLElement>('[data-tnb="pin"]')].map((pin) => pin.dataset.line)).toEqual(["3"]);
    send('[data-tnb="code"] [data-line="2"] .line', "mousedown", 40);
    send('[data-tnb="code"] .window', "click", 90); // the mouse has moved
    expect([...root.querySelectorAll<HTMLElement>('[data-tnb="pin"]')].map((pin) => pin.dataset.line)).toEqual(["3"]);
  });
  test("picks: alone, added, again, a fifth", () => {
    const none = [null, null, null, null];
    expect(picked(none, 7, false)).toEqual([7, null, null, null]);
    expect(picked([7, null, null, null], 8, true)).toEqual([7, 8, null, null]);
    expect(picked([7, null, null, null], 7, false)).toEqual(none);
    expect(picked([7, 8, null, null], 7, true)).toEqual([null, 8, null, null]);
    expect(picked([7, 8, null, null], 8, false)).toEqual([8, null, null, null]);
    expect(picked([1, 2, 3, 4], 5, true)).toEqual([1, 2, 3, 5]);
    expect(pinOf([9, 4, null, null], { lines: [4, 9], kinds: ["call"] })).toEqual({ pin: 1, isFurther: false });
    expect(pinsOf([9, 4, null, null], { lines: [4, 9], kinds: ["call"] })).toEqual([{ pin: 1, isFurther: false }, { pin: 0, isFurther: true }]);
    expect(pinsOf([9, null, null, null], null)).toEqual([]);
  });
  test("a row with two pins shows both numbers and both colours", () => {
    const trace = wire("macro");
    const root = show(trace);
    const rows = trace.cell!.text.split("\n");
    const call = rows.findIndex((row) => row.includes("bounded(x[i]")) + 1;
    const back = rows.findIndex((row) => row.includes("return v * v")) + 1;
    click(root, '[data-tnb="chip"][data-name="tile"]');
    click(root, `[data-tnb="source"] [data-line="${call}"]`);
    click(root, `[data-tnb="source"] [data-line="${back}"]`, true);
    const both = [...root.querySelectorAll<HTMLElement>('[data-tnb="code"] [data-pin-also]')].filter((row) => row.dataset.pin === "1");
    expect(both.length).toBeGreaterThan(0);
    expect(both[0].dataset.pinAlso).toBe("2");
    expect([...both[0].querySelectorAll(".dot")].map((dot) => dot.textContent)).toEqual(["1", "2"]);
    expect([both[0].style.getPropertyValue("--pin"), both[0].style.getPropertyValue("--also")]).toEqual(["var(--pin0)", "var(--pin1)"]);
  });
});

describe("run", () => {
  test("every figure has its origin: that of most rows beside the title, another one at its row", () => {
    const root = show(wire("edges"));
    click(root, '[data-tnb="tab"][data-name="run"]');
    const facts = wire("edges").kernels![0].facts!;
    for (const section of root.querySelectorAll(".report section")) {
      const common = section.querySelector("h4 .tag")?.textContent;
      for (const row of section.querySelectorAll<HTMLElement>('[data-tnb="fact"]')) {
        const fact = facts.find((one) => one.name === row.dataset.name);
        if (fact?.origin) expect(row.querySelector(".tag")?.textContent ?? common, fact.name).toBe(fact.origin);
      }
    }
    expect(root.querySelectorAll("h4 .tag").length).toBeGreaterThan(0);
  });
  test("accesses that were kept from going beyond an edge are told, with their line", () => {
    const root = show(wire("edges"));
    click(root, '[data-tnb="tab"][data-name="run"]');
    const rows = [...root.querySelectorAll<HTMLElement>('[data-tnb="fact"][data-name^="edge of "]')];
    expect(rows.map((row) => row.dataset.name)).toEqual(["edge of X", "edge of Y"]);
    expect(rows[0].textContent).toContain("24 loads beyond its edge gave 0");
    expect(rows[1].textContent).toContain("24 stores beyond its edge");
    expect(rows[0].closest("section")!.querySelector("h4")!.textContent).toBe("Launch");
    rows[0].querySelector<HTMLElement>(".link")!.click();
    const line = wire("edges").cell!.text.split("\n").findIndex((row) => row.includes("T.copy(X[")) + 1;
    expect(root.querySelector<HTMLElement>('[data-tnb="source"] [data-pin="1"]')!.dataset.line).toBe(String(line));
  });
});

describe("decisions", () => {
  test("what was decided at a line stands by itself, how tiles lie in memory behind a fold, where each tile lies once", () => {
    const root = show(wire("roles"));
    click(root, '[data-tnb="tab"][data-name="run"]');
    const title = (row: Element): string => row.closest("section")!.querySelector("h4")!.firstChild!.textContent!;
    const facts = wire("roles").kernels![0].facts!;
    const rows = [...root.querySelectorAll<HTMLElement>('[data-tnb="fact"]')].filter((row) => title(row) !== "Parameters");
    expect(rows.length, "no fact is left out, and none is said twice").toBe(facts.length);
    for (const row of rows) {
      const { name } = row.dataset;
      if (["product", "pipeline", "roles", "results"].includes(name!)) expect([title(row), row.closest("details")]).toEqual(["Decisions", null]);
      if (["swizzle", "tensor map", "descriptor"].includes(name!)) expect(row.closest("details"), name).not.toBeNull();
    }
    const memory = root.querySelector('[data-name="shared memory"]')!;
    expect([title(memory), memory.querySelector(".dim")]).toEqual(["Resources", null]);
    expect(memory.closest("section")!.textContent).toContain("49,152 bytes from 49,152");
  });
});

describe("diff", () => {
  test("two languages are compared only when that is asked for", () => {
    const root = show(wire("stencil"));
    click(root, '[data-tnb="chip"][data-name="cuda"]');
    click(root, '[data-tnb="tab"][data-name="diff"]');
    expect(root.querySelectorAll('[data-tnb="diff"] [data-change="add"]').length).toBe(0);
    click(root, '[data-k="diff-anyway"]');
    expect(root.querySelectorAll('[data-tnb="diff"] [data-change="del"]').length).toBeGreaterThan(0);
    expect(root.dataset.stage).toBe("cuda");
    const other = show(wire("stencil"));
    click(other, '[data-tnb="chip"][data-name="cuda"]');
    click(other, '[data-tnb="tab"][data-name="diff"]');
    click(other, '[data-k="diff-lowered"]');
    expect([other.dataset.stage, other.querySelector<HTMLSelectElement>('[data-tnb="diff-base"]')!.value]).toEqual(["thread", "tile"]);
    expect(other.querySelectorAll('[data-tnb="diff"] :is([data-change="add"], [data-change="del"])').length).toBeGreaterThan(0);
  });
});

describe("timeline", () => {
  test("lowering stages stand as one chip where there is no room for all, a failed one by itself", () => {
    const sizes = { scrollWidth: 900, clientWidth: 500 };
    const before = Object.keys(sizes).map((name) => [name, Object.getOwnPropertyDescriptor(Element.prototype, name) ?? Object.getOwnPropertyDescriptor(HTMLElement.prototype, name)] as const);
    for (const [name, size] of Object.entries(sizes))
      Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: (): number => size });
    try {
      const root = show(wire("matmul"));
      const chips = (): (string | undefined)[] => [...root.querySelectorAll<HTMLElement>(".chip")].map((chip) => chip.dataset.name ?? chip.dataset.group);
      expect(chips()).toEqual(["source", "tile", "lowering", "thread", "tir", "cuda", "ptx", "sass"]);
      press(root.querySelector<HTMLElement>('[data-tnb="source"] .scroller')!, ","); // walks into the folded stages all the same
      expect(root.dataset.stage).toBe("share-subexpressions");
      click(root, '[data-group="lowering"]');
      expect(chips()).toContain("insert-barriers");
      expect(root.querySelector('[data-k="fold-lowering"]')).not.toBeNull();
      view!.destroy();
      const failed = show(wire("refused_by_lowering"));
      expect(failed.querySelector('[data-group="lowering"]')).not.toBeNull();
      expect(failed.querySelector('[data-name="plan-shared-memory"]')!.getAttribute("data-state")).toBe("failed");
    } finally {
      for (const [name, descriptor] of before) Object.defineProperty(HTMLElement.prototype, name, descriptor!);
    }
  });
});

describe("warnings", () => {
  test("the head counts them and leads to them", () => {
    const root = show(made([{ name: "source", language: "python", text: "x" }], { diagnostics: [{ code: "TL213", slug: "a", severity: "warning", message: "slow", span: [1, 0, 1, 1] }] }));
    const said = root.querySelector<HTMLElement>('[data-tnb="verdict"] .state')!;
    expect(said.textContent).toBe("▲ 1 warning");
    said.click();
    expect(root.dataset.view).toBe("problems");
    expect(root.querySelector('[data-tnb="tab"][data-name="problems"] .number')!.classList.contains("warning")).toBe(true);
  });
});

describe("findings", () => {
  test("two accesses at one place have one line under them", () => {
    const root = show(wire("findings"));
    const marks = [...root.querySelectorAll<HTMLElement>('[data-tnb="source"] [data-squiggle]')];
    expect(marks.length).toBeGreaterThan(1);
    expect(marks.filter((mark) => mark.parentElement!.closest("[data-squiggle]"))).toEqual([]);
  });
  test("one of a loop that ran while the kernel was built leads to its turn", () => {
    const root = show(wire("findings"));
    const turns = [...root.querySelectorAll<HTMLElement>('[data-tnb="turn"]')];
    expect(turns.map((turn) => turn.textContent)).toEqual(["d = -1"]);
    turns[0].click();
    expect(root.dataset.view).toBe("unroll");
    expect(root.querySelector<HTMLInputElement>('[data-tnb="knob"]')!.value).toBe("0");
    expect(root.querySelector('[data-tnb="bound"][data-name="d"]')!.getAttribute("title")).toBe("d = -1");
  });
});

describe("unroll", () => {
  test("shows the lines of a turn or the template, and the source line of what is picked", () => {
    const root = show(wire("stencil"));
    click(root, '[data-tnb="tab"][data-name="unroll"]');
    const part = (name: string): HTMLElement => root.querySelector<HTMLElement>(`[data-tnb="part"][data-name="${name}"]`)!;
    const details = root.querySelector(".details")!;
    expect([part("lines"), part("template")].map((one) => one.getAttribute("aria-pressed"))).toEqual(["true", "false"]);
    expect(details.classList.contains("folded")).toBe(false);
    click(root, '[data-tnb="part"][data-name="template"]');
    expect(part("template").getAttribute("aria-pressed")).toBe("true");
    expect(details.classList.contains("folded")).toBe(true);
    const picked = root.querySelector('[data-tnb="node"][aria-selected="true"]')!;
    expect(root.querySelectorAll('[data-tnb="source"] .row.lit').length).toBe(Number(picked.getAttribute("aria-level")));
  });
});

describe("search", () => {
  const listing = new Listing("Alpha\nbeta alpha ALPHA\n\n(x.y)", "tir", {});
  test("counts every occurrence, whatever its case, and takes signs literally", () => {
    expect(new Search("alpha").in(listing)).toEqual({ count: 3, lines: Int32Array.of(1, 2) });
    expect(new Search("(x.y)").in(listing).count).toBe(1);
    expect(new Search("x_y").in(listing).count).toBe(0);
    expect(new Search("").in(listing).count).toBe(0);
  });
  test("the neighbouring hit", () => {
    const lines = Int32Array.of(2, 5, 9);
    expect([0, 2, 5, 9].map((line) => neighbour(lines, line, 1))).toEqual([2, 5, 9, undefined]);
    expect([2, 5, 7, 99].map((line) => neighbour(lines, line, -1))).toEqual([undefined, 2, 5, 9]);
  });
  test("Enter walks on into the next stage that has a hit", () => {
    const root = show(made([{ name: "tile", text: "x\nneedle\nx" }, { name: "mid", text: "x" }, { name: "thread", text: "needle" }], {}, { default: "tile" }));
    const field = root.querySelector<HTMLInputElement>('[data-tnb="search"]')!;
    field.value = "needle";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    expect(root.querySelector('[data-tnb="search-count"]')!.textContent).toBe("1/1 here · 2 in all");
    press(field, "Enter");
    expect(root.dataset.stage).toBe("thread");
    press(field, "Enter", { shiftKey: true });
    expect(root.dataset.stage).toBe("tile");
  });
});

describe("keys", () => {
  test("no key leaves the view, but those with Ctrl, Meta or Alt do", () => {
    const root = show(made([{ name: "tile", text: "x" }]));
    const seen: string[] = [];
    const listener = (event: KeyboardEvent): void => void seen.push(event.key);
    document.addEventListener("keydown", listener);
    for (const key of ["b", "d", "x", "1", "?", "?", "Enter", "Escape"]) press(root, key);
    press(root, "s", { ctrlKey: true });
    press(root, "k", { metaKey: true });
    document.removeEventListener("keydown", listener);
    expect(seen).toEqual(["s", "k"]);
  });
  test("Escape gives the focus back when nothing is left to close", () => {
    let left = 0;
    const root = show(made([{ name: "tile", text: "x" }]), { leave: () => left++ });
    press(root, "?");
    press(root, "Escape");
    expect(left).toBe(0);
    press(root, "Escape");
    expect(left).toBe(1);
  });
});

describe("rows in the page", () => {
  const rows = (count: number) => ({ count, width: 10, look: (row: number) => ({ text: `line ${row}`, language: "tir" as const, gutter: null }) });
  const open = (count: number): CodeView => {
    const code = new CodeView("k", "l", "code", {});
    document.body.replaceChildren(code.element);
    Object.defineProperty(code.scroller, "clientHeight", { value: 360 });
    code.show(rows(count));
    return code;
  };
  const drawn = (code: CodeView): number[] => [...code.element.querySelectorAll<HTMLElement>("[data-row]")].map((row) => Number(row.dataset.row));
  test.each([100, 100_000, 2_000_000])("of %d, only those in sight are in the page, the last one included", (count) => {
    const code = open(count);
    expect(drawn(code)[0]).toBe(0);
    expect(drawn(code).length).toBeLessThan(60);
    code.reveal(count - 1);
    expect(drawn(code)).toContain(count - 1);
    expect(drawn(code).length).toBeLessThan(60);
    code.reveal(Math.floor(count / 2));
    expect(drawn(code)).toContain(Math.floor(count / 2));
    expect(code.isVisible(Math.floor(count / 2))).toBe(true);
    code.close();
  });
  test("the cursor walks by key and stays inside", () => {
    const code = open(50);
    for (const key of ["ArrowUp", "j", "j", "ArrowDown", "k"]) press(code.scroller, key);
    expect(code.cursor).toBe(2);
    press(code.scroller, "End");
    expect(code.cursor).toBe(49);
    press(code.scroller, "PageDown");
    expect(code.cursor).toBe(49);
    expect(drawn(code)).toContain(49);
    code.close();
  });
});

describe("problems", () => {
  test("fixes are copied and inserted as the whole cell", async () => {
    const inserted: string[] = [];
    const root = show(wire("failed"), { insertCell: (text: string) => Promise.resolve(inserted.push(text) > 0) });
    expect(root.dataset.view).toBe("problems");
    click(root, '[data-tnb="insert-patched"]');
    click(root, '[data-tnb="insert-fix"]');
    await Promise.resolve();
    expect(inserted[0]).toBe(wire("failed").patched!.text);
    expect(inserted[1]).toBe(wire("failed").diagnostics![0].fixes![0].patched);
  });
  test("without a notebook there is only Copy", () => {
    const root = show(wire("failed"));
    expect(root.querySelector('[data-tnb="insert-patched"], [data-tnb="insert-fix"]')).toBeNull();
    expect(root.querySelector('[data-tnb="copy-patched"]')).not.toBeNull();
  });
});

describe("a stage that is compiled on demand", () => {
  const stages = [{ name: "tile", text: "x" }, { name: "ptx", language: "ptx" as const, state: "on_demand" as const, landmark: true }];
  test("is asked for once, and shown when its text arrives, with the pins as they were", () => {
    const asked: string[] = [];
    const root = show(made(stages, { ident: "a" }), { requestStage: (kernel: string, stage: string) => asked.push(`${kernel} ${stage}`) });
    click(root, '[data-tnb="source"] [data-line="4"]');
    click(root, '[data-tnb="chip"][data-name="ptx"]');
    click(root, '[data-tnb="chip"][data-name="ptx"]');
    expect(asked).toEqual(["k ptx"]);
    expect(root.querySelector('[data-name="ptx"]')!.textContent).toContain("compiling");
    view!.update(made([stages[0], { ...stages[1], state: "changed", text: "mov" }], { ident: "a" }));
    const after = document.querySelector<HTMLElement>(".tnb")!;
    expect(after.dataset.stage).toBe("ptx");
    expect(after.querySelector('[data-tnb="pin"]')!.getAttribute("data-line")).toBe("4");
  });
  test("a refusal is said and ends the wait", () => {
    const root = show(made(stages), { requestStage: () => undefined });
    click(root, '[data-tnb="chip"][data-name="ptx"]');
    view!.note("NVRTC is not installed");
    expect(root.querySelector('[data-tnb="foot"]')!.textContent).toBe("NVRTC is not installed");
    expect(root.querySelector('[data-name="ptx"]')!.textContent).not.toContain("compiling");
  });
  test("where nobody can be asked, its chip is disabled and says why", () => {
    const chip = show(made(stages)).querySelector('[data-name="ptx"]')!;
    expect(chip.getAttribute("aria-disabled")).toBe("true");
    expect(chip.getAttribute("title")).toMatch(/run the cell in a notebook/);
  });
});

describe("another trace", () => {
  test("of another run keeps the view but not the pins", () => {
    const root = show(made([{ name: "tile", text: "x" }, { name: "thread", text: "y" }], { ident: "a" }));
    click(root, '[data-tnb="source"] [data-line="4"]');
    click(root, '[data-tnb="chip"][data-name="tile"]');
    click(root, '[data-tnb="tab"][data-name="diff"]');
    view!.update(made([{ name: "tile", text: "x" }, { name: "thread", text: "z" }], { ident: "b" }));
    const after = document.querySelector<HTMLElement>(".tnb")!;
    expect([after.dataset.view, after.dataset.stage, after.querySelectorAll('[data-tnb="pin"]').length]).toEqual(["diff", "tile", 0]);
  });
});
