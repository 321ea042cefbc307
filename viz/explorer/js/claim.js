// What is to be seen in the chosen head, in words. Those that name a cell, a row or a head are links to it.

import { button, Drawn, element } from "./elements.js";

export class Claim {
  drawn = new Drawn();

  /** `follow` takes the words that were clicked: { rings, place, head }. */
  constructor(holder, follow) {
    Object.assign(this, { holder, follow });
  }

  /** Says what there is to say of a head, and nothing where that is nothing. */
  draw(claims, layer, head) {
    const claim = claims.find(({ place, head: one }) => place === layer && one === head);
    this.holder.hidden = !claim;
    if (!this.drawn.differs("claim", JSON.stringify(claim))) return;
    const title = claim && element("strong", {}, claim.title);
    this.holder.replaceChildren(...(claim ? [title, " ", ...claim.words.map((words) => this.part(words))] : []));
  }

  part(words) {
    const { text, rings, place, head } = words;
    if (!rings.length && place === null && head === null) return text;
    return button("claim-link", () => this.follow(words), {}, text);
  }
}
