// The pages of the site. Each is a <main> of the document: of a folder each file has one, a lesson in one file has all.
// What is chosen stands in the address behind "#", so a link opens the same view.

import { element } from "../../explorer/js/elements.js";
import { Explore } from "./explore.js";
import { drawFormulas } from "./formulas.js";
import { Glossary } from "./glossary.js";
import { Runs } from "./runs.js";
import { Walk } from "./walk.js";

const KINDS = { explore: Explore, walk: Walk, glossary: Glossary };
const CARRIED = new Set(["explore", "walk"]); // pages that show a sentence
const THEME = "attention-site-theme";

class Site {
  opened = new Map(); // by the name of a page

  constructor(facts) {
    this.facts = facts;
    this.runs = new Runs(facts);
    this.pages = [...document.querySelectorAll("main[data-page]")];
    addEventListener("hashchange", () => this.follow());
    document.querySelector(".theme").onclick = () => this.turnTheme();
    this.follow();
  }

  /** Opens what the address says. */
  follow() {
    const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const shown = this.pages.find(({ dataset }) => dataset.page === said.page) ?? this.pages[0];
    for (const page of this.pages) page.hidden = page !== shown;
    const { page: name } = shown.dataset;
    for (const link of document.querySelectorAll("nav a[data-to]")) {
      if (link.dataset.to === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!this.opened.has(name)) {
      const Kind = KINDS[name];
      this.opened.set(name, Kind ? new Kind(shown, this) : null);
      drawFormulas(shown);
    }
    this.opened.get(name)?.open(said);
    const target = said.at && document.getElementById(`${name}-${said.at}`);
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView();
  }

  /** Writes what is chosen on a page into the address, and into the links to the pages that show the same. */
  write(page, choice) {
    const said = Object.entries(choice).filter(([, value]) => value !== "" && value !== undefined);
    const search = (name) => {
      const named = this.pages.length > 1 ? [["page", name]] : [];
      return `#${new URLSearchParams([...named, ...said])}`;
    };
    if (location.hash !== search(page)) history.replaceState(null, "", search(page)); // which takes long
    for (const link of document.querySelectorAll("nav a[data-to]")) {
      if (CARRIED.has(link.dataset.to)) link.hash = search(link.dataset.to);
    }
  }

  /** Light or dark, whatever the computer says; the browser keeps it where it may. */
  turnTheme() {
    const root = document.documentElement;
    const isDark = getComputedStyle(root).colorScheme === "dark" || (!root.dataset.theme && prefersDark());
    root.dataset.theme = isDark ? "light" : "dark";
    sessionStorage.setItem(THEME, root.dataset.theme);
  }
}

function prefersDark() {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The letters of the app follow the first picture; in one file they stand in the page. */
function dressLetters() {
  if (document.querySelector("link[rel=stylesheet]")) document.head.append(element("link", { rel: "stylesheet", href: "fonts.css" }));
}

function start() {
  const theme = sessionStorage.getItem(THEME);
  if (theme) document.documentElement.dataset.theme = theme;
  dressLetters();
  new Site(JSON.parse(document.getElementById("site").textContent));
}

start();
