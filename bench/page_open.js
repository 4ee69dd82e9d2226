// How soon a page of `kymo report --html` shows its parts, from the start of its navigation, alternating with a page of as
// many bytes of text. bench/page_open runs it.
"use strict";
const fs = require("node:fs");
const { launch } = require(process.env.KYMO_BROWSER);

const [file, inert, rounds, tsvSize, gzipSize] = process.argv.slice(2).map((word) => (/^\d+$/.test(word) ? Number(word) : word));
const NS = 1e6; // nanoseconds in a millisecond
const PAINT = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
// When the page was painted, in milliseconds. The browser reports it only some frames later.
const painted = async (page) => (await page.waitForFunction(PAINT, null, { timeout: 60_000 })).jsonValue();

// Opens it in a new browser with empty caches. `look` returns what was seen there, in milliseconds.
async function opened(path, look) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.addInitScript(() => {
    window.seen = {};
    new MutationObserver(() => {
      const state = document.documentElement && document.documentElement.dataset.state;
      if (state && !window.seen[state]) window.seen[state] = performance.now();
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-state"] });
  });
  await page.goto("file://" + path, { timeout: 120_000 });
  const seen = await look(page);
  await browser.close();
  return seen;
}

async function charts(page) {
  await page.waitForFunction(() => document.documentElement.dataset.state === "whole", null, { timeout: 120_000 });
  const seen = await page.evaluate(() => {
    const charts = document.querySelector("#charts");
    return { ...window.seen, text: charts.innerText, canvases: charts.querySelectorAll("canvas").length };
  });
  if (seen.canvases < 2) throw new Error(`the page draws ${seen.canvases} charts`);
  const missing = ["pages", "bytes", "calls", "resident"].filter((name) => !seen.text.split("\n").includes(name));
  if (missing.length) throw new Error(`the page draws no ${missing.join(" and no ")}: ${seen.text}`);
  return { paint: await painted(page), envelopes: seen.outlines, whole: seen.whole };
}

async function text(page) {
  const whole = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
  return { paint: await painted(page), whole };
}

(async () => {
  const samples = {};
  const keep = (name, value) => (samples[name] = samples[name] || []).push(value);
  for (let round = 0; round < rounds; round++) {
    for (const [name, path, look] of [["page", file, charts], ["inert", inert, text]]) {
      for (const [key, value] of Object.entries(await opened(path, look))) keep(`${name}.${key}`, value * NS);
    }
    keep("page.size", fs.statSync(file).size);
    keep("tsv.size", tsvSize);
    keep("gzip.size", gzipSize);
  }
  console.log(JSON.stringify({ samples }));
})();
