// The code of every cell's widget: the viewer itself is the text of one shared model, so that a notebook holds it once.
const loaded = (globalThis.__tilelang_nb ??= new Map());

function viewer(ref, host) {
  if (!loaded.has(ref)) {
    const module = host.getModel(ref).then(async (asset) => {
      const url = URL.createObjectURL(new Blob([asset.get("code")], { type: "text/javascript" }));
      try {
        return (await import(url)).default;
      } finally {
        URL.revokeObjectURL(url);
      }
    });
    module.catch(() => loaded.delete(ref));
    loaded.set(ref, module);
  }
  return loaded.get(ref);
}

export default {
  async render({ model, el, host, signal }) {
    // The static copy above the widget is for pages where the widget does not come up.
    const copies = (display) => {
      const name = ".tnb-" + model.get("ident");
      for (const copy of el.closest(".jp-OutputArea")?.querySelectorAll(name) ?? [])
        (copy.closest(".jp-OutputArea-child") ?? copy).style.display = display;
    };
    try {
      const end = await (await viewer(model.get("asset"), host)).render({ model, el, host, signal });
      if (!signal?.aborted) copies("none");
      return () => (copies(""), end?.());
    } catch (error) {
      el.textContent = `The viewer is not in this notebook: run the cell again. (${error})`;
    }
  },
};
