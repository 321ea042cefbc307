// Explore: a head on a sentence, what comes next, the switches, and all heads.

import { CHOICE, RunPicture } from "./picture.js";
import { outcomeOf } from "./outcome.js";
import { Switches } from "./switches.js";

const NUMBERS = ["head", "query", "key"];

/** A page that shows one of the site's sentences. */
export class SentencePage {
  constructor(page, site) {
    Object.assign(this, { page, site });
    this.part = (name) => page.querySelector(`.${name}`);
    this.select = this.part("sentences");
    this.select.onchange = () => this.open({ sentence: this.select.value });
  }

  /** The stage that opens where a link names none. */
  firstStage() {
    return "weights";
  }

  /** Opens what a link says: a sentence, what is chosen in it, and the switch that is turned. */
  async open(said) {
    this.picture.choose(said.detail);
    const { sentences } = this.site.facts;
    const sentence = sentences.find(({ name }) => name === said.sentence) ?? sentences[0];
    const turned = sentence.switches.find(({ name }) => name === said.change)?.name ?? "";
    this.select.value = sentence.name;
    await this.run(sentence, turned, choiceIn(sentence, said));
  }

  /** Shows a run of a sentence. `choice`: null where it stays. */
  async run(sentence, turned, choice) {
    const asked = (this.asked = {});
    const intervention = sentence.switches.find(({ name }) => name === turned)?.intervention ?? {};
    const notice = this.part("notice");
    try {
      const run = await this.site.runs.messageOf(sentence.text, intervention, sentence.model);
      if (this.asked !== asked) return; // something else was opened meanwhile
      notice.hidden = true;
      Object.assign(this, { sentence, turned });
      this.show(run, choice && choiceOf(run, choice, this.firstStage));
    } catch (error) {
      notice.textContent = error.message;
      notice.hidden = false;
    }
  }

  /** Writes the address. */
  tell(choice) {
    this.site.write(this.page.dataset.page, { sentence: this.sentence.name, change: this.turned, ...choice });
  }
}

/** What a link says of a sentence, and what the sentence begins with. */
function choiceIn(sentence, said) {
  const choice = Object.fromEntries(CHOICE.map((name) => [name, said[name] ?? sentence[name]]));
  for (const name of NUMBERS) choice[name] = Number.parseInt(choice[name], 10) || 0;
  return choice;
}

/** The choice in a run, or the nearest that it has. `first`: the stage where none is named. */
function choiceOf({ layers }, choice, first) {
  const message = layers.find(({ layer }) => layer.name === choice.place) ?? layers[0];
  const { layer, stages } = message;
  const within = (number, count) => Math.min(Math.max(number, 0), count - 1);
  return {
    place: layer.name,
    head: within(choice.head, layer.heads),
    stage: stages.some(({ name }) => name === choice.stage) ? choice.stage : first(stages),
    query: within(choice.query, layer.queries),
    key: within(choice.key, layer.keys),
  };
}

/** The screen of the main job. */
export class Explore extends SentencePage {
  constructor(page, site) {
    super(page, site);
    const parts = { el: this.part("picture"), bar: this.part("heads") };
    this.picture = new RunPicture(parts, (choice) => this.tell(choice));
    this.switches = new Switches(this.part("switches"), (name) => this.run(this.sentence, name, null));
  }

  show(run, choice) {
    this.part("about").textContent = this.sentence.about;
    this.switches.show(this.sentence.switches, this.turned);
    this.shown = run;
    this.picture.show(run, choice);
    this.tell(this.picture.choice);
  }

  /** Writes the address, and what comes of the run with as many decimals as the picture has. */
  tell(choice) {
    const { detail } = this.picture;
    this.part("next").replaceChildren(...outcomeOf(this.shown, detail));
    super.tell({ ...choice, detail: detail === "full" ? detail : "" });
  }
}
