// How soon a page of `kymo report --html` shows what, in milliseconds from the start of its navigation: run by
// bench/page_open.
"use strict";
const { launch } = require(process.env.KYMO_BROWSER);

(async () => {
  const [file, rounds] = [process.argv[2], Number(process.argv[3])];
  for (let round = 0; round < rounds; round++) {
    const browser = await launch();
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    await page.addInitScript(() => {
      window.seen = {};
      new MutationObserver(() => {
        const state = document.documentElement && document.documentElement.dataset.state;
        if (state && !window.seen[state]) window.seen[state] = performance.now();
      }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-state"] });
    });
    await page.goto("file://" + file, { timeout: 120_000 });
    await page.waitForFunction(() => document.documentElement.dataset.state === "whole", null, { timeout: 120_000 });
    const seen = await page.evaluate(() => ({ ...window.seen,
      paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
      charts: document.querySelectorAll("#charts canvas").length }));
    console.log(`first paint ${Math.round(seen.paint)}  envelopes ${Math.round(seen.outlines)}  ` +
      `every sample ${Math.round(seen.whole)}  (${seen.charts} charts)`);
    await browser.close();
  }
})();
