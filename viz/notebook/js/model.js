// A widget's state where there is no kernel: in a saved notebook, and on a page of the site (viz/site).

/** What a widget's program sees of its state. Nobody hears what it tells Python. */
export class Model extends EventTarget {
  #listeners = new Map();

  constructor(state, widget_manager = null) {
    super();
    Object.assign(this, { state, widget_manager });
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    if (this.state[name] === value) return;
    this.state[name] = value;
    this.dispatchEvent(new Event(`change:${name}`));
    this.dispatchEvent(new Event("change"));
  }

  on(event, listener) {
    const heard = () => listener();
    this.#listeners.set(listener, heard);
    this.addEventListener(event, heard);
  }

  off(event, listener) {
    this.removeEventListener(event, this.#listeners.get(listener));
  }

  save_changes() {}

  send() {}
}
