// The page of `kymo report --html` of a dump, in a real Chromium: what a reader sees in ten seconds.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch, open } = require("./browser.js");
const { boxOf, HOSTILE, moved, range, settled } = require("./pages.js");
const { load } = require("./recordings.js");
const { BEGAN_MS, COLUMNS, MS, PHASES, VERDICT, writeRequest } = require("./requests.js");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-request-"));
const faults = [];
let browser;
let file;

function report(name, change, columns) {
  const recording = writeRequest(folder, name, change, columns);
  const page = path.join(folder, name + ".html");
  execFileSync(process.env.KYMO_PROGRAM, ["report", recording, "--html", page, "-q"], { stdio: "pipe" });
  return page;
}

before(async () => {
  file = report("dump");
  browser = await launch();
});
after(async () => {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
});

const laneOf = (page, title) => page.locator(`.lane[data-lane="${title}"]`);
// The value in the text beside a part of a lane.
const valueOf = (page, lane, part) => laneOf(page, lane).locator(`[data-part="${part}"] b`).textContent();
// Moves the mouse over a lane to this time since the beginning of the request.
async function pointTo(page, lane, ms) {
  const [from, to] = await range(page);
  const box = await boxOf(laneOf(page, lane).locator(".plot"));
  await page.mouse.move(box.x + ((ms * MS - from) / (to - from)) * box.width, box.y + box.height / 2);
  await settled(page);
}
const top = (element) => element.evaluate((one) => one.getBoundingClientRect().top);

test("the verdict comes first, then the timeline, then the phases", async () => {
  const page = await open(browser, file, faults);
  assert.strictEqual(await page.textContent("#verdict .first"), VERDICT.lines[0]);
  const places = [];
  for (const place of ["#verdict", "#timeline", "#short", "#all-charts", "#tables"]) places.push(await top(page.locator(place)));
  assert.deepStrictEqual(places, places.slice().sort((a, b) => a - b));
  assert.ok(places[0] < 150, `${places[0]}: the verdict is at the top`);
  assert.match(await page.textContent("#title"), /^Dump of shop$/);
  await page.close();
});

test("each advice has its estimate as a bar on the scale of how it was", async () => {
  const page = await open(browser, file, faults);
  const advices = await page.locator(".advices").innerText();
  for (const text of ["faster disk or a tmpfs", "≈ 350 to 500 ms", "The memory may compress well.", "--compression zstd", "≈ 800 ms to 1.10 s", "As it was", "2.57 s"]) assert.ok(advices.includes(text), advices);
  const shares = await page.locator(".estimate").evaluateAll((all) => all.map((one) => [...one.children].map((part) => part.getBoundingClientRect().width / one.getBoundingClientRect().width)));
  const wanted = [[500 / 2570, 350 / 2570], [1100 / 2570, 800 / 2570], [1, 1]];
  shares.forEach((pair, i) => pair.forEach((share, k) => assert.ok(Math.abs(share - wanted[i][k]) < 0.01, `${share} for ${wanted[i][k]}`)));
  assert.ok(!(await page.innerText("#verdict")).includes("blocked in write"), "the reasons are folded away");
  await page.click(".why-so summary");
  assert.match(await page.innerText("#verdict"), /disk-wait.* \(81 % of the standstill\).*blocked in write for 2\.08 s/);
  await page.close();
});

test("the bands are the phases, at their times and by their names", async () => {
  const page = await open(browser, file, faults);
  const [from, to] = await range(page);
  const bands = await laneOf(page, "Phase").locator(".band").evaluateAll((all) => all.map((one) => {
    const plot = one.parentElement.getBoundingClientRect();
    const box = one.getBoundingClientRect();
    return { name: one.getAttribute("aria-label"), begin: (box.left - plot.left) / plot.width, end: (box.right - plot.left) / plot.width };
  }));
  assert.deepStrictEqual(bands.map((band) => band.name.split(": ").slice(0, -1).join(": ")), PHASES.map(([name]) => name));
  bands.forEach((band, i) => {
    const [, begin, end] = PHASES[i];
    for (const [share, ms] of [[band.begin, begin], [band.end, end]]) assert.ok(Math.abs(share - (ms * MS - from) / (to - from)) < 0.004, `${band.name}: ${share}`);
  });
  assert.match(await laneOf(page, "Phase").innerText(), /memory: writing pages/);
  await pointTo(page, "Bytes", 105);
  assert.strictEqual(await laneOf(page, "Phase").locator(".values").textContent(), "collect");
  await page.close();
});

test("a state is shown by its name, and never as a number", async () => {
  const page = await open(browser, file, faults);
  const states = await laneOf(page, "Process").locator(".band").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label").split(":")[0]));
  assert.deepStrictEqual(states, ["runs", "stands still", "runs"]);
  for (const [ms, state] of [[50, "runs"], [1500, "stands still"]]) {
    await pointTo(page, "Bytes", ms);
    assert.strictEqual(await laneOf(page, "Process").locator(".values").textContent(), state);
  }
  await page.click("#all-charts > summary");
  await page.locator("#charts .chart").first().waitFor();
  const names = await page.locator("#charts .legend button").allTextContents();
  assert.ok(names.length > 10 && !names.includes("phase"), names.join());
  for (const fold of await page.locator("#tables > details > summary").all()) await fold.click();
  const first = await page.locator("#tables td:first-child").allTextContents();
  assert.ok(first.includes("criu_cpu_ns") && !first.includes("phase"));
  await page.close();
});

test("lanes show what the columns hold under the cursor", async () => {
  const page = await open(browser, file, faults);
  await pointTo(page, "CRIU’s time", 1000.4);
  const disk = parseFloat(await valueOf(page, "CRIU’s time", "disk"));
  assert.ok(Math.abs(disk - 75) <= 1, `${disk} % of the time`);
  const running = parseFloat(await valueOf(page, "CRIU’s time", "running"));
  assert.ok(running >= 14 && running <= 22, `${running} %`);
  const rate = await valueOf(page, "Image disk", "written");
  assert.match(rate, / MB\/s$/);
  assert.ok(Math.abs(parseFloat(rate) - 117) < 12, rate);
  const others = parseFloat(await valueOf(page, "CPU of the machine", "others"));
  assert.ok(Math.abs(others - 8) < 1, `others: ${others} %`);
  await pointTo(page, "CRIU’s time", 2700);
  assert.match(await valueOf(page, "CRIU’s time", "running"), /^0 %$/);
  await page.close();
});

test("lanes whose columns are absent, or never changed, are left out", async () => {
  const { criu_tasks, criu_cpu_ns, image_written_bytes, machine_dirty_bytes } = COLUMNS;
  const few = report("few", () => {}, { criu_tasks, criu_cpu_ns, image_written_bytes, machine_dirty_bytes: [...machine_dirty_bytes.slice(0, 2), () => 7] });
  const page = await open(browser, few, faults);
  const lanes = await page.locator(".lane").evaluateAll((all) => all.map((one) => one.dataset.lane).filter(Boolean));
  assert.deepStrictEqual(lanes, ["Phase", "Process", "CRIU’s time", "Bytes", "CPU of the machine"]);
  await page.close();
});

test("every lane, every band and every chart follows a zoom", async () => {
  const page = await open(browser, file, faults);
  await page.click("#all-charts > summary");
  await page.locator("#charts .chart").first().waitFor();
  const bands = () => laneOf(page, "Phase").locator(".band").count();
  assert.strictEqual(await bands(), PHASES.length);
  const box = await boxOf(laneOf(page, "Bytes").locator(".u-over"));
  const [from, to] = await range(page);
  const x = (ms) => box.x + ((ms * MS - from) / (to - from)) * box.width;
  const zoomed = await moved(page, async () => {
    await page.mouse.move(x(500), box.y + 10);
    await page.mouse.down();
    await page.mouse.move(x(600), box.y + 12, { steps: 4 });
    await page.mouse.up();
  });
  assert.ok(Math.abs(zoomed[0] - 500 * MS) < 10 * MS && Math.abs(zoomed[1] - 600 * MS) < 10 * MS, String(zoomed));
  assert.strictEqual(await bands(), 1);
  assert.strictEqual(await laneOf(page, "Process").locator(".band").count(), 1);
  await pointTo(page, "Memory", 550);
  // The cursors of the other lanes and charts must be at the same share of the width.
  const cursors = await page.evaluate(() => [...document.querySelectorAll(".u-over")].map((over) => [
    new DOMMatrix(getComputedStyle(over.querySelector(".u-cursor-x")).transform).e, over.clientWidth]));
  assert.ok(cursors.length > 8);
  for (const [left, width] of cursors) assert.ok(Math.abs(left / width - (550 * MS - zoomed[0]) / (zoomed[1] - zoomed[0])) < 0.03, `${left} of ${width}`);
  await laneOf(page, "Phase").locator(".band").hover();
  const wheeled = await moved(page, () => page.mouse.wheel(0, 200));
  assert.ok(wheeled[1] - wheeled[0] > zoomed[1] - zoomed[0]);
  await moved(page, () => page.click("#reset"));
  assert.strictEqual(await bands(), PHASES.length);
  assert.deepStrictEqual(await moved(page, () => page.getByRole("button", { name: "collect: 30 ms" }).click()), [100 * MS, 130 * MS]);
  await page.close();
});

test("zoomed in, a lane shows single samples", async () => {
  const page = await open(browser, file, faults);
  const { Recording } = await load("recording.js"); // the modules are already installed
  assert.ok(Recording);
  await moved(page, () => page.getByRole("button", { name: "collect: 30 ms" }).click());
  // The gauge of the target's tasks, and the CPU time of CRIU in one millisecond, as the recording has them.
  const grown = (ms) => Math.round(COLUMNS.criu_cpu_ns[2](ms)) / MS;
  await pointTo(page, "CRIU’s time", 114.5);
  const shown = parseFloat(await valueOf(page, "CRIU’s time", "running")) / 100;
  assert.ok(Math.abs(shown - grown(115)) < 0.006, `${shown} for ${grown(115)}`);
  await page.close();
});

test("the unfolded page is short, though the recording has a hundred gaps", async () => {
  const page = await open(browser, file, faults);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height <= 1500, `${height} pixels`);
  await page.close();
});

test("what is folded away opens", async () => {
  const page = await open(browser, file, faults);
  assert.strictEqual(await page.locator("details[open]").count(), 0);
  for (const [title, wanted] of [["Phases in order", /collect.*CRIU's log/s], ["CRIU’s statistics", /pages_written\s+65,564/], ["Steps of the request", /criu/],
    ["Columns", /criu_cpu_ns/], ["Gaps", /late/], ["Metadata", /"kernel": "Linux"/], ["Quality of the recording", /ticks|gap/]]) {
    const fold = page.locator("#tables > details", { has: page.locator("summary", { hasText: title }) });
    await fold.locator("summary").click();
    assert.match(await fold.innerText(), wanted);
  }
  await page.close();
});

for (const [width, scheme] of [[390, "dark"], [390, "light"], [1280, "dark"]]) {
  test(`nothing is wider than ${width} pixels, ${scheme}`, async () => {
    const page = await open(browser, file, faults, { viewport: { width, height: 800 }, colorScheme: scheme });
    assert.strictEqual(await page.evaluate(() => document.documentElement.scrollWidth), width);
    for (const fold of await page.locator("details > summary:visible").all()) await fold.click();
    await settled(page);
    assert.strictEqual(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await page.close();
  });
}

test("the tables below the timeline fit a phone", async () => {
  const page = await open(browser, file, faults, { viewport: { width: 340, height: 800 } });
  const wide = await page.evaluate(() => [...document.querySelectorAll("#short .scroll, #short section")].filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => `${one.className} ${one.textContent.slice(0, 40)} ${one.scrollWidth} > ${one.clientWidth}`));
  assert.deepStrictEqual(wide, []);
  await page.close();
});

test("no label of the timeline's axis is cut, however the page is zoomed", async () => {
  const page = await open(browser, file, faults, { viewport: { width: 390, height: 800 } });
  let seen = 0;
  for (let zoom = 0; zoom < 12; ++zoom) {
    const cut = await page.evaluate(() => {
      const plot = document.querySelector(".lane.axis .plot").getBoundingClientRect();
      return [...document.querySelectorAll(".lane.axis .tick")].filter((tick) => tick.textContent).map((tick) => {
        const box = tick.getBoundingClientRect();
        return { text: tick.textContent, cut: box.left < plot.left - 1 || box.right > plot.right + 1 };
      });
    });
    seen += cut.length;
    assert.deepStrictEqual(cut.filter((one) => one.cut), [], `zoom ${zoom}`);
    await page.keyboard.press("+");
    await settled(page);
  }
  assert.ok(seen > 12, `${seen} labels`);
  await page.close();
});

// Its advice stood there without its first sentence: the lines leave out what took none of the standstill.
test("what took none of the time is not told beyond the lines", async () => {
  const probed = { rule: "kernel-probed", share: 0, evidence: "Before all else, CRIU needed 50 ms to test what the kernel can do.", threshold: "20 ms", advice: "CRIU repeats this each time." };
  for (const told of [false, true]) {
    const probing = report(`probing-${told}`, (meta) => {
      meta.about.verdict = { ...VERDICT, lines: [...VERDICT.lines, ...(told ? [probed.evidence, probed.advice] : [])], findings: [...VERDICT.findings, probed] };
    });
    const page = await open(browser, probing, faults);
    await page.click(".why-so summary");
    const text = await page.innerText("#verdict");
    for (const part of ["Before all else", "repeats this", "kernel-probed"]) assert.strictEqual(text.includes(part), told, `${part}: ${text}`);
    await page.close();
  }
});

test("an older recording, without verdict, phases and columns of what is inside, opens", async () => {
  const { image_written_bytes, phase } = COLUMNS;
  const old = report("old", (meta) => {
    for (const name of ["verdict", "phases", "request_began_monotonic_ns"]) delete meta.about[name];
    delete meta.start_monotonic_ns;
  }, { image_written_bytes, phase });
  const page = await open(browser, old, faults);
  assert.strictEqual(await page.locator("#verdict").count(), 0);
  const bands = await laneOf(page, "Phase").locator(".band").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label").split(":")[0]));
  assert.deepStrictEqual(bands, ["pre-dump", "query-ext-files", "post-dump"]);
  assert.match(await page.innerText("#short"), /Phases, from mark to mark/);
  await page.close();
});

test("metadata of wrong types, and hostile names, are text or left out", async () => {
  const hostile = report("hostile", (meta) => {
    meta.about.job.name = HOSTILE;
    meta.about.phases[0].name = HOSTILE;
    meta.about.phases.push({ name: 5 }, null);
    meta.about.inside = { missing: [HOSTILE, 7] };
    meta.about.verdict = { lines: [HOSTILE, 7, null], short: HOSTILE, frozen_ns: "1", findings: [null, { rule: HOSTILE, evidence: HOSTILE, advice: HOSTILE, also: HOSTILE, estimate_ns: [HOSTILE, 1] }] };
  });
  const page = await open(browser, hostile, faults);
  assert.strictEqual(await page.textContent("#verdict .first"), HOSTILE);
  assert.ok((await page.textContent("#title")).includes(HOSTILE));
  assert.ok((await page.textContent("#short")).includes(HOSTILE));
  for (const fold of await page.locator("details > summary:visible").all()) await fold.click();
  assert.ok((await page.textContent("#tables")).includes(`not seen: ${HOSTILE}`));
  assert.strictEqual(await page.locator("img").count(), 0);
  assert.strictEqual(await page.title(), "hostile.tsv");
  await page.close();
});

test("time per second is never a percentage above 100", async () => {
  const { written } = await load("format.js");
  assert.strictEqual(written(2.4e9, "nanoseconds", true), "2.40 s each second");
  assert.strictEqual(written(170_000, "microseconds", true), "17.0 % of the time");
  const { cores } = await load("format.js");
  assert.deepStrictEqual([cores(0.17), cores(1), cores(2.13)], ["17 %", "100 %", "2.1 cores"]);
  const page = await open(browser, file, faults);
  for (const fold of await page.locator("details > summary:visible").all()) await fold.click();
  await settled(page);
  const shares = (await page.innerText("body")).match(/[\d,.]+ %/g).map((text) => parseFloat(text.replace(",", "")));
  assert.ok(shares.length > 20 && shares.every((share) => share <= 100), shares.filter((share) => share > 100).join());
  await page.close();
});

// The metadata of a recording with histograms.
function withBuckets(meta) {
  delete meta.about.request;
  for (const column of meta.columns) {
    const bucket = column.name.match(/\[(.*)\]/);
    if (bucket) column.fields = { bucket: bucket[1] };
  }
}

test("a histogram has quantiles", async () => {
  const { quantile } = await load("histograms.js");
  const buckets = [{ low: 0, high: 64 }, { low: 65, high: 128 }, { low: 129, high: Infinity }];
  assert.strictEqual(quantile(buckets, [0, 0, 0], 0.5), null);
  assert.strictEqual(quantile(buckets, [100, 0, 0], 0.5), 64);  // before the fix, 32 was invented
  assert.strictEqual(quantile(buckets, [50, 50, 0], 0.5), 64);
  assert.strictEqual(quantile(buckets, [0, 1, 99], 0.9), 129);
  const count = (each, at = BEGAN_MS) => ["counter", "count", (ms) => (ms === at ? each : 0)];
  const columns = { "wait_us[0-64]": count(90), "wait_us[65-128]": count(10, BEGAN_MS + 50), "wait_us[129-inf]": count(0), wait_us_sum: ["counter", "microseconds", (ms) => (ms === BEGAN_MS ? 5000 : 0)], wait_us_count: count(100) };
  const page = await open(browser, report("histogram", withBuckets, columns), faults);
  await page.getByText("Histograms").click();
  const cells = await page.locator("#tables details[open] tbody td").allTextContents();
  assert.deepStrictEqual(cells, ["wait_us", "100", "50 µs", "≤ 64 µs", "≤ 64 µs", "122 µs", "≤ 128 µs"]);
  await settled(page);
  assert.deepStrictEqual(await laneOf(page, "wait_us").locator(".value b").allTextContents(), cells.slice(3, 6));
  assert.strictEqual(await page.locator("#charts .chart").count(), 0, "its buckets are no lines");
  await page.close();
});

test("a heat map shows when values fell into which bucket", async () => {
  const { Heat } = await load("heat.js");
  const { Points } = await load("points.js");
  const bucket = (low, high, idle) => ({ low, high, column: { name: `${low}`, idle } });
  const heat = new Heat([bucket(0, 64, true), bucket(65, 128, false), bucket(129, 256, true), bucket(257, Infinity, false)]);
  assert.strictEqual(heat.rows, 3, "the buckets below the first value are left out");
  assert.deepStrictEqual([65, 128, 192.5, 300, null].map((value) => heat.place(value)), [0, 1, 1.5, 2, null]);
  const points = new Points(["65", "129", "257"]);
  points.times.push(0, 1e9, 3e9, 4e9);
  points.broken.push(false, false, false, true);
  for (const [name, values] of [["65", [0, 5, 5, 9]], ["129", [0, 0, 0, 0]], ["257", [0, 0, 8, 9]]]) points.columns.get(name).push(...values);
  assert.deepStrictEqual(heat.cells(points), [{ row: 0, from: 0, to: 1e9, rate: 5 }, { row: 2, from: 1e9, to: 3e9, rate: 4 }], "none at a gap");

  // Low values first, and high ones from the middle of the request on.
  const until = (from, to) => ["counter", "count", (ms) => (ms >= from && ms < to ? 3 : 0)];
  const [first, last] = [BEGAN_MS, BEGAN_MS + 200];
  const columns = { "wait_us[0-64]": until(first, last), "wait_us[65-128]": until(0, 0), "wait_us[129-256]": until(last, last + 200), wait_us_sum: ["counter", "microseconds", () => 5], wait_us_count: until(first, last + 200) };
  const page = await open(browser, report("heat", withBuckets, columns), faults);
  const lane = laneOf(page, "wait_us");
  await lane.scrollIntoViewIfNeeded();
  await settled(page);
  const [from, to] = await range(page);
  // How much of a cell's color there is in a row of the map at this time, in all channels.
  const colored = (ms, row) => lane.locator("canvas").evaluate((canvas, [across, up]) => {
    const { data } = canvas.getContext("2d").getImageData(Math.round(across * canvas.width), Math.round((1 - up) * canvas.height), 1, 1);
    return data[3] > 0 && data[2] > data[0];
  }, [(ms * MS - from) / (to - from), (row + 0.3) / 3]);
  if (process.env.KYMO_SCREENSHOTS) await lane.screenshot({ path: path.join(process.env.KYMO_SCREENSHOTS, "heat.png") });
  assert.deepStrictEqual([await colored(first + 100, 0), await colored(first + 100, 2), await colored(last + 100, 0), await colored(last + 100, 2)], [true, false, false, true]);
  await page.close();
});

test("no page complained, and none asked for the network", () => {
  assert.deepStrictEqual(faults, []);
});
