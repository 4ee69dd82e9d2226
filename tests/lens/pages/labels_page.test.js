// No label of a chart's axes may be cut, on a phone or on a desk: in the page of `kymo report --html`, on kymod's live
// page and in the page of a checkpoint.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch } = require("./browser.js");
const { Kymod, whyNoCriu } = require("./kymod.js");
const { labels, noteLabels, settled, until } = require("./pages.js");

const WIDTHS = [390, 320, 1280];
const skip = whyNoCriu || false;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-labels-"));
const kymod = new Kymod();
const faults = [];
let browser;
let checkpoint; // of a real dump

before(async () => {
  browser = await launch();
  if (skip) return;
  await kymod.start();
  await kymod.run("shop", 32);
  kymod.kymo("dump", "process", "shop", "--leave-running");
  [checkpoint] = JSON.parse(kymod.kymo("checkpoints", "--json"));
});
after(async () => {
  await browser.close();
  if (!skip) await kymod.end();
  fs.rmSync(folder, { recursive: true });
});

// Opens a page of this width that notes its labels. A phone has several pixels for each of the page's.
async function open(url, width) {
  const context = await browser.newContext({ viewport: { width, height: 844 }, deviceScaleFactor: width < 500 ? 3 : 1 });
  await noteLabels(context);
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(url);
  return page;
}

// Waits until the page has drawn labels like each of these. Fails if one of all its labels is cut.
async function assertWhole(page, wanted) {
  const texts = new Set();
  await until(`labels like ${wanted.join(" ")}`, async () => {
    const drawn = await labels(page);
    assert.deepStrictEqual(drawn.cut, []);
    drawn.texts.forEach((text) => texts.add(text));
    return wanted.every((one) => [...texts].some((text) => one.test(text)));
  });
}

// Writes a recording with a chart for each unit, kind and size of values that a column can have.
function writeSizes(name) {
  const columns = [];
  for (const unit of ["bytes", "pages", "nanoseconds", "microseconds", "count"]) {
    for (const kind of ["counter", "gauge"]) {
      for (const size of [1, 1e3, 1e6, 1e9]) {
        for (const most of [1.3, 4.1, 8.2]) {
          // Two columns of one metric have a chart of their own.
          for (const part of ["a", "b"]) columns.push({ unit, kind, most: Math.round(most * size), metric: `${unit}_${kind}_${Math.round(most * size)}`, part });
        }
      }
    }
  }
  const rows = [["Time (ns)", ...columns.map((one) => `${one.metric}[${one.part}]`)].join("\t")];
  for (let row = 0; row < 100; ++row) {
    // A counter of so much a second in one of the rows, and a gauge in ten of them.
    const value = ({ kind, most }) => (kind === "counter" ? (row > 50 ? Math.round(most / 1000) : 0) : row >= 50 && row < 60 ? most : 0);
    rows.push([row * 1e6, ...columns.map(value)].join("\t"));
  }
  const file = path.join(folder, `${name}.tsv`);
  fs.writeFileSync(file, rows.join("\n") + "\n");
  fs.writeFileSync(path.join(folder, `${name}.meta.json`), JSON.stringify({ format_version: 1, state: "ended", interval_ns: 1e6, start_unix_ns: 1_795_522_561_000_000_000,
    columns: columns.map((one) => ({ name: `${one.metric}[${one.part}]`, metric: one.metric, help: "", kind: one.kind, unit: one.unit, fields: {} })) }));
  return file;
}

function report(recording) {
  const html = path.join(folder, `${path.basename(recording)}.html`);
  execFileSync(process.env.KYMO_PROGRAM, ["report", recording, "--html", html, "-q"], { stdio: "pipe" });
  return "file://" + html;
}

async function openReport(url, width) {
  const page = await open(url, width);
  await page.waitForFunction(() => document.documentElement.dataset.state === "whole");
  if (await page.locator("#all-charts:not([open])").count() > 0) await page.click("#all-charts > summary");
  await page.locator(".chart canvas").first().waitFor();
  await settled(page);
  return page;
}

test("labels of each unit, kind and size of values are whole", async () => {
  const url = report(writeSizes("sizes"));
  for (const width of WIDTHS) {
    const page = await openReport(url, width);
    await assertWhole(page, [/^\d\.5 M pages\/s$/, /^\d\.5 k pages$/, /^\d+ MiB\/s$/, /^\d GiB$/, / ms$/, / s\/s$/, / %$/, /^\d\.5 M$/]);
    await page.click("#raw"); // as recorded
    await assertWhole(page, [/^\d+ MiB$/, / µs$/]);
    await page.setViewportSize({ width: width - 20, height: 844 });
    await assertWhole(page, []);
    await page.context().close();
  }
});

test("labels of a real dump's report are whole", { skip }, async () => {
  const url = report(path.join(checkpoint.directory, "recordings", "dump.tsv"));
  for (const width of WIDTHS) {
    const page = await openReport(url, width);
    await assertWhole(page, [/ k pages$/, /pages\/s$/, / GiB$/, /B\/s$/, / s\/s$/, / ms$/]);
    await page.context().close();
  }
});

test("labels of the page of a checkpoint are whole", { skip }, async () => {
  for (const width of WIDTHS) {
    const page = await open(`${kymod.url}#checkpoint=${checkpoint.id}`, width);
    const frame = page.frameLocator("iframe").first();
    await frame.locator("#all-charts > summary").click();
    await frame.locator(".chart canvas").first().waitFor();
    await assertWhole(page, [/ k pages$/, /pages\/s$/, / GiB$/, /B\/s$/, / s\/s$/]);
    await page.context().close();
  }
});

test("labels of the live page are whole", async (context) => {
  if (skip) return context.skip(skip);
  for (const width of WIDTHS) {
    const page = await open(`${kymod.url}#live`, width);
    await page.waitForFunction(() => document.documentElement.dataset.state === "live");
    await until("some samples are drawn", () => page.evaluate(() => window.labels.length > 200));
    await assertWhole(page, [/B$/, /^\d\d:\d\d:\d\d/]);
    await page.context().close();
  }
});

test("no page complained", () => assert.deepStrictEqual(faults, []));
