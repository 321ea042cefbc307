// The glossary: words typed into its box leave the terms that hold all of them.

export class Glossary {
  constructor(page) {
    this.terms = [...page.querySelectorAll(".term")];
    this.box = page.querySelector("input");
    this.none = page.querySelector(".none");
    this.box.oninput = () => this.show();
  }

  open({ words = "" }) {
    if (words) this.box.value = words;
    this.show();
  }

  show() {
    const words = this.box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const term of this.terms) {
      const text = term.textContent.toLowerCase();
      term.hidden = !words.every((word) => text.includes(word));
    }
    this.none.hidden = this.terms.some((term) => !term.hidden);
  }
}
