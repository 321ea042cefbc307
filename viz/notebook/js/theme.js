// The notebook's colours, under the names that the explorer's style sheets know.

import { luminance } from "../../explorer/js/colours.js";

const LIGHT = { background: [255, 255, 255], text: [38, 39, 48] };
const DARK = { background: [18, 18, 21], text: [236, 236, 241] };
const LEAST_CONTRAST = 4.5; // of letters (WCAG 2)
const CODE_FONTS = ["--st-code-font", "--jp-code-font-family", "--vscode-editor-font-family", "--monospace-font"];
const BACKGROUNDS = ["--vscode-editor-background", "--jp-layout-color0"];

const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

/** [red, green, blue, opacity] of any CSS colour; null for what is none. */
function channels(colour) {
  if (!CSS.supports("color", colour)) return null;
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data];
}

const css = ([red, green, blue]) => `rgb(${red}, ${green}, ${blue})`;

function contrast(one, other) {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** The first background below an element that hides what is behind it. */
function backgroundBehind(element) {
  for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
    const found = channels(getComputedStyle(at).backgroundColor);
    if (found?.[3] === 255) return found;
  }
  const style = getComputedStyle(element);
  return BACKGROUNDS.map((name) => channels(style.getPropertyValue(name).trim())).find(Boolean) ?? null;
}

export class Theme {
  /** `changed` is called when the host is attached, and when the notebook has changed its colours. JupyterLab
   *  attaches an output after it is made, and a detached element has neither colours nor a size. */
  constructor(host, changed) {
    this.host = host;
    const later = () => {
      cancelAnimationFrame(this.frame);
      if (!host.isConnected) this.worn = null;
      this.frame = requestAnimationFrame(() => {
        if (!host.isConnected) this.box.observe(host); // anew: it tells of the next attachment, of whatever size
        else if (this.isOld()) changed();
      });
    };
    this.box = new ResizeObserver(later);
    this.box.observe(host);
    this.until = new AbortController();
    this.observer = new MutationObserver(later);
    this.observer.observe(document.documentElement, { attributes: true });
    this.observer.observe(document.body, { attributes: true });
    this.observer.observe(document.head, { childList: true });
    const { signal } = this.until;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later, { signal });
    // A theme's style sheet may arrive after the page has said its name.
    document.head.addEventListener("load", later, { capture: true, signal });
  }

  /** Background and letters, as the notebook has them where they can be read. */
  colours() {
    const letters = channels(getComputedStyle(this.host.parentElement ?? this.host).color);
    const behind = backgroundBehind(this.host);
    const background = behind ?? (luminance(letters) > 0.4 ? DARK : LIGHT).background;
    const isDark = luminance(background) < 0.4;
    const isLegible = contrast(letters, background) >= LEAST_CONTRAST;
    return { background, text: isLegible ? letters : (isDark ? DARK : LIGHT).text, isDark };
  }

  isOld() {
    return JSON.stringify(this.colours()) !== this.worn;
  }

  /** Gives the host, and what stands beside it, the colours. `quantities`: those of the pictures. */
  dress({ quantities }, beside = []) {
    const colours = this.colours();
    this.worn = JSON.stringify(colours);
    const style = getComputedStyle(document.documentElement);
    const code = CODE_FONTS.map((name) => style.getPropertyValue(name).trim()).find(Boolean);
    const [text, background] = [css(colours.text), css(colours.background)];
    const mixed = (share) => `color-mix(in srgb, ${text} ${share}%, ${background})`;
    const named = {
      "text-color": text,
      "background-color": background,
      "secondary-background-color": mixed(5),
      "border-color": mixed(16),
      "primary-color":
        style.getPropertyValue("--st-primary-color").trim() || quantities.weight.ink[colours.isDark ? 1 : 0],
      "code-font": code ? `${code}, monospace` : "ui-monospace, Menlo, Consolas, monospace",
      font: style.getPropertyValue("--st-font").trim() || "system-ui, sans-serif",
    };
    for (const { style } of [this.host, ...beside]) {
      for (const [name, value] of Object.entries(named)) style.setProperty(`--st-${name}`, value);
      style.colorScheme = colours.isDark ? "dark" : "light";
    }
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.box.disconnect();
    this.observer.disconnect();
    this.until.abort();
  }
}
