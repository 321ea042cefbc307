// Explore: a head on a sentence, what comes next, the switches, and all heads.

import { Drawn } from "../../explorer/js/elements.js";
import { headName } from "../../explorer/js/view.js";
import { headSwitches, together } from "./changes.js";
import { CHOICE, RunPicture } from "./picture.js";
import { outcomeOf } from "./outcome.js";
import { SentenceBox } from "./sentence_box.js";
import { Switches } from "./switches.js";
import { sentencesOf } from "./sentences.js";

const say = sentencesOf("explore");

const NUMBERS = ["head", "query", "key"];
const ABSENT = say("run_not_recorded");
const HEAD = /-\d+$/; // in the name of the switch of one head
const PATIENCE = 300; // milliseconds until the page says that it waits

/** A page that shows a sentence: one of the site's, or the reader's own where a model runs here. */
export class SentencePage {
  turned = []; // switches

  constructor(page, site) {
    Object.assign(this, { page, site });
    this.part = (name) => page.querySelector(`.${name}`);
    const example = (name) => this.open({ sentence: name });
    this.box = new SentenceBox(page, site.runs, { example, own: (text, model) => this.read(text, model) });
  }

  /** The stage that opens where a link names none. */
  firstStage() {
    return "weights";
  }

  /** Opens what a link says: a sentence, what is chosen in it, and the switches that are turned. */
  async open(said) {
    this.picture.choose(said.detail);
    const { sentences } = this.site.facts;
    const known = sentences.find(({ name }) => name === said.sentence) ?? sentences[0];
    const sentence = said.text ? this.own(said.text, said.model) : known;
    this.box.show(sentence);
    const turned = this.switchesIn(sentence, (said.change ?? "").split(","));
    await this.run(sentence, turned, choiceIn(sentence, said));
  }

  /** Reads a sentence that was typed, with the switches that are turned. */
  async read(text, model) {
    const sentence = this.own(text, model);
    const turned = this.switchesIn(sentence, this.turned.map(({ name }) => name));
    const { place, head, stage } = this.picture.choice;
    await this.run(sentence, turned, choiceIn({}, { place, head, stage }));
  }

  /** A sentence of the reader's; the site's own where it is one of them. */
  own(text, model) {
    const { sentences, models } = this.site.facts;
    const known = sentences.find((one) => one.text === text && one.model === model);
    const { about, title, switches = [] } = models[model] ?? {};
    return known ?? { name: "", text, model, about, title, switches };
  }

  /** The switches of a sentence that have these names; in a model that runs here, those of heads too. */
  switchesIn({ model, switches }, names) {
    const heads = this.site.runs.runsHere(model) ? headSwitches(this.site.facts.models[model], names) : [];
    const offered = [...switches, ...heads];
    return names.map((name) => offered.find((one) => one.name === name)).filter(Boolean);
  }

  /** Shows a run of a sentence. `choice`: null where it stays; without a cell the last token's largest weight is
   *  chosen. */
  async run(sentence, turned, choice) {
    const asked = (this.asked = {});
    const { runs } = this.site;
    const { title } = this.site.facts.models[sentence.model] ?? {};
    const late = runs.isToCome(sentence.model) && setTimeout(() => this.say(`Reading ${title} …`), PATIENCE);
    try {
      const run = await runs.messageOf(sentence.text, together(turned), sentence.model);
      if (this.asked !== asked) return; // something else was opened meanwhile
      Object.assign(this, { sentence, turned });
      this.show(run, choice && choiceOf(run, choice, this.firstStage));
      this.say("");
    } catch (error) {
      if (this.asked === asked) this.say(error.message);
    } finally {
      clearTimeout(late);
    }
  }

  async complete({ place, stage }) {
    const { shown, sentence, picture } = this;
    const { layer, stages } = shown.layers.find(({ layer }) => layer.name === place);
    const group = stages.find(({ name }) => name === stage)?.group;
    if (!group || layer.around[group].numbers) return;
    try {
      await this.site.runs.complete(shown, sentence.weights);
      if (this.shown === shown) picture.refresh();
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Says in a line why there is nothing to see yet. */
  say(words) {
    const notice = this.part("notice");
    notice.textContent = words;
    notice.hidden = !words;
  }

  /** Writes the address, and reads what the chosen stage is drawn from where it is not here yet. */
  tell(choice) {
    this.complete(choice);
    const { name, text, model } = this.sentence;
    const sentence = name ? { sentence: name } : { text, model };
    const change = this.turned.map((one) => one.name).join(",");
    this.site.write(this.page.dataset.page, { ...sentence, change, ...choice });
  }
}

/** What a link says of a sentence, and what the sentence begins with; of one that is changed the change says it. */
function choiceIn(sentence, said) {
  const choice = Object.fromEntries(CHOICE.map((name) => [name, said[name] ?? sentence[name]]));
  const isOpen = choice.query === undefined || Boolean(said.change && said.query === undefined);
  for (const name of NUMBERS) choice[name] = Number.parseInt(choice[name], 10) || 0;
  return { ...choice, query: isOpen ? null : choice.query };
}

/** The choice in a run, or the nearest that it has. `first`: the stage where none is named. */
function choiceOf({ layers }, choice, first) {
  const message = layers.find(({ layer }) => layer.name === choice.place) ?? layers[0];
  const { layer, stages } = message;
  const within = (number, count) => Math.min(Math.max(number, 0), count - 1);
  const opens = choice.query === null;
  return {
    ...{ place: layer.name, opens },
    head: within(choice.head, layer.heads),
    stage: stages.some(({ name }) => name === choice.stage) ? choice.stage : first(stages),
    query: opens ? layer.queries - 1 : within(choice.query, layer.queries),
    key: opens ? 0 : within(choice.key, layer.keys),
  };
}

/** The screen of the main job. */
export class Explore extends SentencePage {
  drawn = new Drawn();

  constructor(page, site) {
    super(page, site);
    const parts = { el: this.part("picture"), bar: this.part("heads") };
    this.picture = new RunPicture(parts, (choice) => this.tell(choice));
    const told = { turn: (one) => this.turn(one), expect: (one) => this.expect(one) };
    this.switches = new Switches(this.part("switches"), told);
  }

  /** Turns a switch, or all of them back. */
  turn(one) {
    this.box.show(this.sentence);
    this.run(this.sentence, one ? this.turnedWith(one) : [], null);
  }

  /** Has the run made that a switch would show. */
  expect(one) {
    const { text, model } = this.sentence;
    this.site.runs.expect(text, together(this.turnedWith(one)), model);
  }

  /** What is turned when a switch is. Of a model that does not run here one is turned at a time: those are the runs
   *  that were recorded. */
  turnedWith(one) {
    const others = this.turned.filter(({ name }) => name !== one.name);
    const kept = this.site.runs.runsHere(this.sentence.model) ? others : [];
    const isTurned = others.length < this.turned.length;
    return [...kept, ...(isTurned ? [] : [one])];
  }

  show(run, choice) {
    this.shown = run;
    this.picture.show(run, choice, { jobs: this.site.facts.jobs[this.sentence.model] });
    this.tell(this.picture.choice);
  }

  /** Writes the address, what comes of the run with as many decimals as the picture has, and the switches, one of
   *  them the chosen head's; where its run was not recorded, that one is seen and cannot be turned. */
  tell(choice) {
    const { detail } = this.picture;
    const { model, about, switches } = this.sentence;
    const { where } = this.shown;
    this.part("about").textContent = [about, where && say("pass_ran", { where })].filter(Boolean).join(" ");
    if (this.drawn.differs("next", this.shown, detail)) this.part("next").replaceChildren(...outcomeOf(this.shown, detail));
    const chosen = `${choice.place}-${choice.head}`;
    const { label } = this.shown.layers.find(({ layer }) => layer.name === choice.place).layer;
    const absent = { name: chosen, label: `Use head ${headName(choice.head, label)}`, on: true, missing: ABSENT };
    const [own = absent] = this.switchesIn(this.sentence, [chosen]);
    const isOther = ({ name }) => name !== own.name && HEAD.test(name) && !this.turned.some((one) => one.name === name);
    const listed = [...switches, own, ...this.turned].filter((one) => !isOther(one));
    const offered = new Map(listed.map((one) => [one.name, one]));
    this.switches.show([...offered.values()], chosen, this.turned, this.site.runs.runsHere(model));
    super.tell({ ...choice, detail: detail === "full" ? detail : "" });
  }
}
