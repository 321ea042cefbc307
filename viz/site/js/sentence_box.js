// The sentence, as large as a title: one of the site's, or the reader's own in a model that runs here.

const PAUSE = 250; // milliseconds after a letter until the text is read

export class SentenceBox {
  /** `example` takes the name of one of the site's; `own` a text and the model that is to read it. */
  constructor(page, runs, { example, own }) {
    Object.assign(this, { runs, own });
    this.examples = page.querySelector(".sentences");
    this.examples.onchange = () => example(this.examples.value);
    this.form = page.querySelector(".own");
    this.text = this.form.querySelector("textarea");
    this.model = this.form.querySelector(".models");
    this.text.onfocus = () => this.prepare();
    this.text.oninput = () => {
      this.grow();
      this.readSoon();
    };
    this.text.onkeydown = (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.form.requestSubmit();
    };
    this.model.onchange = () => this.read();
    this.form.onsubmit = (event) => {
      event.preventDefault();
      this.read();
    };
    addEventListener("resize", () => this.grow());
  }

  /** Shows a sentence. The list of examples is a way to one, and says no more than that. */
  show({ text, model }) {
    this.stop();
    this.examples.value = "";
    this.text.value = text;
    this.model.value = model;
    this.grow();
  }

  /** All lines of the sentence are seen. */
  grow() {
    const { text } = this;
    if (!text.clientWidth) return; // on a page that is not shown
    text.style.height = "";
    text.style.height = `${text.scrollHeight}px`;
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
    if (this.text.readOnly) return;
    this.model.value = this.reader;
    this.own(this.text.value, this.model.value);
  }

  /** Fetches the model that is to read the text while it is still written. */
  prepare() {
    if (!this.text.readOnly) this.runs.modelOf(this.reader);
  }

  get reader() {
    const { value, options } = this.model;
    return this.runs.runsHere(value) ? value : [...options].find(({ disabled }) => !disabled).value;
  }
}
