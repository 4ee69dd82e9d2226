// The page of a running kymod in Chromium: run by bench/live_page.
"use strict";
const http = require("node:http");
const path = require("node:path");
const { launch } = require(path.join(process.env.KYMO_WEB, "browser.js"));
const { Kymod } = require(path.join(process.env.KYMO_WEB, "kymod.js"));

const rounds = Number(process.argv[2]);
const NS = 1e6; // of a millisecond
const VIEWPORT = { width: 1280, height: 900 };

// In a browser of its own, as the first page of it.
async function firstPaint(url, ready) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: VIEWPORT });
  await page.goto(url);
  await page.waitForFunction(ready, null, { timeout: 20_000 });
  // The browser tells it some frames later.
  const painted = await (await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime)).jsonValue();
  await browser.close();
  return painted * NS;
}

// In the page: a chart of 100,000 points is drawn anew, and a canvas of its size has 2 lines through as many points, by turns.
// Medians of 20 in milliseconds, and whether the chart showed them.
async function redrawn() {
  const { state, board } = kymoPage;
  const columns = state.shown.length;
  const time = Array.from({ length: 100_000 }, (_, i) => state.now - 1e11 + i * 1e6);
  const part = time.map((_, i) => (i % 977) * 1000);
  const store = new state.store.constructor(columns);
  store.append({ time, columns: Array.from({ length: columns }, () => ({ last: part, low: part, high: part })) });
  state.store = store;
  state.follow = false;
  board.view.from = time[0];
  board.view.to = time.at(-1);
  const chart = board.charts[0];
  const own = chart.plot.ctx.canvas;
  const canvas = Object.assign(document.createElement("canvas"), { width: own.width, height: own.height });
  document.body.append(canvas);
  const context = canvas.getContext("2d");
  const lines = () => {
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (const lift of [0, 20]) {
      context.beginPath();
      for (let i = 0; i < time.length; ++i) context.lineTo((i / time.length) * canvas.width, lift + (part[i] / 976_000) * canvas.height);
      context.stroke();
    }
  };
  const timed = async (draw) => {
    const began = performance.now();
    draw();
    const took = performance.now() - began;
    await new Promise(requestAnimationFrame);
    return took;
  };
  const times = { live: [], canvas: [] };
  for (let i = 0; i < 20; ++i) {
    times.live.push(await timed(() => chart.draw()));
    times.canvas.push(await timed(lines));
  }
  const median = (all) => all.sort((a, b) => a - b)[10];
  canvas.remove();
  return { live: median(times.live), canvas: median(times.canvas), points: chart.plot.data[0].length };
}

(async () => {
  const samples = { "live.paint": [], "empty.paint": [], "live.redraw": [], "canvas.redraw": [] };
  const empty = http.createServer((_, reply) => reply.end("<!doctype html><title>empty</title><p>a word"));
  await new Promise((resolve) => empty.listen(0, "127.0.0.1", resolve));
  const kymod = new Kymod();
  await kymod.start();
  try {
    for (let round = 0; round < rounds; ++round) {
      samples["live.paint"].push(await firstPaint(kymod.url, () => document.documentElement.dataset.state === "live"));
      samples["empty.paint"].push(await firstPaint(`http://127.0.0.1:${empty.address().port}/`, () => true));
    }
    const browser = await launch();
    const page = await browser.newPage({ viewport: VIEWPORT });
    await page.goto(kymod.url);
    await page.waitForFunction(() => document.documentElement.dataset.state === "live", null, { timeout: 20_000 });
    for (let round = 0; round < rounds; ++round) {
      const { live, canvas, points } = await page.evaluate(redrawn);
      if (points < 100) throw new Error(`the chart has ${points} points`);
      samples["live.redraw"].push(live * NS);
      samples["canvas.redraw"].push(canvas * NS);
    }
    await browser.close();
  } finally {
    await kymod.end();
    empty.close();
  }
  console.log(JSON.stringify({ samples }));
})();
