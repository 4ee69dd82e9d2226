// The page of a running kymod in Chromium. bench/live_page runs it.
"use strict";
const http = require("node:http");
const path = require("node:path");
const { launch } = require(path.join(process.env.KYMO_WEB, "browser.js"));
const { Kymod } = require(path.join(process.env.KYMO_WEB, "kymod.js"));

const rounds = Number(process.argv[2]);
const NS = 1e6; // nanoseconds in a millisecond
const VIEWPORT = { width: 1280, height: 900 };

// Opens the address as the first page of a new browser.
async function firstPaint(url, ready) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: VIEWPORT });
  await page.goto(url);
  await page.waitForFunction(ready, null, { timeout: 20_000 });
  // The browser reports it only some frames later.
  const painted = await (await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime)).jsonValue();
  await browser.close();
  return painted * NS;
}

// Runs in the page: alternately draws a chart of 100,000 points again, and two lines with as many points on a canvas of the
// same size. Returns the medians of 20, in milliseconds, and whether the chart showed the points.
async function redrawn() {
  const { Board, Lines, Store } = modules; // eslint-disable-line no-undef
  const time = Array.from({ length: 100_000 }, (_, i) => i * 1e6);
  const part = time.map((_, i) => (i % 977) * 1000);
  const columns = ["one", "other"].map((name) => ({ name, metric: "", kind: "gauge", unit: "bytes", help: "" }));
  const store = new Store(columns.length);
  store.append({ time, columns: columns.map(() => ({ last: part, low: part, high: part })) });
  // Draws in the way of src/lens/pages/live/view.js.
  const board = new Board(document.getElementById("charts"), {
    columns,
    lines(indices, from, to, pixels) {
      const lines = new Lines(indices.length, (to - from) / pixels, []);
      store.fill(lines, indices, indices.map(() => true), from, to);
      lines.close();
      return lines;
    },
    bounds: () => [time[0], time.at(-1)],
    instants: (ticks) => ticks.map(String),
    say() {},
    name: () => "benchmark",
  });
  board.make();
  await new Promise(requestAnimationFrame);
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
    await page.setContent('<!doctype html><main><div id="charts"></div></main>');
    for (const style of process.env.KYMO_STYLES.split(":")) await page.addStyleTag({ path: style });
    await page.addScriptTag({ path: process.env.KYMO_BUNDLE });
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
