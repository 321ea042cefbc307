// What the app's own server hands out: Plotly and KaTeX, loaded once a page.

import { element } from "./elements.js";

const LOADED = Symbol.for("attention-explorer.libraries");

/** Resolves to the library, or to null if it cannot be loaded. Never rejects. */
export function once(name, load) {
  const store = (globalThis[LOADED] ??= new Map());
  if (!store.has(name)) store.set(name, load().catch(() => null));
  return store.get(name);
}

/** The app's own address, taken from that of Streamlit's script: a page of the app has a longer one. */
function appAddress() {
  for (const script of document.querySelectorAll("script[src*='static/js/']")) {
    const [base] = script.src.split("static/js/");
    if (new URL(base).origin === location.origin) return base;
  }
  return new URL("./", document.baseURI).href;
}

/** The whole address of a file that the app hands out. */
export function absolute(address) {
  return new URL(address, appAddress()).href;
}

export function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = absolute(address);
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${script.src} cannot be loaded`));
    document.head.append(script);
  });
}

export function loadPlotly(assets) {
  return once("plotly", async () => {
    if (!assets.plotly) return null;
    await loadScript(assets.plotly);
    return globalThis.Plotly ?? null;
  });
}

/** KaTeX, its style sheet added to the document or shadow root of an element; null if it cannot be loaded. Where the
 *  app does not hand it out, `assets.loadKatex` gives it. */
export async function loadKatex(assets, element) {
  const loaded = await once("katex", assets.loadKatex ?? (() => katexAndSheet(assets)));
  const place = element.getRootNode();
  if (loaded && !place.adoptedStyleSheets.includes(loaded.sheet)) {
    place.adoptedStyleSheets = [...place.adoptedStyleSheets, loaded.sheet];
  }
  return loaded?.katex ?? null;
}

async function katexAndSheet(assets) {
  if (!assets.katex || !assets.katexStyle) return null;
  const [answer] = await Promise.all([fetch(absolute(assets.katexStyle)), loadScript(assets.katex)]);
  if (!answer.ok || !globalThis.katex) return null;
  const folder = new URL("./", absolute(assets.katexStyle)).href;
  return styled(globalThis.katex, (await answer.text()).replaceAll("url(fonts", `url(${folder}fonts`));
}

/** KaTeX with its style sheet. Browsers ignore @font-face inside a shadow root, so the document gets these rules. */
export function styled(katex, style) {
  document.head.append(element("style", {}, (style.match(FONT_RULES) ?? []).join("")));
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style.replace(FONT_RULES, ""));
  return { katex, sheet };
}

const FONT_RULES = /@font-face\s*\{[^}]*\}/g;
