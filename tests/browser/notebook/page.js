// A page without Jupyter: models that stand for those of a notebook's widget manager. What they save is told to
// `window.tell`, where there is a kernel; its answers are taken like messages of a kernel.

const bytes = (text) => new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

class Model {
  listeners = new Map();
  changed = new Set();

  constructor(id, state, models) {
    Object.assign(this, { id, state });
    this.widget_manager = {
      get_model: async (other) => models.get(other) ?? Promise.reject(new Error(`no model ${other}`)),
    };
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    if (this.state[name] === value) return;
    this.state[name] = value;
    this.changed.add(name);
    this.emit(`change:${name}`);
  }

  save_changes() {
    const changes = Object.fromEntries([...this.changed].map((name) => [name, this.state[name]]));
    this.changed.clear();
    if (Object.keys(changes).length) this.tell({ method: "update", state: changes });
  }

  send(content) {
    this.tell({ method: "custom", content });
  }

  async tell(message) {
    window.told.push(message);
    if (window.tell) window.take(await window.tell(this.id, message));
  }

  on(event, take) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), take]);
  }

  off(event, take) {
    this.listeners.set(event, (this.listeners.get(event) ?? []).filter((other) => other !== take));
  }

  emit(event, ...given) {
    for (const take of this.listeners.get(event) ?? []) take(...given);
  }
}

window.told = [];
window.models = new Map();

/** Opens models as a saved notebook or a kernel describes them: { id: { state, buffers } }. */
window.open_models = (described) => {
  for (const [id, { state, buffers }] of Object.entries(described)) {
    for (const [name, text] of Object.entries(buffers)) state[name] = bytes(text);
    window.models.set(id, new Model(id, state, window.models));
  }
};

/** Takes messages of a kernel. */
window.take = (messages) => {
  for (const { id, method, state, buffers, content } of messages) {
    const model = window.models.get(id);
    if (method === "custom") model.emit("msg:custom", content, []);
    if (method !== "update") continue;
    for (const [name, text] of Object.entries(buffers)) state[name] = bytes(text);
    const news = Object.entries(state).filter(([name, value]) => model.state[name] !== value);
    for (const [name, value] of news) model.state[name] = value;
    for (const [name] of news) model.emit(`change:${name}`);
  }
};

/** Shows a model's view in an element, as anywidget does; resolves to how to end it. */
window.show = async (id, el) => {
  const model = window.models.get(id);
  const address = URL.createObjectURL(new Blob([model.get("_esm")], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  return widget.render({ model, el });
};
