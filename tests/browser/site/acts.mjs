// What a reader does on a page of the site, in a real browser: node acts.mjs JOB.json. The browser is Chromium, driven
// by its own protocol, or Firefox, driven by WebDriver BiDi; the acts are the same. Prints, as JSON, how many acts were
// seen to work and what went wrong beside them: an error of the page, or a request for anything but the site's own files.

import { readFileSync } from "node:fs";

import puppeteer from "puppeteer-core";

const { browser: name, executable, flags, address, width, height, offline, patience } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const SENTENCE = "the cat saw a dog and the cat";
const HERE = address.slice(0, address.lastIndexOf("/") + 1);

const browser = await puppeteer.launch({ browser: name, executablePath: executable, args: flags, headless: true, defaultViewport: null });
const page = await browser.newPage();
const troubles = [];
page.on("pageerror", (error) => troubles.push(String(error)));
page.on("console", (said) => ["error", "warn"].includes(said.type()) && troubles.push(said.text()));
page.on("request", (asked) => /^(data:|blob:|about:)/.test(asked.url()) || asked.url().startsWith(HERE) || troubles.push(asked.url()));
page.setDefaultTimeout(patience);
await page.setViewport({ width, height }).catch((error) => {
  // Firefox 140 takes the size, and knows no command for the orientation, which goes with it.
  if (!error.message.includes("unknown command")) throw error;
});
if (offline) await page.setOfflineMode(true);
await page.goto(address);

const SHOWN = "main:not([hidden])";

/** Waits for what is visible on the page, or in a shadow root of it. */
const find = (selector) => page.waitForSelector(`${SHOWN} ${selector}, ${SHOWN} >>> ${selector}`, { visible: true });
const GONE = /Node is|no such (node|element)|stale/;

/** Clicks a button. It may be drawn anew between the look and the click. */
function click(testid) {
  return until(async () => {
    const button = await find(`[data-testid="${testid}"]`);
    try {
      await button.click();
      return true;
    } catch (error) {
      if (!GONE.test(error.message)) throw error;
      return false;
    }
  }, testid);
}

/** Waits until the explorer has drawn, and shows these facts. */
function shows(facts) {
  const wanted = Object.entries({ ready: true, ...facts }).map(([fact, value]) => `[data-${fact}="${value}"]`);
  return find(`[data-testid=explorer]${wanted.join("")}`);
}

/** Waits until the page says something. Each look is at what stands there now: letters that come slowly are read, and
 *  drawn, in several steps. */
function says(selector, words) {
  const isSaid = (element, text) => element.textContent.includes(text);
  return until(async () => (await find(selector)).evaluate(isSaid, words), words);
}

/** Waits until the address says something, or no longer says it. */
function addressSays(words, isSaid = true) {
  return until(async () => page.url().includes(words) === isSaid, words);
}

/** Waits for what is to become true. Puppeteer's own way evaluates text, which the page forbids. */
async function until(isTrue, what) {
  const end = Date.now() + patience;
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error(`${what} did not come.`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const acts = {
  async "the recorded sentence stands in the box"() {
    await shows({ head: 7, query: 12, key: 1 });
    const box = await find(".own textarea");
    if ((await box.evaluate(({ value }) => value)) !== "Tom Hill saw a red ball. Anna gave the ball to Tom") throw new Error("The box is empty.");
  },
  async "a sentence is typed"() {
    const box = await find(".own textarea");
    await box.evaluate((input) => input.select());
    await box.type(SENTENCE);
    await says(".about.quiet", "PyTorch");
    await says(".next caption", "·cat");
    await shows({ query: 7 });
  },
  async "a head is chosen"() {
    await click("head-2"); // of the layer that is shown
    await shows({ head: 2 });
  },
  async "a layer is chosen"() {
    await click("decoder.0.self-1");
    await shows({ head: 1 });
    await addressSays("decoder.0.self");
  },
  async "a stage is chosen"() {
    await click("stage-scores");
    await shows({ stage: "scores" });
    await click("stage-weights");
    await shows({ stage: "weights" });
  },
  async "the mask is lifted"() {
    await click("switch-mask");
    await says("[data-testid=headline]", "No mask");
  },
  async "the scaling is left out too"() {
    await click("switch-scale");
    await says("[data-testid=headline]", "Scores not scaled, no mask");
  },
  async "the positions are left out too, and all comes back"() {
    await (await find(".switches summary")).click();
    await click("switch-positions");
    await says("[data-testid=headline]", "positions off");
    await click("undo");
    await addressSays("change=", false);
  },
  async "a cell is chosen"() {
    await shows({ stage: "weights" });
    const before = await (await find("[data-testid=explorer]")).evaluate(({ dataset: { query, key } }) => [query, key]);
    const figure = await find("[data-testid=figure]");
    await figure.focus();
    const [query, key] = before.map(Number);
    await page.keyboard.press(query > 0 ? "ArrowUp" : "ArrowDown");
    await shows({ query: query > 0 ? query - 1 : query + 1, key });
  },
  async "a row is played"() {
    await click("open-play");
    await shows({ stage: "scores" });
    await click("open-play");
    await click("stage-weights");
  },
  async "a sentence is translated, and a head of cross-attention is left out"() {
    const model = await find(".own .models");
    await model.select("translate-en-fr");
    const box = await find(".own textarea");
    await box.evaluate((input) => input.select());
    await box.type("the girl sees a white dog");
    await says(".next caption", "blanc");
    await says(".next th", "<end>");
    await click("stack-2");
    await click("decoder.1.cross-1");
    await shows({ head: 1 });
    await click("switch-decoder.1.cross-1");
    await says("[data-testid=headline]", "Cross L1H1 off");
    await click("undo");
    await model.select("stories");
  },
  async "a text that cannot be read is refused in a sentence"() {
    const box = await find(".own textarea");
    await box.evaluate((input) => input.select());
    await page.keyboard.press("Backspace");
    await says(".notice", "There is no text yet. Type a sentence.");
    await box.type("a ".repeat(200));
    await says(".notice", "reads at most");
  },
};

let done = 0;
let failure = null;
for (const [act, perform] of Object.entries(acts)) {
  try {
    await perform();
    done += 1;
  } catch (error) {
    failure = `${act}: ${error.message}`;
    break;
  }
}
const shown = await page.evaluate(() => [innerWidth, innerHeight]);
const sideways = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
console.log(JSON.stringify({ done, of: Object.keys(acts).length, failure, troubles, shown, sideways }));
await browser.close();
