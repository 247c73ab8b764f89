// The bundle's entry, and the only file that knows of notebooks. In one, a small loader imports the bundle and calls render() for every
// cell; a plain page calls mount().

import { faultNote } from "./fault";
import type { Inserted } from "./state";
import { mount, type Mounted } from "./view";
import { unpacked } from "./wire";

export { mount };

interface Model {
  get(name: string): unknown;
  on(event: string, listener: (content: unknown) => void): void;
  off(event: string, listener: (content: unknown) => void): void;
  send?(content: object): void;
  readonly widget_manager?: { readonly context?: { readonly model?: NotebookModel } };
}

interface NotebookModel {
  readonly cells: { readonly length: number; get(index: number): { readonly type?: string; toJSON?(): { outputs?: unknown[] } } };
  readonly sharedModel: { insertCell(index: number, cell: object): unknown };
}

interface Context {
  readonly model: Model;
  readonly el: HTMLElement;
  readonly signal?: AbortSignal;
}

/** Shows the model's trace; the last of several quick changes wins. */
async function render({ model, el, signal }: Context): Promise<() => void> {
  let view: Mounted | null = null;
  let serial = 0;
  let closed = false;
  const notebook = model.widget_manager?.context?.model;
  const leave = (): void => el.closest<HTMLElement>(".jp-Cell, .cell")?.focus();
  const show = async (): Promise<void> => {
    const own = ++serial;
    const isStale = (): boolean => closed || own !== serial || signal?.aborted === true;
    try {
      const trace = await unpacked(model.get("trace") as BufferSource);
      if (isStale()) return;
      if (view) view.update(trace);
      else view = mount(el, trace, { leave, ...(notebook ? { insertCell: (text: string) => insertBelow(notebook, model, el, text) } : {}), ...(model.send ? { requestStage } : {}) });
    } catch (fault) {
      if (!isStale()) el.replaceChildren(faultNote(fault));
    }
  };
  const requestStage = (kernel: string, stage: string): void => model.send!({ ask: "stage", kernel, stage });
  const changed = (): void => void show();
  const answered = (content: unknown): void => {
    const failed = (content as { failed?: unknown } | null)?.failed;
    if (typeof failed === "string") view?.note(failed);
  };
  model.on("change:trace", changed);
  model.on("msg:custom", answered);
  await show();
  return () => {
    closed = true;
    model.off("change:trace", changed);
    model.off("msg:custom", answered);
    view?.destroy();
  };
}

/**
 * A new code cell under the one whose output holds this view: the static copy beside it carries the view's mark. Says whether the
 * cell is there, and whether the focus is in it.
 */
async function insertBelow(notebook: NotebookModel, model: Model, el: HTMLElement, text: string): Promise<Inserted> {
  const cell = el.closest<HTMLElement>(INDEXED);
  const index = marked(notebook, `tnb-${String(model.get("ident"))}`) ?? Number(cell?.dataset.windowedListIndex ?? NaN);
  if (!(index >= 0 && index < notebook.cells.length)) return "";
  // asked for now: the view may be taken out of the page while the notebook makes room
  const page = el.closest(".jp-Notebook");
  notebook.sharedModel.insertCell(index + 1, { cell_type: "code", source: text, metadata: {} });
  return page && (await focused(page, index + 1)) ? "selected" : "inserted";
}

const INDEXED = "[data-windowed-list-index]";
const TRIES = 30; // frames of 50 ms; a notebook makes the editor of a cell when it comes into sight

/** Puts the focus into the editor of a cell, which selects the cell. */
async function focused(page: Element, index: number): Promise<boolean> {
  for (let i = 0; i < TRIES; i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const cell = page.querySelector<HTMLElement>(`[data-windowed-list-index="${index}"]`);
    cell?.scrollIntoView({ block: "nearest" });
    const editor = cell?.querySelector<HTMLElement>(".cm-content");
    editor?.focus();
    if (editor?.contains(document.activeElement)) return true;
  }
  return false;
}

/** Number of the cell with an output that carries a mark. */
function marked(notebook: NotebookModel, mark: string): number | null {
  for (let index = 0; index < notebook.cells.length; index++)
    for (const output of notebook.cells.get(index).toJSON?.().outputs ?? []) {
      const html = (output as { data?: Record<string, string | string[]> }).data?.["text/html"];
      if (html && [html].flat().join("").includes(mark)) return index;
    }
  return null;
}

export default { render };
