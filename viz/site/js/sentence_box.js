// The choice of a sentence: one of the site's, or the reader's own in a model that runs here.

const PAUSE = 250; // milliseconds after a letter until the text is read

export class SentenceBox {
  /** `example` takes the name of one of the site's; `own` a text and the model that is to read it. */
  constructor(page, runs, { example, own }) {
    this.select = page.querySelector(".sentences");
    this.select.onchange = () => example(this.select.value);
    this.form = page.querySelector(".own");
    if (!this.form) return; // no model runs here
    Object.assign(this, { runs, own });
    [this.text, this.model] = this.form.elements;
    this.text.oninput = () => this.readSoon();
    this.model.onchange = () => this.read();
    this.form.onsubmit = (event) => {
      event.preventDefault();
      this.read();
    };
  }

  /** Shows a sentence. */
  show({ name, text, model }) {
    this.select.value = name;
    if (!this.form) return;
    this.stop();
    this.text.value = text;
    this.model.value = model;
  }

  readSoon() {
    this.stop();
    this.waiting = setTimeout(() => this.read(), PAUSE);
  }

  stop() {
    clearTimeout(this.waiting);
  }

  /** Has the text read: by the chosen model, or by the first that runs here. */
  read() {
    this.stop();
    this.select.value = "";
    if (!this.runs.runsHere(this.model.value)) this.model.selectedIndex = this.firstHere;
    this.own(this.text.value, this.model.value);
  }

  get firstHere() {
    return [...this.model.options].findIndex(({ disabled }) => !disabled);
  }
}
