// The conversation with Python: what the reader chose, told a moment later; and what Python is asked for, a
// layer or the check of a long run.

export const REPORTED = ["head", "stage", "query", "key"];
const REPORT_DELAY = 250; // milliseconds

export class Python {
  waiting = new Map(); // what is told in a moment: its kind -> { tell, timer }

  /** `tell` takes a choice, `open` an opened layer, `check` the run whose check is to be made. */
  connect(told) {
    Object.assign(this, { told });
  }

  /** Tells it after a moment, the last of its kind only. what: "tell" or "open". */
  later(what, value, atOnce) {
    this.forget(what);
    const tell = () => {
      this.waiting.delete(what);
      this.told[what](value);
    };
    this.waiting.set(what, { tell, timer: setTimeout(tell, atOnce ? 0 : REPORT_DELAY) });
  }

  forget(what) {
    clearTimeout(this.waiting.get(what)?.timer);
    this.waiting.delete(what);
  }

  /** Tells now what waits: a click beside the picture may open another page, which takes the choice along. */
  hurry() {
    for (const { tell, timer } of [...this.waiting.values()]) {
      clearTimeout(timer);
      tell();
    }
  }

  /** Tells what the reader chose, the last choice only: after a moment, or `atOnce`. */
  report(state, atOnce) {
    const choice = Object.fromEntries([...REPORTED, "revision"].map((name) => [name, state[name]]));
    this.later("tell", choice, atOnce);
  }

  /** Tells of an opened layer: after a moment, or `atOnce` where Python must send it. `lost`: whether its
   *  numbers are said to be here and are not. */
  open({ run }, name, atOnce, lost = false) {
    this.opening = { name, run };
    this.later("open", { name, lost }, atOnce);
  }

  /** Whether the reader has opened another layer of this run since Python sent this message. */
  isOvertaken({ run, layer }) {
    const { opening } = this;
    const overtaken = opening?.run === run && opening.name !== layer.name;
    if (!overtaken) this.opening = null;
    return overtaken;
  }

  /** Asks once for the check of a run that Python has not checked yet. */
  askForCheck({ run, checked }) {
    if (checked || this.checking === run) return;
    this.checking = run;
    this.told.check(run);
  }

  close() {
    for (const what of [...this.waiting.keys()]) this.forget(what);
  }
}
