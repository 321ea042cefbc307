// Links within the app: the menu, the map of the model, the way on at the foot, and those of single pages.

const MAP = ".st-key-model-map";
const DRAWN_ANEW = [MAP, ".st-key-path"]; // with other links, while the keyboard may be on one of them
const PHONE = 640; // pixels of a window that has no room for menu and page
const MARKED = `.menu a, ${MAP} a`;
const FRAMED = ["embed", "embed_options"]; // parameters of an app in a frame of another page
const [FOLLOWED, CARRIED] = ["followed=1", "carried=1"]; // for the server alone: viz/state/way_back.py
const MARK = new RegExp(`[?&](${FOLLOWED}|${CARRIED})$`);
const SETTLED = 300; // milliseconds until a page has come, as a rule: to write the address takes time from it
const narrow = matchMedia("(max-width: 1150px)"); // where the map may be wider than its place

export class Links {
  constructor(signal) {
    this.watching = new MutationObserver(() => this.update());
    signal.addEventListener("abort", () => this.watching.disconnect());
    for (const event of ["focusin", "pointerdown"]) {
      document.addEventListener(event, ({ target }) => this.touch(target), { signal });
    }
    for (const event of ["pointerdown", "click", "contextmenu", "dragstart"]) {
      document.addEventListener(event, (event) => this.leadOut(event), { capture: true, signal });
    }
    document.addEventListener("pointerdown", (event) => this.press(event), { signal });
    document.addEventListener("click", (event) => this.follow(event), { signal });
    // The address can change after the title and the map: then neither says so.
    globalThis.navigation?.addEventListener("currententrychange", () => this.updateOnce(), { signal });
    addEventListener("popstate", () => this.updateOnce(), { signal });
  }

  /** view: the names of the parameters that say a view. */
  take(view) {
    this.view = view;
    this.update();
  }

  /** Opens an address of the app without loading it anew: by itself a link would open a new session. One that says no
   *  view of its own keeps the present one. Streamlit hears of it as of Back and Forward, so that the page and its
   *  parameters are one entry of the history. */
  go(address) {
    unmark();
    const to = new URL(address, location.href);
    const isHere = to.href === location.href || (to.pathname === location.pathname && !to.search);
    const mark = to.search ? FOLLOWED : CARRIED;
    to.search ||= this.carried();
    for (const [name, value] of new URLSearchParams(location.search)) {
      if (FRAMED.includes(name)) to.searchParams.append(name, value);
    }
    to.search += `${to.search ? "&" : "?"}${mark}`;
    if (isHere) history.replaceState({}, "", to);
    else history.pushState({}, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }

  /** What the address says of the view. */
  carried() {
    return said((name) => this.view.includes(name));
  }

  /** Marks the links to the open page and fills the blocks that it shows: now, whenever another page is opened, which
   *  changes the title, and where links are drawn anew. Until there is a map, the whole page is watched. */
  update() {
    const [map, path] = DRAWN_ANEW.map((place) => document.querySelector(place));
    this.watch([map ?? document.querySelector(".stMain"), path, document.querySelector("title")]);
    document.querySelectorAll(MARKED).forEach(mark);
    beginAtTheTop();
    if (map?.querySelector("a")) this.reveal(map);
    this.returnTheKeyboard();
    clearTimeout(this.settling);
    this.settling = setTimeout(unmark, SETTLED);
  }

  /** Within the next frame: the address may change more than once before it. */
  updateOnce() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.update());
  }

  watch(places) {
    if (places.every((place, n) => place === this.places?.[n])) return;
    this.watching.disconnect();
    for (const place of places.filter(Boolean)) this.watching.observe(place, { childList: true, subtree: true });
    this.places = places;
  }

  /** Scrolls the map, once for each page, so that the block of the page is seen. */
  reveal(map) {
    if (this.page === location.pathname) return;
    this.page = location.pathname;
    if (!narrow.matches) return;
    const here = map.querySelector("[aria-current]");
    const middle = (one) => one.getBoundingClientRect().left + one.clientWidth / 2;
    map.scrollLeft = here ? map.scrollLeft + middle(here) - middle(map) : 0;
  }

  touch(target) {
    this.place = DRAWN_ANEW.find((place) => target.closest?.(`${place} a`));
    this.touched = this.place && target.closest("a");
    this.at = this.linksAt(this.place).indexOf(this.touched);
  }

  returnTheKeyboard() {
    const isGone = this.touched?.isConnected === false && document.activeElement === document.body;
    if (isGone) this.linksAt(this.place)[this.at]?.focus();
  }

  linksAt(place) {
    return place ? [...document.querySelectorAll(`${place} a`)] : [];
  }

  /** A link that says no view of its own opens in a new tab on the present one: its address says so only where it may
   *  be opened there, because the browser shows it meanwhile, which takes time from a page that is opened here. The
   *  link out of a frame opens in the whole app what the frame shows now. */
  leadOut(event) {
    const link = linkOf(event, "a[data-page], .st-key-whole-app a");
    if (!link) return;
    if (!link.matches("[data-page]")) {
      link.href = `${location.pathname}?${said((name) => !FRAMED.includes(name))}`;
    } else if (!staysHere(event) && ("own" in link.dataset || saysNoView(link))) {
      link.dataset.own ??= link.search;
      link.search = new URLSearchParams({ ...parameters(this.carried()), ...parameters(link.dataset.own) });
    }
  }

  /** A mouse opens a page of the menu or the map as it is pressed, like a tab of a window: a hand holds it for 0.1 s.
   *  What was typed is taken over first. */
  press(event) {
    const isWriting = document.activeElement.matches("input, textarea");
    const opens = event.pointerType === "mouse" && staysHere(event) && !isWriting;
    const link = opens ? linkOf(event, "a[data-page]") : null;
    this.pressed = link?.matches(MARKED) ? link : null;
    if (this.pressed) this.open(link);
  }

  follow(event) {
    const link = linkOf(event, "a[data-page]");
    if (!link || !staysHere(event)) return;
    event.preventDefault();
    const isOpen = event.detail > 0 && link === this.pressed; // 0: the keyboard
    if (!isOpen) this.open(link);
  }

  open(link) {
    this.go("own" in link.dataset ? link.pathname + link.dataset.own : link.href);
    if (innerWidth <= PHONE && link.closest("[data-testid=stSidebar]")) {
      document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click(); // the menu lies over the page
    }
  }
}

/** Another page begins at its top, however far the one before was scrolled: what is still seen of that one keeps its
 *  height otherwise. An address that names a place on the page leads there. */
function beginAtTheTop() {
  const { dataset } = document.documentElement; // outlives the component, which is mounted anew
  const [before, main] = [dataset.page, document.querySelector(".stMain")];
  dataset.page = location.pathname;
  if (main && before && before !== location.pathname && !location.hash) main.scrollTop = 0;
}

/** The link of such a kind that something is done to, also within a component. */
function linkOf(event, kind) {
  return event.composedPath()[0].closest?.(kind);
}

/** Whether a link says at most which part of its page is shown. */
function saysNoView(link) {
  return Object.keys(parameters(link.search)).every((name) => ["show", "stage"].includes(name));
}

function parameters(search) {
  return Object.fromEntries(new URLSearchParams(search));
}

/** What the address says of the parameters whose names are wanted. */
function said(isWanted) {
  return new URLSearchParams([...new URLSearchParams(location.search)].filter(([name]) => isWanted(name))).toString();
}

/** Whether what is done to a link opens it in this tab. */
function staysHere({ type, button, ctrlKey, metaKey, shiftKey, altKey }) {
  return !["contextmenu", "dragstart"].includes(type) && !(button || ctrlKey || metaKey || shiftKey || altKey);
}

/** Takes the mark from the address, where the page has not written its own in its place. */
function unmark() {
  const { pathname, search } = location;
  if (MARK.test(search)) history.replaceState({}, "", pathname + search.replace(MARK, ""));
}

function mark(link) {
  const here = location.pathname;
  const isShown = Boolean(link.dataset.shownOn?.split(" ").includes(here));
  const isPlace = isShown && link.closest(".menu") !== null;
  if (link.pathname === here) link.setAttribute("aria-current", "page");
  else if (isPlace) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
  link.toggleAttribute("data-filled", isShown);
}
