// The page of `kymo diff --html` in a real Chromium: it draws recordings over each other, aligned at a
// phase.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch, open } = require("./browser.js");
const { assertFitsDarkPhone, assertNamesAreText, chartTitled, DARK_PHONE, HOSTILE, inked, moved, pointAt, pointAtTime, range, settled, zoomTo } = require("./pages.js");
const { pointsIn, recordingIn } = require("./recordings.js");

const KYMO = process.env.KYMO_PROGRAM;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-diff-"));
const faults = [];
let browser;
let two;
let sets;

const MS = 1_000_000;
const ROWS = 1000;
// Pseudo-random numbers that are the same in each run.
const noise = (row, salt) => ((row * 7919 + salt * 104729) % 1009) / 1009;

// Writes a dump that begins at `start` ms and writes about `step` bytes per row.
function record(name, start, step, salt, rows = ROWS) {
  const lines = [`Time (ns)\twritten_bytes\tresident\t${HOSTILE}`];
  let bytes = 0;
  for (let row = 0; row < rows; ++row) {
    if (row >= start && row < start + 600) bytes += step + Math.floor(500 * noise(row, salt));
    lines.push([row * MS, bytes, 1000 + Math.floor(100 * noise(row, salt + 1)), Math.floor(10 * noise(row, salt + 2))].join("\t"));
  }
  fs.writeFileSync(path.join(folder, name + ".tsv"), lines.join("\n") + "\n");
  const column = (name, kind, unit) => ({ name, metric: name, help: "", kind, unit, fields: {} });
  fs.writeFileSync(path.join(folder, name + ".meta.json"), JSON.stringify({
    format_version: 1, state: "ended", interval_ns: MS,
    columns: [column("written_bytes", "counter", "bytes"), column("resident", "gauge", "bytes"), column(HOSTILE, "gauge", "count")],
    marks: [{ name: "pre-dump", at_ns: start * MS }, { name: "post-dump", at_ns: (start + 600) * MS }],
  }));
  return path.join(folder, name + ".tsv");
}

function compare(name, ...options) {
  const page = path.join(folder, name);
  execFileSync(KYMO, ["diff", ...options, "--html", page], { stdio: "pipe" });
  return page;
}

before(async () => {
  two = compare("two.html", record("old", 100, 4000, 1), record("new", 300, 6000, 2));
  const all = [];
  for (let i = 0; i < 5; ++i) all.push("--base", record("old-" + i, 100 + i, 4000 + i, i), "--new", record("new-" + i, 300 - i, 6000 - i, 10 + i));
  sets = compare("sets.html", ...all);
  browser = await launch();
});
after(async () => {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
});

test("what changed comes first, with its size, and its chart too", async () => {
  const page = await open(browser, two, faults);
  assert.match(await page.textContent("#quality"), /1 metric changed beyond noise/);
  const row = await page.locator("#tables tbody tr").first().textContent();
  assert.match(row, /written_bytes.*\+4\d\.\d %.*< 0\.0001/);
  assert.strictEqual(await page.locator(".chart h2").first().textContent(), "written_bytes");
  assert.match(await page.locator(".chart .change").first().textContent(), /beyond noise/);
  await page.close();
});

test("both recordings stand where their phase begins", async () => {
  const page = await open(browser, two, faults);
  await zoomTo(page, -5 * MS, 5 * MS);
  const chart = chartTitled(page, "written_bytes");
  assert.deepStrictEqual(await pointAtTime(page, chart, -2 * MS), { at: -2 * MS, values: { A: "0 B/s", B: "0 B/s" } });
  const inside = await pointAtTime(page, chart, 2 * MS);
  assert.strictEqual(inside.at, 2 * MS);
  for (const [side, step] of [["A", 4000], ["B", 6000]]) {
    const [number, unit] = inside.values[side].split(" ");
    assert.strictEqual(unit, "MiB/s");
    assert.ok(number * 1048576 >= step * 990 && number * 1048576 <= (step + 500) * 1010, inside.values[side]);
  }
  await page.close();
});

test("raw values, keys and buttons", async () => {
  const page = await open(browser, two, faults);
  const compared = await range(page);
  assert.deepStrictEqual(compared, [0, 600 * MS]);
  await page.click("#raw");
  await settled(page);
  assert.match((await pointAt(page, chartTitled(page, "written_bytes"), 1)).values.A, /^2\.\d+ MiB$/); // 600 rows of 4,000 to 4,500 bytes
  await page.locator(".chart").first().focus();
  const closer = await moved(page, () => page.keyboard.press("+"));
  assert.ok(closer[1] - closer[0] <= 300 * MS);
  assert.deepStrictEqual(await moved(page, () => page.keyboard.press("Home")), [-300 * MS, 899 * MS]);
  assert.deepStrictEqual(await moved(page, () => page.click("#reset")), compared);
  await page.close();
});

test("of two checkpoints, the page has their names, the lines and the table of the text", async () => {
  for (const [name, ms, waited] of [["old", 500, 0.02], ["new", 1200, 0.68]]) {
    const checkpoint = path.join(folder, `web-${name}`);
    fs.mkdirSync(path.join(checkpoint, "recordings"), { recursive: true });
    for (const end of [".tsv", ".meta.json"]) fs.copyFileSync(path.join(folder, name + end), path.join(checkpoint, "recordings", "dump" + end));
    fs.writeFileSync(path.join(checkpoint, "pages-1.img"), Buffer.alloc(ms));
    fs.writeFileSync(path.join(checkpoint, "checkpoint.json"), JSON.stringify({
      verdict: { lines: ["It took long."], frozen_ns: ms * MS, shares: { disk_wait: 0, kymod_disk_wait: waited } },
      phases: [{ name: "memory: shared memory", begin_ns: 0, end_ns: ms * MS, frozen: true }],
    }));
  }
  const page = await open(browser, compare("checkpoints.html", path.join(folder, "web-old"), path.join(folder, "web-new")), faults);
  assert.strictEqual(await page.title(), "web-old → web-new");
  const text = await page.innerText("#checkpoints");
  assert.match(text, /In B the processes stood still for 1\.20 s, 700 ms longer than in A \(500 ms\)\./);
  assert.match(text, /kymod waited for the disk for 2 % of the standstill in A, for 68 % in B\./);
  assert.match(text, /images\s+size\s+500 B\s+1\.17 KiB\s+\+700 B\s+\+140\.0 %/);
  assert.match(await page.innerText("#tables"), /written_bytes/);
  await page.close();
});

test("sets of recordings have a line each", async () => {
  const page = await open(browser, sets, faults);
  assert.strictEqual(await page.title(), "5 recordings → 5 recordings");
  assert.strictEqual(await page.locator("#sides li").count(), 10);
  for (let run = 0; run < 10; ++run) {
    const recording = await recordingIn(sets, `r${run}-`, (diff) => diff.recordings[run]);
    const { first_ns, last_ns, side } = recording.described;
    assert.strictEqual(side, run < 5 ? "A" : "B");
    assert.ok(pointsIn(recording, "written_bytes", first_ns, last_ns, { rate: true }).values.some((value) => value > 0));
  }
  for (const side of ["A", "B"]) assert.ok((await inked(chartTitled(page, "written_bytes"), side)).pixels > 100);
  await page.close();
});

test("where too few runs tell nothing, the page does not call it unchanged", async () => {
  const run = (name) => path.join(folder, name + ".tsv");
  const page = await open(browser, compare("few.html", "--base", run("old-0"), "--base", run("old-1"), "--new", run("new-0"), "--new", run("new-1")), faults);
  assert.match(await page.textContent("#quality"), /nothing can be told from noise/);
  assert.match(await page.locator(".why").first().textContent(), /too few runs: 2 and 2 of 4/);
  await page.close();
});

test("names from a recording are text", async () => {
  const page = await open(browser, two, faults);
  await assertNamesAreText(page, "old.tsv → new.tsv");
  await page.close();
});

test("it fits a phone, in the dark", async () => {
  const page = await open(browser, sets, faults, DARK_PHONE);
  await assertFitsDarkPhone(page);
  await page.close();
});

test("a page that would be too large keeps single samples of what was compared", async () => {
  const small = compare("small.html", record("long", 100, 4000, 1, 5000), record("longer", 300, 4000, 2, 6000), "--from", "0.1", "--to", "0.2", "--most-values", "100");
  const page = await open(browser, small, faults);
  assert.match(await page.textContent("#range"), /single samples only of what was compared/);
  await page.close();
});

test("no page complained, and none asked for the network", () => {
  assert.deepStrictEqual(faults, []);
});
