// The conversation with Python: what the reader chose, told a moment later; and the layers that the reader
// opens, fetched from the run's address.

import { fetchLayer } from "./libraries.js";

export const REPORTED = ["head", "stage", "query", "key"];
const REPORT_DELAY = 250; // milliseconds
// What the reader chose last, by mount. Streamlit may mount a place anew, with this script run anew.
const choices = (globalThis[Symbol.for("attention-explorer-choices")] ??= new Map());

export class Python {
  constructor(root) {
    this.root = root;
  }

  /** `tell` takes a choice; `ask` takes the name of an opened layer, and the parts of it that are here. */
  connect(tell, ask) {
    Object.assign(this, { tell, ask });
  }

  /** What the reader chose under the revision of a message, which Python may not have heard of; else nothing. */
  lastChoice({ mount, revision }) {
    const { revision: under, ...chosen } = choices.get(mount) ?? {};
    return under === revision ? chosen : null;
  }

  /** Tells what the reader chose, the last choice only: after a moment, or `atOnce`. */
  report(state, { mount, revision }, atOnce) {
    const chosen = Object.fromEntries(REPORTED.map((name) => [name, state[name]]));
    const choice = { ...chosen, revision };
    choices.set(mount, choice);
    clearTimeout(this.reporting);
    this.reporting = setTimeout(() => this.tell(choice), atOnce ? 0 : REPORT_DELAY);
  }

  /** Has a layer shown that stands at the address of a message, and tells of it afterwards; where nothing
   *  is there, asks for it. */
  async open(message, name, { head, stage }, show) {
    const { address, layers } = message;
    this.opening = { name, address };
    clearTimeout(this.telling);
    const found = await fetchLayer(address, { layer: name, head, stage });
    if (this.opening?.name !== name || !this.root.isConnected) return; // another one was chosen meanwhile
    if (!found) {
      this.opening = null;
      this.ask(name, []);
      return;
    }
    show({ ...message, ...found, layers });
    const parts = [found.layer, found.baseline].filter(Boolean).map(({ part }) => part);
    this.opening = { name, address };
    this.telling = setTimeout(() => this.ask(name, parts), REPORT_DELAY);
  }

  /** Whether the reader has opened another layer of this run since Python sent this message. */
  isOvertaken({ address, layer }) {
    const { opening } = this;
    const overtaken = opening?.address === address && opening.name !== layer.name;
    if (!overtaken) this.opening = null;
    return overtaken;
  }

  close() {
    clearTimeout(this.reporting);
    clearTimeout(this.telling);
  }
}
