// How much is shown: in simple detail two decimals and the stages from score to output. How a
// number is computed is shown where one asks for it.

import { choiceOf, Drawn, write } from "./elements.js";

const COOKIE = "attention-detail"; // viz/state/session.py reads it
const YEAR = 31536000; // seconds

const MORE = new Set(["query", "key", "value"]);

/** The stages that are offered: in simple detail those of a weight and the output, none left out. A link may lead to
 *  any other. */
export function stagesIn(detail, stages, chosen) {
  const isFirst = ({ name, group }) => !group && !MORE.has(name);
  return detail === "simple" ? stages.filter((stage) => isFirst(stage) || stage.name === chosen) : stages;
}

export class Detail {
  drawn = new Drawn();

  /** `detail`: where it is chosen. `how`: the button that opens how a number is computed. `tell` takes the choice;
   *  `explained` hears that the computation is seen now. */
  constructor(detail, how, root, { tell, explained }) {
    Object.assign(this, { holder: detail, how, root, tell, explained });
    how.hidden = false;
    how.ariaExpanded = String(this.isExplained);
    how.onclick = () => this.explain(!root.classList.contains("explained"));
  }

  /** Shows how the chosen number is computed, or hides it. */
  explain(isOpen) {
    this.root.classList.toggle("explained", isOpen);
    this.how.ariaExpanded = String(isOpen);
    if (isOpen) this.explained();
  }

  /** Whether it is seen how the chosen number is computed. */
  get isExplained() {
    return this.root.classList.contains("explained");
  }

  /** `number`: the one whose computation is offered, as it is written. */
  draw(detail, number) {
    this.root.classList.toggle("simple", detail === "simple");
    write(this.how, `How is ${number} computed?`);
    if (!this.drawn.differs("choice", detail)) return;
    const options = { simple: "Simple", full: "Full" };
    const choice = choiceOf("Detail", { options, chosen: detail, choose: (name) => this.choose(name), name: "detail" });
    this.holder.replaceChildren(choice);
  }

  /** This browser keeps it. */
  choose(detail) {
    document.cookie = `${COOKIE}=${detail}; max-age=${YEAR}; samesite=strict`;
    this.tell(detail);
  }
}
