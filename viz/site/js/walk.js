// The walk: one sentence from its tokens through the stages of a layer to the next token.

import { element } from "../../explorer/js/elements.js";
import { SentencePage } from "./explore.js";
import { outcomeOf } from "./outcome.js";
import { RunPicture } from "./picture.js";

export class Walk extends SentencePage {
  constructor(page, site) {
    super(page, site);
    this.picture = new RunPicture({ el: this.part("picture") }, (choice) => {
      this.tell(choice);
      this.mark();
    });
    this.steps = this.part("steps");
    this.steps.onchange = () => this.go(this.steps.value);
    this.part("back").onclick = () => this.go(this.steps.options[this.steps.selectedIndex - 1].value);
    this.part("on").onclick = () => this.go(this.steps.options[this.steps.selectedIndex + 1].value);
  }

  firstStage([{ name }]) {
    return name;
  }

  show(run, choice) {
    this.shown = run;
    this.part("tokens").replaceChildren(...listed("", run.tokens), ...listed("Translation", run.targets));
    this.part("next").replaceChildren(...outcomeOf(run, "full"));
    this.picture.show(run, choice, { about: this.sentence.title });
    this.tell(this.picture.choice);
    this.mark();
  }

  go(stage) {
    this.picture.set({ stage });
  }

  /** The step that is shown, among those of its layer. */
  mark() {
    const { place, stage } = this.picture.choice;
    const { stages } = this.shown.layers.find(({ layer }) => layer.name === place);
    const names = stages.map(({ name }) => name);
    const at = Math.max(names.indexOf(stage), 0);
    const named = ({ name, label }, n) =>
      element("option", { value: name }, `Step ${n + 1} of ${stages.length}: ${label}`);
    this.steps.replaceChildren(...stages.map(named));
    this.steps.value = names[at];
    this.part("back").disabled = at === 0;
    this.part("on").disabled = at === stages.length - 1;
  }
}

/** Tokens with their ids. */
function listed(title, tokens) {
  if (!tokens.length) return [];
  const one = ([label, id]) => element("li", {}, element("span", {}, label), element("small", {}, String(id)));
  return [title && element("h3", {}, title), element("ol", {}, ...tokens.map(one))].filter(Boolean);
}
