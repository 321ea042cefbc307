// The map: each head a point, similar heads together.

import { element } from "../../../explorer/js/elements.js";
import { context2d } from "../../../explorer/js/paint.js";

const HEIGHT = 340;
const NARROW_HEIGHT = 280;
const MARGIN = 16; // pixels around the points
const REACH = 14; // pixels within which a click finds a point
const NO_LABEL = 255;

export class HeadMap {
  constructor(number, choose) {
    this.number = number;
    this.title = element("h3", {});
    this.canvas = element("canvas", { tabindex: 0, role: "img", "data-testid": `map-${number}` });
    this.tip = element("p", { class: "tip", hidden: true, "aria-hidden": "true" });
    const plate = element("div", { class: "plate" }, this.canvas, this.tip);
    this.holder = element("figure", { class: "map" }, this.title, plate);
    const under = ({ offsetX, offsetY }) => this.nearest(offsetX, offsetY);
    this.canvas.onclick = (event) => {
      const head = under(event);
      if (head !== null) choose({ profile: number, head });
    };
    this.canvas.onpointermove = (event) => this.point(under(event));
    this.canvas.onpointerleave = () => this.point(null);
    this.canvas.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const count = this.profile.names.length;
      const from = this.scene.at.profile === number ? this.scene.at.head : 0;
      choose({ profile: number, head: (from + step + count) % count });
    };
  }

  /** scene: the page's, with the heads that the table shows. */
  draw(scene) {
    const { message, palette, shown, at, partner } = scene;
    const profile = message.profiles[this.number];
    Object.assign(this, { scene, profile });
    this.title.textContent = `${profile.title}: ${profile.names.length.toLocaleString("en")} heads`;
    const width = this.holder.clientWidth;
    const height = width < 420 ? NARROW_HEIGHT : HEIGHT;
    const [x, y] = this.scales(message.profiles, width, height);
    const context = context2d(this.canvas, width, height);
    const { places, labels } = profile;
    this.points = { x: new Float32Array(labels.length), y: new Float32Array(labels.length) };
    const groups = new Map(); // by colour and strength: one path each
    for (let head = 0; head < labels.length; head++) {
      this.points.x[head] = x(places[2 * head]);
      this.points.y[head] = y(places[2 * head + 1]);
      const name = `${labels[head]} ${shown[this.number][head]}`;
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(head);
    }
    const radius = labels.length > 1500 ? 2.5 : labels.length > 300 ? 3.5 : 5;
    for (const [name, heads] of groups) {
      const [label, isShown] = name.split(" ").map(Number);
      context.fillStyle = label === NO_LABEL ? palette.masked : message.labels[label].colour;
      context.globalAlpha = isShown ? 0.85 : 0.12;
      context.beginPath();
      for (const head of heads) {
        context.moveTo(this.points.x[head] + radius, this.points.y[head]);
        context.arc(this.points.x[head], this.points.y[head], radius, 0, 2 * Math.PI);
      }
      context.fill();
    }
    context.globalAlpha = 1;
    if (at.profile === this.number) {
      this.ring(context, at.head, radius, []);
      this.canvas.dataset.at = `${this.points.x[at.head].toFixed(1)},${this.points.y[at.head].toFixed(1)}`;
    }
    if (partner?.profile === this.number) this.ring(context, partner.head, radius, [3, 3]);
    const chosen = at.profile === this.number ? `${profile.names[at.head]} is chosen` : "none is chosen here";
    this.canvas.setAttribute(
      "aria-label",
      `Map of ${labels.length} heads, similar ones together; ${chosen}. The arrow keys go from head to head.`,
    );
  }

  /** The same plane for all profiles. */
  scales(profiles, width, height) {
    const scale = (axis, from, to) => {
      let [least, most] = [Infinity, -Infinity];
      for (const { places } of profiles) {
        for (let n = axis; n < places.length; n += 2) {
          least = Math.min(least, places[n]);
          most = Math.max(most, places[n]);
        }
      }
      const range = most - least || 1;
      return (value) => from + ((value - least) / range) * (to - from);
    };
    return [scale(0, MARGIN, width - MARGIN), scale(1, height - MARGIN, MARGIN)];
  }

  ring(context, head, radius, dashes) {
    context.strokeStyle = this.scene.palette.text;
    context.lineWidth = 2;
    context.setLineDash(dashes);
    context.beginPath();
    context.arc(this.points.x[head], this.points.y[head], radius + 4, 0, 2 * Math.PI);
    context.stroke();
    context.setLineDash([]);
  }

  /** The shown head nearest to a place on the canvas; null where none is near. */
  nearest(x, y) {
    let [found, least] = [null, REACH ** 2];
    for (let head = 0; head < this.points.x.length; head++) {
      if (!this.scene.shown[this.number][head]) continue;
      const away = (this.points.x[head] - x) ** 2 + (this.points.y[head] - y) ** 2;
      if (away <= least) [found, least] = [head, away];
    }
    return found;
  }

  /** Names the head under the pointer. */
  point(head) {
    this.canvas.style.cursor = head === null ? "" : "pointer";
    this.tip.hidden = head === null;
    if (head === null) return;
    const label = this.profile.labels[head];
    const said = label === NO_LABEL ? "" : ` · ${this.scene.message.labels[label].name}`;
    this.tip.textContent = this.profile.names[head] + said;
    const [left, room] = [this.points.x[head] + 10, this.canvas.clientWidth];
    this.tip.style.left = `${Math.min(left, room - this.tip.offsetWidth)}px`;
    this.tip.style.top = `${Math.max(this.points.y[head] - 28, 0)}px`;
  }
}
