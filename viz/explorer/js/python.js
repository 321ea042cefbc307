// The conversation with Python: what the reader chose, told a moment later; and what Python is asked for, a
// layer, the check of a long run, or the runs to which the switches of the page lead.

export const REPORTED = ["head", "stage", "query", "key"];
export const REPORT_DELAY = 250; // milliseconds

export class Python {
  /** `tell` takes a choice, `open` an opened layer, `check` the run whose check is to be made,
   *  `ahead` the run whose switches lead to others that are to be sent. */
  connect(told) {
    Object.assign(this, { told });
  }

  /** Tells what the reader chose, the last choice only: after a moment, or `atOnce`. */
  report(state, atOnce) {
    const choice = Object.fromEntries([...REPORTED, "revision"].map((name) => [name, state[name]]));
    clearTimeout(this.reporting);
    this.reporting = setTimeout(() => this.told.tell(choice), atOnce ? 0 : REPORT_DELAY);
  }

  /** Tells of an opened layer: after a moment, or `atOnce` where Python must send it. `lost`: whether its
   *  numbers are said to be here and are not. */
  open({ run }, name, atOnce, lost = false) {
    this.opening = { name, run };
    clearTimeout(this.opened);
    this.opened = setTimeout(() => this.told.open({ name, lost }), atOnce ? 0 : REPORT_DELAY);
  }

  /** Whether the reader has opened another layer of this run since Python sent this message. */
  isOvertaken({ run, layer }) {
    const { opening } = this;
    const overtaken = opening?.run === run && opening.name !== layer.name;
    if (!overtaken) this.opening = null;
    return overtaken;
  }

  /** Forgets what was to be told of a layer: Python has opened another one. */
  forget() {
    clearTimeout(this.opened);
    this.opening = null;
  }

  /** Asks once for the check of a run that Python has not checked yet. */
  askForCheck({ run, checked }) {
    if (checked || this.checking === run) return;
    this.checking = run;
    this.told.check(run);
  }

  /** Asks once for the runs to which switches lead from a message, where they are not all known. */
  askAhead({ run, layer, turns }, isKnown) {
    const asked = `${run} ${layer.name}`;
    if (asked === this.askedAhead || Object.values(turns).every(({ run }) => isKnown(run))) return;
    this.askedAhead = asked;
    this.told.ahead(run);
  }

  close() {
    clearTimeout(this.reporting);
    clearTimeout(this.opened);
  }
}
