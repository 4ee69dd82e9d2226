// `kymo view` in a real Chromium: it shows every sample of a recording of any length, from a server
// on loopback.
"use strict";
const assert = require("node:assert");
const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch } = require("./browser.js");
const { chartOf, inked, pointAtTime, range, zoomTo } = require("./pages.js");
const { load } = require("./recordings.js");

const ROWS = 1_000_000;
const SPIKE_ROW = 654_321;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-view-"));
const file = path.join(folder, "long.tsv");
const at = (row) => 1_000_000 * row + (row % 7) * 1000;
const gauge = (row) => (row === SPIKE_ROW ? 5_000_000_000 : 100 + (row % 50));
const counter = (row) => 4096 * row + (row % 3) * 100;
const faults = [];
let browser;
let view;
let url;

before(async () => {
  const lines = ["Time (ns)\twritten\tresident"];
  for (let row = 0; row < ROWS; ++row) lines.push(`${at(row)}\t${counter(row)}\t${gauge(row)}`);
  fs.writeFileSync(file, lines.join("\n") + "\n");
  view = spawn(process.env.KYMO_PROGRAM, ["view", file], { stdio: ["ignore", "pipe", "pipe"] });
  url = await new Promise((resolve, reject) => {
    view.stdout.on("data", (data) => resolve(String(data).trim()));
    view.on("exit", (code) => reject(new Error(`kymo view ended: ${code}`)));
  });
  browser = await launch();
});
after(async () => {
  await browser.close();
  view.removeAllListeners("exit").kill("SIGINT");
  fs.rmSync(folder, { recursive: true });
});

async function open() {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || new URL(request.url()).host === new URL(url).host || faults.push(request.url()));
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.state === "whole");
  return page;
}

test("the whole is shown with its spike, without its samples", async () => {
  const page = await open();
  const [from, to] = await range(page);
  const share = (at(SPIKE_ROW) - from) / (to - from);
  const { rows } = await inked(chartOf(page, "resident"), "resident", [share - 0.005, share + 0.005]);
  assert.ok(rows > 100, `${rows} rows of pixels at the spike`);
  assert.match(await page.textContent("#range"), /lowest to highest of each 1,024 rows/);
  assert.ok((await page.content()).length < 3_000_000);
  await page.close();
});

test("zoomed in anywhere, every sample stands at its time with its value", async () => {
  const { written } = await load("format.js");
  const page = await open();
  for (const middle of [SPIKE_ROW, 1024, ROWS - 100]) {
    await zoomTo(page, at(middle - 25), at(middle + 25));
    await page.waitForFunction(() => /: single samples/.test(document.getElementById("range").textContent));
    for (let row = middle - 8; row <= middle + 8; ++row) {
      assert.deepStrictEqual(await pointAtTime(page, chartOf(page, "resident"), at(row)), { at: at(row), values: { resident: written(gauge(row)) } });
    }
  }
  await page.close();
});

test("without the token, of another host or origin, nothing is served", async () => {
  const { origin, searchParams } = new URL(url);
  assert.strictEqual((await fetch(origin + "/")).status, 401);
  assert.strictEqual((await fetch(origin + "/samples?first=0&last=0")).status, 401);
  const bearer = { Authorization: `Bearer ${searchParams.get("token")}` };
  assert.strictEqual((await fetch(origin + "/samples?first=0&last=0", { headers: { ...bearer, Origin: "http://evil.example" } })).status, 403);
  for (const range of ["first=1&last=0", "first=0", "", "first=-1&last=1", "first=0&last=99999999", "first=x&last=1"]) {
    const reply = await fetch(`${origin}/samples?${range}`, { headers: bearer });
    assert.strictEqual(reply.status, 400, range);
    assert.match((await reply.json()).error.message, /wanted numbers of blocks/);
  }
});

test("what is no recording is one line", () => {
  const none = spawnSync(process.env.KYMO_PROGRAM, ["view", path.join(folder, "none.tsv")], { encoding: "utf8" });
  assert.strictEqual(none.status, 1);
  assert.match(none.stderr, /^kymo: .*none\.tsv.*\n$/);
  const port = spawnSync(process.env.KYMO_PROGRAM, ["view", file, "--port", new URL(url).port], { encoding: "utf8" });
  assert.strictEqual(port.status, 1);
  assert.match(port.stderr, /the port is in use: stop what serves it, or name another with --port/);
});

test("Ctrl-C ends it, and the page says so", async () => {
  const page = await open();
  const ended = new Promise((resolve) => view.removeAllListeners("exit").on("exit", resolve));
  view.kill("SIGINT");
  assert.strictEqual(await ended, 0);
  const before = faults.length;
  await zoomTo(page, at(500_000), at(500_040));
  await page.waitForFunction(() => /kymo view has ended/.test(document.getElementById("range").textContent));
  faults.splice(before);
  await page.close();
});

test("no page complained, and none asked another address", () => {
  assert.deepStrictEqual(faults, []);
});

test("the answer of a reader that was taken over runs nothing, even if it knows the nonce", async () => {
  const made = spawnSync(process.env.HOSTILE_PAGE_PROGRAM, ["secret"], { encoding: "utf8" });
  assert.strictEqual(made.status, 0, made.stderr);
  const server = http.createServer((request, reply) => reply.writeHead(200, { "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; script-src 'nonce-secret'; style-src 'nonce-secret'" }).end(made.stdout));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "load" });
  assert.strictEqual(await page.evaluate(() => window.taken), undefined);
  assert.strictEqual(await page.locator("img").count(), 0);
  // The script of the page and four elements of data.
  assert.strictEqual(await page.locator("script").count(), 5);
  assert.strictEqual(await page.locator("script[nonce]").count(), 1);
  await page.close();
  server.close();
});
