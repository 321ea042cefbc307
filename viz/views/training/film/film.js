// A training as a film: one head's map at every checkpoint, and what was measured along the way.
//
// Python sends all checkpoints at once, so slider and play never wait for the server. Read after map.js,
// chart.js and save.js, whose functions it uses: the files are joined into one script.

const PAUSE = 650; // milliseconds between two checkpoints
const films = new WeakMap();
// What the reader chose last, by film: Streamlit may mount a place anew.
const chosen = (globalThis[Symbol.for("training-film-steps")] ??= new Map());

export default function mount({ data, parentElement }) {
  let film = films.get(parentElement);
  if (film?.root !== parentElement.querySelector(".film")) {
    film = new Film(parentElement);
    films.set(parentElement, film);
  }
  film.receive(data);
  return () => film.close();
}

class Film {
  constructor(parent) {
    this.parent = parent;
    this.root = parent.querySelector(".film");
    const part = (name) => this.root.querySelector(`.${name}`);
    this.parts = new Proxy({}, { get: (found, name) => (found[name] ??= part(name)) });
    this.cell = null;
    this.at = 0;
    this.resize = new ResizeObserver(() => this.schedule());
    this.resize.observe(this.parts.picture);
    this.listen();
  }

  listen() {
    const { play, slider, map, numbers, png, csv } = this.parts;
    const named = () => `training-${this.data.title.replace(/\W+/g, "-")}`;
    png.onclick = () =>
      savePicture(`${named()}-step-${this.step}`, this.parts.title.textContent, map, this.palette);
    csv.onclick = () => saveNumbers(named(), this.data);
    slider.oninput = () => {
      this.pause();
      this.show(Number(slider.value));
    };
    play.onclick = () => (this.timer ? this.pause() : this.play());
    numbers.ontoggle = () => this.drawTable();
    map.onpointermove = (event) => this.pick(cellAt(this.layout, event.offsetX, event.offsetY));
    map.onpointerleave = () => this.pick(null);
    map.onkeydown = (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!move) return;
      event.preventDefault();
      const [row, column] = this.cell ?? [0, 0];
      const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
      this.pick([
        within(row + move[0], this.data.queries.length),
        within(column + move[1], this.data.keys.length),
      ]);
      this.parts.unseen.textContent = this.parts.cell.textContent;
    };
  }

  /** New data or a new theme. A film that grows stays at its end while the reader is there. */
  receive(data) {
    const known = this.received;
    const atEnd = !known || this.at === known.steps.length - 1;
    if (data.weights !== known?.weights || data.key !== known?.key) {
      const allowed = decodeCells(data.allowed);
      this.data = {
        ...data,
        maps: decodeWeights(data.weights, allowed),
        cells: { allowed, framed: decodeCells(data.framed) },
      };
      this.cell = null;
    }
    this.received = data;
    Object.assign(this.data, { charts: data.charts, movement: data.movement, measures: data.measures });
    const last = data.steps.length - 1;
    const before = chosen.get(data.key);
    const kept = before === undefined ? -1 : data.steps.indexOf(before);
    this.at = data.key === known?.key && atEnd ? last : kept < 0 ? last : kept;
    this.parts.slider.max = last;
    this.palette = paletteFrom(this.parent.host ?? this.parent, data.theme);
    this.drawLegend();
    this.show(this.at);
  }

  close() {
    this.pause();
    cancelAnimationFrame(this.frame);
    this.resize.disconnect();
    films.delete(this.parent);
  }

  play() {
    if (this.at === this.data.steps.length - 1) this.show(0);
    this.timer = setInterval(() => {
      if (this.at < this.data.steps.length - 1) this.show(this.at + 1);
      if (this.at === this.data.steps.length - 1) this.pause();
    }, PAUSE);
    this.parts.play.textContent = "⏸ Pause";
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.parts.play.textContent = "▶ Play";
  }

  pick(cell) {
    this.cell = cell;
    this.drawMap();
    this.drawCell();
  }

  schedule() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.data && this.draw());
  }

  show(at) {
    this.at = Math.min(Math.max(at, 0), this.data.steps.length - 1);
    chosen.set(this.data.key, this.step);
    this.draw();
    this.parts.unseen.textContent = [this.parts.step.textContent, ...this.measured()].join(", ");
  }

  get step() {
    return this.data.steps[this.at];
  }

  /** (query, key) of the chosen checkpoint. */
  get weights() {
    const size = this.data.queries.length * this.data.keys.length;
    return this.data.maps.subarray(this.at * size, (this.at + 1) * size);
  }

  draw() {
    const { parts, data, root } = this;
    Object.assign(root.dataset, { step: this.step, ready: "true" });
    parts.slider.value = this.at;
    parts.slider.setAttribute("aria-valuetext", `step ${this.step}`);
    parts.step.textContent = `step ${this.step} of ${data.lastStep}`;
    parts.title.textContent = `${data.title} at step ${this.step}`;
    this.drawMap();
    this.drawCell();
    parts.measures.replaceChildren(
      ...data.measures.flatMap(({ name, values }) => [
        html("span", {}, name),
        html("span", { class: "value" }, numeral(values[this.at], 4)),
      ]),
    );
    const choose = (step) => {
      this.pause();
      const gaps = data.steps.map((one) => Math.abs(one - step));
      this.show(gaps.indexOf(Math.min(...gaps)));
    };
    const width = Math.max(parts.curves.clientWidth, 240);
    const now = { width, step: this.step, lastStep: data.lastStep, palette: this.palette, choose };
    this.parts.curves.replaceChildren(...data.charts.map((chart) => chartOf(chart, now)));
    parts.movement.replaceChildren(...movementOf(data.movement, this.at, this.palette));
    this.drawTable();
  }

  drawMap() {
    const { map, picture } = this.parts;
    const available = picture.clientWidth;
    if (available < 60) return; // in a tab that is not open
    const { data, palette, cell, weights } = this;
    this.layout = layoutOf(data, available, map.getContext("2d"), palette.mono);
    drawMap(map, { data, weights, layout: this.layout, palette, cell });
    map.setAttribute("aria-label", `${this.parts.title.textContent}: ${this.measured().join(", ")}`);
  }

  measured() {
    return this.data.measures.map(({ name, values }) => `${name} ${numeral(values[this.at], 4)}`);
  }

  drawCell() {
    const { data, cell } = this;
    if (!cell) {
      this.parts.cell.textContent = "";
      return;
    }
    const [row, column] = cell;
    const at = row * data.keys.length + column;
    const masked = data.cells.allowed !== null && !data.cells.allowed[at];
    const number = masked ? "not allowed" : numeral(this.weights[at], 4);
    this.parts.cell.textContent =
      `${row} ${data.queries[row]} looks at ${column} ${data.keys[column]}: ${number}`;
  }

  drawLegend() {
    const { scale, masked, framed, why } = this.parts;
    scale.style.background = this.palette.gradient;
    masked.hidden = this.data.allowed === null;
    framed.hidden = this.data.framed === null;
    why.textContent = this.data.framedWhy;
  }

  drawTable() {
    const { numbers, scroll } = this.parts;
    if (!numbers.open) return;
    const { data, weights } = this;
    const cell = (name, text, scope) => html(name, scope ? { scope } : {}, text);
    const row = (label, at) =>
      html("tr", {}, cell("th", label, "row"), ...data.keys.map((_, column) => {
        const index = at * data.keys.length + column;
        const masked = data.cells.allowed !== null && !data.cells.allowed[index];
        return cell("td", masked ? "not allowed" : numeral(weights[index], 4));
      }));
    const head = html("tr", {}, cell("th", "query \\ key", "col"), ...data.keys.map((key) => cell("th", key, "col")));
    scroll.replaceChildren(html("table", {}, head, ...data.queries.map(row)));
  }
}

/** The page's colours, and the scale of weights on it, for a light or a dark page. */
function paletteFrom(host, theme) {
  const style = getComputedStyle(host);
  const read = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const background = read("--st-background-color", "#ffffff");
  const channels = (css) => {
    const hex = /^#([0-9a-f]{6})/i.exec(css);
    if (hex) return [0, 2, 4].map((start) => parseInt(hex[1].slice(start, start + 2), 16));
    return (css.match(/[\d.]+/g) ?? [255, 255, 255]).slice(0, 3).map(Number);
  };
  const dark = channels(background).reduce((sum, channel) => sum + channel) < 300;
  const stops = (dark ? theme.dark : theme.light).map(([at, css]) => [at, channels(css || background)]);
  const colourOf = (weight) => {
    const next = Math.max(stops.findIndex(([at]) => at >= weight), 1);
    const [[from, low], [to, high]] = [stops[next - 1], stops[next]];
    const share = (weight - from) / (to - from);
    return `rgb(${low.map((channel, n) => Math.round(channel + (high[n] - channel) * share)).join()})`;
  };
  return {
    dark,
    background,
    colourOf,
    masked: theme.masked,
    text: read("--st-text-color", dark ? "#eeeeee" : "#222222"),
    quiet: dark ? "#b4b4bb" : "#63636b",
    accent: theme.accent,
    mono: read("--st-code-font", "monospace"),
    font: read("--st-font", "sans-serif"),
    gradient: `linear-gradient(to right, ${[0, 0.1, 0.35, 0.7, 1].map(colourOf).join(", ")})`,
  };
}
