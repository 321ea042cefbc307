// The map of the model, whose HTML is drawn anew where another layer is lit or its links carry another view: the open
// page is marked on it, and the keyboard keeps its link.

const MAP = ".st-key-model-map";
const narrow = matchMedia("(max-width: 1150px)"); // where the map may be wider than its place

export class ModelMap {
  constructor(signal) {
    this.changed = new MutationObserver(() => this.follow());
    signal.addEventListener("abort", () => this.changed.disconnect());
    const touched = ({ target }) => {
      this.touched = target.closest?.(`${MAP} a`);
      this.at = [...document.querySelectorAll(`${MAP} a`)].indexOf(this.touched);
    };
    for (const event of ["focusin", "pointerdown"]) document.addEventListener(event, touched, { signal });
    // The address can change after the title and the map: then neither says so.
    globalThis.navigation?.addEventListener("currententrychange", () => this.follow(), { signal });
  }

  /** Marks the map as it is now, and whenever it is drawn anew or another page is opened, which changes the
   *  title. Until there is a map, the whole page is watched. */
  follow() {
    const map = document.querySelector(MAP);
    const place = map ?? document.querySelector(".stMain");
    if (place !== this.place) {
      this.changed.disconnect();
      for (const one of [place, document.querySelector("title")]) {
        this.changed.observe(one, { childList: true, subtree: true });
      }
    }
    this.place = place;
    const links = [...(map?.querySelectorAll("a") ?? [])];
    links.forEach(mark);
    if (links.length) this.reveal(map, links.find((link) => link.ariaCurrent === "page"));
    const isGone = this.touched?.isConnected === false && document.activeElement === document.body;
    if (isGone) links[this.at]?.focus();
  }

  /** Scrolls the map, once for each page, so that the block of the page is seen. */
  reveal(map, here) {
    if (this.page === location.pathname) return;
    this.page = location.pathname;
    if (!narrow.matches) return;
    const middle = (one) => one.getBoundingClientRect().left + one.clientWidth / 2;
    map.scrollLeft = here ? map.scrollLeft + middle(here) - middle(map) : 0;
  }
}

function mark(link) {
  if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}
