// What each widget carries itself. The explorer comes once a page: from a model that all widgets of a kernel share
// and that is saved with them, or else from Python.

const KERNEL_ANSWERS = 60_000; // milliseconds; a kernel that computes answers when it is done
const PAGE = Symbol.for("attention-explorer.notebook");

function libraryOf(model) {
  const loaded = (globalThis[PAGE] ??= new Map()); // by version
  const version = model.get("_version");
  if (!loaded.has(version)) {
    const loading = load(model);
    loaded.set(version, loading);
    loading.catch(() => loaded.delete(version));
  }
  return loaded.get(version);
}

async function load(model) {
  const parts = (await fromPage(model)) ?? (await fromPython(model));
  const address = URL.createObjectURL(new Blob([parts.script], { type: "text/javascript" }));
  const { mount } = await import(/* webpackIgnore: true */ address);
  URL.revokeObjectURL(address);
  return { mount, parts };
}

async function fromPage(model) {
  try {
    const shared = await model.widget_manager.get_model(model.get("_library").replace("IPY_MODEL_", ""));
    return shared.get("parts") ?? null;
  } catch {
    return null;
  }
}

function fromPython(model) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(waiting);
      model.off("msg:custom", take);
    };
    const take = ({ kind, parts }) => {
      if (kind !== "library") return;
      end();
      resolve(parts);
    };
    const waiting = setTimeout(() => {
      end();
      reject(new Error("No running kernel has sent the explorer."));
    }, KERNEL_ANSWERS);
    model.on("msg:custom", take);
    model.send({ kind: "library" });
  });
}

/** Hides the still pictures of a widget that lives, wherever they stand. Returns how to show them. */
function hideStills(model) {
  const style = document.createElement("style");
  style.textContent = `[data-attention-still="${model.get("_run")}"] { display: none; }`;
  document.head.append(style);
  return () => style.remove();
}

async function render({ model, el }) {
  try {
    const { mount, parts } = await libraryOf(model);
    const close = mount({ model, el, parts });
    const showStills = hideStills(model);
    return () => {
      close();
      showStills();
    };
  } catch (error) {
    el.textContent = `${error.message} Run the cell again.`;
  }
}

export default { render };
