// The page of `kymo report --html` in a real Chromium: what it shows is what the recording holds.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch, open } = require("./browser.js");

const KYMO = process.env.KYMO_PROGRAM;
const ROWS = 200_000;
const SPIKE_ROW = 123_456;
const HOSTILE = "</script><img src=x onerror=document.title='taken'>";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-page-"));
const faults = [];
let browser;
let file;

const at = (row) => 1_000_000 * row + (row % 7) * 1000;
const bytes = (row) => 4096 * row + (row % 3) * 100;
const gauge = (row) => (row === SPIKE_ROW ? 5_000_000_000 : 1000 + (row % 50));

function record(name) {
  const lines = [`Time (ns)\twritten_bytes\tresident\t${HOSTILE}\tidle`];
  for (let row = 0; row < ROWS; row += row === 1000 ? 500 : 1) lines.push([at(row), bytes(row), gauge(row), row % 2 === 0 ? 1 : 1e15, 7].join("\t"));
  fs.writeFileSync(path.join(folder, name + ".tsv"), lines.join("\n") + "\n");
  const column = (name, kind, unit) => ({ name, metric: name, help: "", kind, unit, fields: {} });
  fs.writeFileSync(path.join(folder, name + ".meta.json"), JSON.stringify({
    format_version: 1, state: "ended", interval_ns: 1_000_000, start_unix_ns: 1_700_000_000_000_000_000, host: "<b>host</b>",
    columns: [column("written_bytes", "counter", "bytes"), column("resident", "gauge", "bytes"), column(HOSTILE, "gauge", "count"), column("idle", "gauge", "count")],
    longest_gaps: [{ start_ns: at(1000) + 1, end_ns: at(1500), ticks: 499, cause: "late" }],
    marks: [{ name: "pre-dump", at_ns: at(50_000) }, { name: "post-dump", at_ns: at(60_000) }],
    about: { request: "dump", timing: { name: "dump", duration_ns: 1000, components: [{ name: "criu", duration_ns: 900 }] } },
  }));
  execFileSync(KYMO, ["report", path.join(folder, name + ".tsv"), "--html", path.join(folder, name + ".html")]);
  return path.join(folder, name + ".html");
}

before(async () => {
  file = record("run");
  browser = await launch();
});
after(async () => {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
});

// The chart that shows this column, and where in it.
const plotted = (page, name) => page.evaluate((wanted) => {
  for (const chart of kymoPage.charts) {
    const at = [...chart.legend.querySelectorAll("button")].findIndex((button) => button.textContent.startsWith(wanted));
    if (at >= 0) return { times: chart.plot.data[0].slice(), values: chart.plot.data[at + 1].slice() };
  }
  return null;
}, name);
const settled = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));

test("one spike among 200,000 samples is on the first picture", async () => {
  const page = await open(browser, file, faults);
  const { values } = await plotted(page, "resident");
  assert.strictEqual(Math.max(...values), gauge(SPIKE_ROW));
  assert.ok(values.length < 5000, "thinned to what the picture can show");
  await page.close();
});

test("zoomed in, every sample stands at its time with its value", async () => {
  const page = await open(browser, file, faults);
  await page.evaluate(([from, to]) => kymoPage.show(from, to), [at(SPIKE_ROW - 20), at(SPIKE_ROW + 20)]);
  await settled(page);
  const { times, values } = await plotted(page, "resident");
  for (let row = SPIKE_ROW - 20; row <= SPIKE_ROW + 20; ++row) {
    const i = times.indexOf(at(row));
    assert.ok(i >= 0, `row ${row} is there`);
    assert.strictEqual(values[i], gauge(row));
  }
  await page.close();
});

test("counters are rates, and as recorded when asked", async () => {
  const page = await open(browser, file, faults);
  await page.evaluate(([from, to]) => kymoPage.show(from, to), [at(70_000), at(70_050)]);
  await settled(page);
  const rates = await plotted(page, "written_bytes");
  const i = rates.times.indexOf(at(70_010));
  assert.strictEqual(rates.values[i], ((bytes(70_010) - bytes(70_009)) * 1e9) / (at(70_010) - at(70_009)));
  await page.click("#raw");
  await settled(page);
  const raw = await plotted(page, "written_bytes");
  assert.strictEqual(raw.values[raw.times.indexOf(at(70_010))], bytes(70_010));
  await page.close();
});

test("a gap is drawn as a gap", async () => {
  const page = await open(browser, file, faults);
  await page.evaluate(([from, to]) => kymoPage.show(from, to), [at(1400), at(1600)]);
  await settled(page);
  assert.ok((await plotted(page, "resident")).values.includes(null));
  await page.close();
});

test("wheel, drag, keys and buttons move the range of every chart", async () => {
  const page = await open(browser, file, faults);
  const range = () => page.evaluate(() => [kymoPage.view.from, kymoPage.view.to]);
  const whole = await range();
  const box = await page.locator(".u-over").first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  await page.mouse.wheel(0, -400);
  await settled(page);
  const wheeled = await range();
  assert.ok(wheeled[1] - wheeled[0] < (whole[1] - whole[0]) / 2);
  await page.mouse.move(box.x + 100, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 200, box.y + 30, { steps: 4 });
  await page.mouse.up();
  await settled(page);
  const dragged = await range();
  assert.ok(dragged[1] - dragged[0] < (wheeled[1] - wheeled[0]) / 5);
  for (const chart of await page.evaluate(() => kymoPage.charts.map((c) => [c.plot.scales.x.min, c.plot.scales.x.max]))) {
    assert.deepStrictEqual(chart, dragged);
  }
  await page.locator(".chart").first().focus();
  await page.keyboard.press("-");
  await settled(page);
  assert.ok((await range())[1] - (await range())[0] > dragged[1] - dragged[0]);
  await page.click("#reset");
  await settled(page);
  assert.deepStrictEqual(await range(), whole);
  await page.getByRole("button", { name: "pre-dump" }).click();
  await settled(page);
  assert.deepStrictEqual(await range(), [at(50_000), at(60_000)]);
  await page.close();
});

test("the legend hides a line and isolates one", async () => {
  const page = await open(browser, file, faults);
  const shown = () => page.evaluate(() => kymoPage.charts.map((chart) => chart.plot.series.slice(1).map((line) => line.show)));
  await page.locator(".legend button").first().click();
  assert.strictEqual((await shown())[0][0], false);
  await page.locator(".legend button").first().click({ modifiers: ["Shift"] });
  assert.strictEqual((await shown())[0].filter(Boolean).length, 1);
  await page.close();
});

test("a chart is saved as a picture", async () => {
  const page = await open(browser, file, faults);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("PNG").first().click()]);
  const saved = fs.readFileSync(await download.path());
  assert.strictEqual(saved.subarray(1, 4).toString(), "PNG");
  assert.ok(saved.length > 5000);
  await page.close();
});

test("names from a recording are text", async () => {
  const page = await open(browser, file, faults);
  assert.strictEqual(await page.title(), "run.tsv");
  assert.ok((await page.textContent("body")).includes(HOSTILE));
  assert.strictEqual(await page.locator("img").count(), 0);
  await page.close();
});

test("it fits a phone, in the dark", async () => {
  const page = await open(browser, file, faults, { viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  const [inner, full] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  assert.ok(full <= inner, `${full} > ${inner}`);
  assert.strictEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(17, 17, 19)");
  await page.close();
});

test("samples that the page does not hold are said to be missing", async () => {
  const outline = path.join(folder, "outline.html");
  execFileSync(KYMO, ["report", path.join(folder, "run.tsv"), "--html", outline, "--from", "100", "--to", "110", "--most-values", "1000"]);
  const page = await open(browser, outline, faults);
  assert.ok(fs.statSync(outline).size < fs.statSync(file).size);
  assert.strictEqual(Math.max(...(await plotted(page, "resident")).values), gauge(SPIKE_ROW));
  await page.evaluate(([from, to]) => kymoPage.show(from, to), [at(105_000), at(105_010)]);
  await settled(page);
  assert.ok((await plotted(page, "resident")).times.includes(at(105_005)));
  await page.evaluate(([from, to]) => kymoPage.show(from, to), [at(SPIKE_ROW - 20), at(SPIKE_ROW + 20)]);
  await settled(page);
  assert.match(await page.textContent("#range"), /not in this page/);
  await page.close();
});

test("a recording without rows, and one without metadata, have a page", async () => {
  for (const [name, text] of [["empty", "Time (ns)\ta\n"], ["bare", "Time (ns)\ta\n1\t2\n2\t3\nx\ty\n"]]) {
    fs.writeFileSync(path.join(folder, name + ".tsv"), text);
    execFileSync(KYMO, ["report", path.join(folder, name + ".tsv"), "--html", path.join(folder, name + ".html")], { stdio: "pipe" });
    const page = await open(browser, path.join(folder, name + ".html"), faults);
    assert.strictEqual(await page.title(), name + ".tsv");
    await page.close();
  }
});

test("no page complained, and none asked for the network", () => {
  assert.deepStrictEqual(faults, []);
});
