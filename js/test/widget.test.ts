import { describe, expect, test } from "vitest";
import { deflateSync } from "node:zlib";
import widget from "../src/widget";
import { made, wire } from "./fixtures";

const packed = (data: unknown): Uint8Array => new Uint8Array(deflateSync(Buffer.from(JSON.stringify(data))));

/** A model as a notebook's front end gives it to a view. */
function modelOf(trace: Uint8Array, more: object = {}) {
  const listeners = new Map<string, Set<(content: unknown) => void>>();
  const values: Record<string, unknown> = { trace, ident: "0123456789ab" };
  return {
    sent: [] as unknown[],
    get: (name: string) => values[name],
    set(name: string, value: unknown): void {
      values[name] = value;
      for (const listener of listeners.get(`change:${name}`) ?? []) listener(undefined);
    },
    on: (event: string, listener: (content: unknown) => void) => void listeners.set(event, (listeners.get(event) ?? new Set()).add(listener)),
    off: (event: string, listener: (content: unknown) => void) => void listeners.get(event)?.delete(listener),
    receive: (content: unknown) => listeners.get("msg:custom")?.forEach((listener) => listener(content)),
    send(content: object): void {
      this.sent.push(content);
    },
    listening: () => [...listeners.values()].reduce((sum, some) => sum + some.size, 0),
    ...more,
  };
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) await new Promise((resolve) => setTimeout(resolve, 5));
};
const hosted = (): HTMLElement => {
  const el = document.createElement("div");
  document.body.replaceChildren(el);
  return el;
};
const numbered = (n: number) => made([{ name: `stage-${n}`, text: "x" }]);

describe("a widget of a notebook", () => {
  test("of fifty quick updates the last one is shown", async () => {
    const el = hosted();
    const model = modelOf(packed(numbered(0)));
    const leave = await widget.render({ model, el });
    for (let n = 1; n <= 50; n++) model.set("trace", packed(numbered(n)));
    await settled();
    expect(el.querySelectorAll(".tnb").length).toBe(1);
    expect(el.querySelector<HTMLElement>(".tnb")!.dataset.stage).toBe("stage-50");
    leave();
    expect(el.childNodes.length).toBe(0);
    expect(model.listening()).toBe(0);
  });

  test("a trace that cannot be unpacked is said in its place", async () => {
    const el = hosted();
    const leave = await widget.render({ model: modelOf(Uint8Array.of(1, 2, 3)), el });
    expect(el.querySelector('[data-tnb="error"]')).not.toBeNull();
    leave();
  });

  test("a stage on demand is asked of the kernel process, and a refusal ends the wait", async () => {
    const el = hosted();
    const model = modelOf(packed(made([{ name: "tile", text: "x" }, { name: "ptx", language: "ptx", state: "on_demand" }])));
    const leave = await widget.render({ model, el });
    el.querySelector<HTMLElement>('[data-name="ptx"]')!.click();
    expect(model.sent).toEqual([{ ask: "stage", kernel: "k", stage: "ptx" }]);
    model.receive({ failed: "NVRTC is not installed" });
    expect(el.querySelector('[data-tnb="status"]')!.textContent).toBe("NVRTC is not installed");
    leave();
  });

  test("a patched cell goes below the cell whose output carries the view's mark", async () => {
    const inserted: [number, unknown][] = [];
    const cell = (html: string) => ({ toJSON: () => ({ outputs: [{ data: { "text/html": [`<div class="tnb-${html}">`, "</div>"] } }] }) });
    const cells = [cell("ffffffffffff"), cell("0123456789ab"), cell("aaaaaaaaaaaa")];
    const notebook = { cells: { length: 3, get: (i: number) => cells[i] }, sharedModel: { insertCell: (index: number, made: object) => inserted.push([index, made]) } };
    const el = hosted();
    const model = modelOf(packed(wire("failed")), { widget_manager: { context: { model: notebook } } });
    const leave = await widget.render({ model, el });
    el.querySelector<HTMLElement>('[data-tnb="insert-patched"]')!.click();
    await settled();
    expect(inserted).toEqual([[2, { cell_type: "code", source: wire("failed").patched!.text, metadata: {} }]]);
    expect(el.querySelector('[data-tnb="status"]')!.textContent).toMatch(/is below; .* click it/);
    leave();
  });

  test("the patched cell gets the focus, in the notebook of the view", async () => {
    const cells = [{ toJSON: () => ({ outputs: [{ data: { "text/html": '<div class="tnb-0123456789ab">' } }] }) }];
    const page = (): HTMLElement => document.body.appendChild(Object.assign(document.createElement("div"), { className: "jp-Notebook" }));
    const el = hosted();
    const [other, own] = [page(), page()];
    own.append(el);
    const made = (to: HTMLElement): void => void to.insertAdjacentHTML("beforeend", '<div data-windowed-list-index="1"><div class="cm-content" tabindex="0"></div></div>');
    made(other);
    const notebook = { cells: { length: 1, get: (i: number) => cells[i] }, sharedModel: { insertCell: () => setTimeout(() => made(own), 120) } };
    const leave = await widget.render({ model: modelOf(packed(wire("failed")), { widget_manager: { context: { model: notebook } } }), el });
    el.querySelector<HTMLElement>('[data-tnb="insert-patched"]')!.click();
    await expect.poll(() => document.activeElement === own.querySelector(".cm-content"), { timeout: 5000 }).toBe(true);
    await settled();
    expect(el.querySelector('[data-tnb="status"]')!.textContent).toContain("has the focus");
    leave();
  });

  test("nothing is drawn after the notebook has taken the view away", async () => {
    const el = hosted();
    const control = new AbortController();
    control.abort();
    await widget.render({ model: modelOf(packed(numbered(1))), el, signal: control.signal });
    expect(el.childNodes.length).toBe(0);
  });
});
