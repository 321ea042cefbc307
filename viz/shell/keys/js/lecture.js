// The lecture view: the picture, its readout and the strip, large enough for a class. lecture.css hides the rest
// of the page; the explorer hides its own and takes the steps of the arrow keys (lecture.js there).

import { drawnLarger } from "../../../explorer/js/elements.js";

const STEPS = {
  ArrowLeft: { stage: -1 },
  ArrowRight: { stage: 1 },
  ArrowUp: { head: -1 },
  ArrowDown: { head: 1 },
  PageUp: { layer: -1 },
  PageDown: { layer: 1 },
};
const CELLS = {
  ArrowLeft: { column: -1 },
  ArrowRight: { column: 1 },
  ArrowUp: { row: -1 },
  ArrowDown: { row: 1 },
};
const PICTURE = ".stMain .js-plotly-plot";
const TITLE = ".st-key-heading h1";
const CONTROLS = ".st-key-page .st-key-controls";
const CHART = ".stMain .stPlotlyChart";
const MEASURED = ".stPlotlyChart, [data-testid=stFullScreenFrame]"; // by Streamlit, for its size
const WORDS = ".stMain [data-testid=stColumn]:last-child [data-testid=stElementContainer]:not(:has(.stPlotlyChart))";
const SIZED = ".stMainBlockContainer, [data-testid=stColumn] > [data-testid=stVerticalBlock]";
const LOWEST = 0.6; // of the window: a chart that begins lower is seen by scrolling to it
const EDGE = 8; // pixels below a picture

/** Streamlit measures a chart's room on the screen, where everything is larger, and draws in pixels of the page. */
function measureCharts() {
  const { prototype } = Element;
  const measure = prototype.getBoundingClientRect;
  if (measure.isOfLecture) return; // the component is mounted anew, its script is not the first
  prototype.getBoundingClientRect = function () {
    const larger = this.matches(MEASURED) ? drawnLarger() : 1;
    if (larger !== 1 && this.matches(CHART)) limit(this, measure.call(this).top);
    const box = measure.call(this);
    return larger === 1 ? box : new DOMRect(box.x, box.y, box.width / larger, box.height / larger);
  };
  prototype.getBoundingClientRect.isOfLecture = true;
}

/** Says in the lecture view how high a chart may be, in pixels of the page, so that it ends on the screen. */
function limit(chart, top) {
  const begins = top + (chart.closest(".stMain")?.scrollTop ?? 0);
  const above = begins < LOWEST * innerHeight ? begins : 0;
  const room = Math.floor((innerHeight - above) / drawnLarger() - EDGE);
  chart.closest("[data-testid=stElementContainer]")?.style.setProperty("--room", `${room}px`);
}

/** The controls stand in the line of the title; each chart that is measured is limited; of the words beside it those
 * that would be cut are left out. */
function limitAll() {
  const { dataset, style } = document.documentElement;
  style.setProperty("--title", `${document.querySelector(TITLE)?.offsetWidth ?? 0}px`);
  if (document.querySelector(CONTROLS)?.offsetParent) dataset.titleBeside = "";
  else delete dataset.titleBeside;
  for (const chart of document.querySelectorAll(CHART)) chart.getBoundingClientRect();
  const words = [...document.querySelectorAll(WORDS)];
  for (const { dataset } of words) delete dataset.outside;
  const down = document.querySelector(".stMain")?.scrollTop ?? 0;
  const outside = words.filter((one) => one.getBoundingClientRect().bottom + down > innerHeight);
  for (const one of outside) {
    const named = one.querySelector(".katex-display") && one.previousElementSibling; // the words over a formula
    for (const left of [one, named]) if (left && words.includes(left)) left.dataset.outside = "";
  }
}

export class Lecture {
  /** `button` opens and closes the view, `leave` is the way back while all else is hidden. */
  constructor(button, leave) {
    measureCharts();
    Object.assign(this, { button, bar: leave });
    button.onclick = () => this.toggle();
    leave.firstElementChild.onclick = () => this.leave();
    this.sizes = new ResizeObserver(limitAll); // what stands above a picture comes and goes
    this.show(); // the view outlives the component, which is mounted anew with new data
  }

  get isOn() {
    return "lecture" in document.documentElement.dataset;
  }

  toggle() {
    if (this.isOn) this.leave();
    else this.enter();
  }

  enter() {
    document.documentElement.dataset.lecture = "";
    this.show();
    this.tell();
  }

  leave() {
    if (!this.isOn) return;
    delete document.documentElement.dataset.lecture;
    this.show();
    this.tell();
  }

  show() {
    this.button.ariaPressed = String(this.isOn);
    this.bar.togglePopover(this.isOn);
    for (const style of document.querySelectorAll("style.lecture")) style.media = this.isOn ? "all" : "not all";
    this.sizes.disconnect();
    if (this.isOn) for (const one of document.querySelectorAll(SIZED)) this.sizes.observe(one);
    else for (const { style } of document.querySelectorAll("[data-testid=stElementContainer]")) style.removeProperty("--room");
  }

  /** Tells the explorer, and pictures that fit the window, to measure it anew. */
  tell() {
    document.dispatchEvent(new CustomEvent("explorer-lecture"));
    requestAnimationFrame(() => dispatchEvent(new Event("resize")));
  }

  /** Takes a key of the lecture view; whether it was one. */
  hear({ key, shiftKey, ctrlKey, metaKey, altKey }) {
    if (!this.isOn || ctrlKey || metaKey || altKey) return false;
    if (key === "Escape") {
      this.leave();
      return true;
    }
    const detail = (shiftKey ? CELLS : STEPS)[key];
    if (!detail) return false;
    const taken = !document.dispatchEvent(new CustomEvent("explorer-step", { detail, cancelable: true }));
    return taken || (!shiftKey && showPicture(detail.stage));
  }
}

/** Brings the next picture of the page into sight, or with -1 the one before; whether there was one. */
function showPicture(step) {
  if (!step) return false;
  const pictures = [...document.querySelectorAll(PICTURE)];
  const isAhead = ({ top }) => step * top > 1;
  const ahead = pictures.filter((picture) => isAhead(picture.getBoundingClientRect()));
  const next = step > 0 ? ahead[0] : ahead.at(-1);
  next?.scrollIntoView({ block: "start" });
  return pictures.length > 0;
}
