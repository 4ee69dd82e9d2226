// The page of `kymo report --html` in a real Chromium: it must show what the recording contains.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch, open } = require("./browser.js");
const { assertFitsDarkPhone, assertNamesAreText, boxOf, chartOf, DARK_PHONE, HOSTILE, inked, moved, pointAt, pointAtTime, range, settled, zoomTo } = require("./pages.js");
const { load, pointsIn, recordingIn } = require("./recordings.js");

const KYMO = process.env.KYMO_PROGRAM;
const ROWS = 200_000;
const SPIKE_ROW = 123_456;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-page-"));
const faults = [];
let browser;
let file;
let recording; // the content of the file, read by the page's modules

const LATE_ROW = 90_000; // 3 µs before the next one
const at = (row) => 1_000_000 * row + (row === LATE_ROW ? 999_000 : (row % 7) * 1000);
const bytes = (row) => 4096 * row + (row % 3) * 100;
const gauge = (row) => (row === SPIKE_ROW ? 5_000_000_000 : 100 + (row % 50));

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
    scopes: [{ name: "quick", duration_ns: 5 }, { name: "slow", duration_ns: 2_000_000, thread: 41, components: [{ name: "copy", duration_ns: 1_000_000, thread: 42 }] }],
  }));
  execFileSync(KYMO, ["report", path.join(folder, name + ".tsv"), "--html", path.join(folder, name + ".html")]);
  return path.join(folder, name + ".html");
}

before(async () => {
  file = record("run");
  recording = await recordingIn(file);
  browser = await launch();
});
after(async () => {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
});

test("the program's own scopes are listed with their threads, the longest first", async () => {
  const page = await open(browser, file, faults);
  const rows = await page.locator("details", { hasText: "Scopes of the program" }).locator("tbody tr").evaluateAll((all) => all.map((row) => row.cells[0].textContent.trim()));
  assert.deepStrictEqual(rows, ["slow (thread 41)", "copy (thread 42)", "quick"]);
});

test("one spike among 200,000 samples is on the first picture", async () => {
  const { times, values } = pointsIn(recording, "resident", 0, at(ROWS - 1));
  assert.strictEqual(Math.max(...values), gauge(SPIKE_ROW));
  assert.ok(times.length < 5000, "thinned to what the picture can show");
  const page = await open(browser, file, faults);
  const [from, to] = await range(page);
  const share = (at(SPIKE_ROW) - from) / (to - from);
  const chart = chartOf(page, "resident");
  const { rows } = await inked(chart, "resident", [share - 0.005, share + 0.005]);
  assert.ok(rows > 100, `${rows} rows of pixels at the spike`);
  assert.ok((await inked(chart, "resident", [share + 0.01, share + 0.02])).rows < 20, "and nothing beside it");
  await page.close();
});

test("the data of the page have every sample at its time with its value", () => {
  const { times, values, single } = pointsIn(recording, "resident", at(SPIKE_ROW - 20), at(SPIKE_ROW + 20));
  assert.ok(single);
  for (let row = SPIKE_ROW - 20; row <= SPIKE_ROW + 20; ++row) {
    const i = times.indexOf(at(row));
    assert.ok(i >= 0, `row ${row} is there`);
    assert.strictEqual(values[i], gauge(row));
  }
});

test("a row that was late makes no high rate", () => {
  const near = pointsIn(recording, "written_bytes", at(LATE_ROW - 20), at(LATE_ROW + 20), { rate: true });
  assert.ok(near.single);
  assert.ok(Math.max(...near.values) < 2.2 * 4096e3, String(Math.max(...near.values)));
});

test("zoomed in, the page shows every sample at its time with its value", async () => {
  const { written } = await load("format.js");
  const page = await open(browser, file, faults);
  await zoomTo(page, at(SPIKE_ROW - 25), at(SPIKE_ROW + 25));
  assert.match(await page.textContent("#range"), /: single samples/);
  for (let row = SPIKE_ROW - 20; row <= SPIKE_ROW + 20; ++row) {
    const { at: time, values } = await pointAtTime(page, chartOf(page, "resident"), at(row));
    assert.deepStrictEqual([time, values.resident], [at(row), written(gauge(row), "bytes")]);
  }
  await page.close();
});

// A row after its reader has stood still shows one core, as kymo report does, and not 49.
test("rates of a process tree are by the time of their reading", async () => {
  const lines = ["Time (ns)\ttree_cpu_ns\tprofiler_tree_age_ns\tmachine_cpu_ns\tprofiler_machine_age_ns"];
  for (let ms = 0, read = 0; ms < 3000; ++ms) {
    if (ms % 100 < 50 || ms % 100 === 99) read = ms;
    lines.push([ms * 1e6, read * 1e6, (ms - read) * 1e6, (ms - (ms % 10)) * 1e6, (ms % 10) * 1e6].join("\t"));
  }
  const tsv = path.join(folder, "tree.tsv");
  fs.writeFileSync(tsv, lines.join("\n") + "\n");
  const column = (name, kind) => ({ name, metric: name, kind, unit: "nanoseconds", fields: {} });
  fs.writeFileSync(path.join(folder, "tree.meta.json"), JSON.stringify({ format_version: 1, state: "ended", interval_ns: 1_000_000,
    columns: [column("tree_cpu_ns", "counter"), column("profiler_tree_age_ns", "gauge"),
      column("machine_cpu_ns", "counter"), column("profiler_machine_age_ns", "gauge")] }));
  execFileSync(KYMO, ["report", tsv, "--html", path.join(folder, "tree.html")]);
  const tree = await recordingIn(path.join(folder, "tree.html"));
  for (const end of [100e6, 3000e6]) {
    for (const name of ["tree_cpu_ns", "machine_cpu_ns"]) {
      // Before the second reading of a source, no rate is known.
      const { times, values } = pointsIn(tree, name, 1e6, end, { rate: true });
      const rates = values.filter((rate, i) => rate !== null && times[i] >= 10e6);
      assert.ok(rates.length > 50);
      assert.deepStrictEqual([Math.min(...rates), Math.max(...rates)], [1e9, 1e9]);
    }
  }
  const outline = tree.columns[1];
  assert.deepStrictEqual([...outline.rateLow, ...outline.rateHigh], Array(2 * outline.blocks).fill(1e9), "also from afar");
});

test("counters are rates, and as recorded when asked", async () => {
  const shown = (rate) => pointsIn(recording, "written_bytes", at(70_000), at(70_050), { rate });
  const rates = shown(true);
  assert.strictEqual(rates.values[rates.times.indexOf(at(70_010))], ((bytes(70_010) - bytes(70_009)) * 1e9) / (at(70_010) - at(70_009)));
  const raw = shown(false);
  assert.strictEqual(raw.values[raw.times.indexOf(at(70_010))], bytes(70_010));
  const page = await open(browser, file, faults);
  const chart = chartOf(page, "written_bytes");
  assert.match((await pointAt(page, chart, 0.5)).values.written_bytes, /iB\/s$/);
  await page.click("#raw");
  await settled(page);
  assert.match((await pointAt(page, chart, 0.5)).values.written_bytes, /iB$/);
  await page.close();
});

test("a gap is drawn as a gap", async () => {
  assert.ok(pointsIn(recording, "resident", at(1400), at(1600)).values.includes(null));
  const page = await open(browser, file, faults);
  await zoomTo(page, at(900), at(1600));
  const shown = async (row) => (await pointAtTime(page, chartOf(page, "resident"), at(row))).values.resident;
  for (const beside of [950, 1555]) assert.match(await shown(beside), /^1\d\d B$/);
  assert.strictEqual(await shown(1250), "–");
  await page.close();
});

test("wheel, drag, keys and buttons move the range of every chart", async () => {
  const page = await open(browser, file, faults);
  const whole = await range(page);
  const box = await boxOf(page.locator(".u-over").first());
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  const wheeled = await moved(page, () => page.mouse.wheel(0, -400));
  assert.ok(wheeled[1] - wheeled[0] < (whole[1] - whole[0]) / 2);
  const dragged = await moved(page, async () => {
    await page.mouse.move(box.x + 100, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, box.y + 30, { steps: 4 });
    await page.mouse.up();
  });
  assert.ok(dragged[1] - dragged[0] < (wheeled[1] - wheeled[0]) / 5);
  const [one, other] = [chartOf(page, "written_bytes"), chartOf(page, "resident")];
  for (const share of [0, 0.3, 1]) assert.strictEqual((await pointAt(page, one, share)).at, (await pointAt(page, other, share)).at);
  await page.locator(".chart").first().focus();
  const wider = await moved(page, () => page.keyboard.press("-"));
  assert.ok(wider[1] - wider[0] > dragged[1] - dragged[0]);
  assert.deepStrictEqual(await moved(page, () => page.click("#reset")), whole);
  assert.deepStrictEqual(await moved(page, () => page.getByRole("button", { name: "pre-dump", exact: true }).click()), [at(50_000), at(60_000)]);
  await page.close();
});

test("the legend hides a line and isolates one", async () => {
  const page = await open(browser, file, faults);
  const chart = page.locator(".chart").first();
  const button = chart.locator(".legend button").first();
  const ink = async () => (await inked(chart, "written_bytes")).pixels;
  assert.ok(await ink() > 100);
  await button.click();
  await settled(page);
  assert.strictEqual(await ink(), 0);
  assert.strictEqual(await button.getAttribute("aria-pressed"), "false");
  await button.click({ modifiers: ["Shift"] });
  await settled(page);
  assert.ok(await ink() > 100);
  assert.strictEqual(await button.getAttribute("aria-pressed"), "true");
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
  await assertNamesAreText(page, "run.tsv");
  await page.close();
});

test("it fits a phone, in the dark", async () => {
  const page = await open(browser, file, faults, DARK_PHONE);
  await assertFitsDarkPhone(page);
  await page.close();
});

test("samples that the page does not hold are said to be missing", async () => {
  const outline = path.join(folder, "outline.html");
  execFileSync(KYMO, ["report", path.join(folder, "run.tsv"), "--html", outline, "--from", "100", "--to", "110", "--most-values", "1000"]);
  assert.ok(fs.statSync(outline).size < fs.statSync(file).size);
  const thin = await recordingIn(outline);
  assert.strictEqual(Math.max(...pointsIn(thin, "resident", 0, at(ROWS - 1)).values), gauge(SPIKE_ROW));
  assert.ok(Math.max(...pointsIn(thin, "written_bytes", 0, at(ROWS - 1), { rate: true }).values) < 2.2 * 4096e3, "also where a row was late");
  assert.ok(pointsIn(thin, "resident", at(105_000), at(105_010)).times.includes(at(105_005)));
  const page = await open(browser, outline, faults);
  await zoomTo(page, at(105_000), at(105_100));
  assert.match(await page.textContent("#range"), /: single samples/);
  await page.click("#reset");
  await settled(page);
  await zoomTo(page, at(SPIKE_ROW - 20), at(SPIKE_ROW + 20));
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
