// The bundle's entry, and the only file that knows of notebooks. In one, a small loader imports the bundle and calls render() for every
// cell; a plain page calls mount().

import { unpacked } from "./wire";
import { faultNote, mount, type Mounted } from "./view";

export { mount };

interface Model {
  readonly model_id?: string;
  get(name: string): unknown;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
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

const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";

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
      else view = mount(el, trace, { leave, ...(notebook ? { insertCell: (text: string) => insertBelow(notebook, model, text) } : {}) });
    } catch (fault) {
      if (!isStale()) el.replaceChildren(faultNote(fault));
    }
  };
  const changed = (): void => void show();
  model.on("change:trace", changed);
  await show();
  return () => {
    closed = true;
    model.off("change:trace", changed);
    view?.destroy();
  };
}

/** A new code cell under the one whose output holds this view. */
async function insertBelow(notebook: NotebookModel, model: Model, text: string): Promise<boolean> {
  for (let index = 0; index < notebook.cells.length; index++) {
    const outputs = notebook.cells.get(index).toJSON?.().outputs ?? [];
    const isOwn = outputs.some((output) => {
      const shown = (output as { data?: Record<string, { model_id?: string }> }).data?.[WIDGET_VIEW];
      return shown?.model_id !== undefined && shown.model_id === model.model_id;
    });
    if (!isOwn) continue;
    notebook.sharedModel.insertCell(index + 1, { cell_type: "code", source: text, metadata: {} });
    return true;
  }
  return false;
}

export default { render };
