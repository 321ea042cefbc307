// What the map of the model is to those who cannot see it: a way through the pages, with the open page marked.
//
// Streamlit's containers and links take no such words.

const NAMES = { "kind-add": "+, add to the residual stream" };

export class ModelMap {
  constructor() {
    this.changed = new MutationObserver(() => this.follow());
  }

  /** Names the map as it is now, and whenever it is drawn anew or another page is opened, which changes the
   *  title. Until there is a map, the whole page is watched. */
  follow() {
    const map = document.querySelector(".st-key-model-map");
    const place = map ?? document.querySelector(".stMain");
    if (place !== this.place) {
      this.changed.disconnect();
      for (const one of [place, document.querySelector("title")]) {
        this.changed.observe(one, { childList: true, subtree: true });
      }
    }
    this.place = place;
    if (map) name(map);
  }

  close() {
    this.changed.disconnect();
  }
}

function name(map) {
  map.setAttribute("role", "navigation");
  map.setAttribute("aria-label", "The parts of the model");
  for (const link of map.querySelectorAll("a")) nameLink(link);
}

function nameLink(link) {
  const kinds = link.closest("[class*=-kind-]").className;
  const [, name] = Object.entries(NAMES).find(([kind]) => kinds.includes(kind)) ?? [];
  if (name) link.setAttribute("aria-label", name);
  if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}
