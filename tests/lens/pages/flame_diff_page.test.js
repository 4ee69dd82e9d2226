// The page of `kymo diff A B --html FILE` of two stack profiles in a real Chromium.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch, open } = require("./browser.js");
const { HOSTILE, settled, until } = require("./pages.js");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-flame-diff-"));
const faults = [];
let browser;
let page;

function profileOf(name, kind, stacks) {
  const file = path.join(folder, name);
  const input = stacks.map(([samples, ...functions]) => [samples, ...functions].join("\t")).join("\n") + "\n";
  execFileSync("/usr/bin/python3", [path.join(process.env.KYMO_SOURCE, "tests/cli/pprof_of.py"), file, kind], { input });
  return file;
}

// A thousand samples of 10 ms on each side. The shares in B from left to right are: cold 20 %, fresh 8 %, hot 52
// %, same 20 %.
function pageOf(name, kind) {
  const a = profileOf(name + "-a.pb.gz", kind, [[400, "main", "hot", "burn"], [300, "main", "cold"], [90, "main", "gone"], [208, "main", "same"], [2, "main", "same", HOSTILE]]);
  const b = profileOf(name + "-b.pb.gz", kind, [[520, "main", "hot", "burn"], [200, "main", "cold"], [80, "main", "fresh"], [200, "main", "same"]]);
  const file = path.join(folder, name + ".html");
  execFileSync(process.env.KYMO_PROGRAM, ["diff", a, b, "--html", file], { stdio: "pipe" });
  return file;
}

before(async () => {
  browser = await launch();
  page = await open(browser, pageOf("cpu", "cpu"), faults);
});
after(async () => {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
});

const COLD = 0.1;
const FRESH = 0.24;
const HOT = 0.54;
const SAME = 0.9;

// The text of the line at the bottom for the frame in this row, at this share of the width.
async function told(on, row, share) {
  const box = await on.locator("#flame").boundingBox();
  await on.mouse.move(box.x + share * box.width, box.y + row * 18 + 9);
  await settled(on);
  return on.textContent("#status");
}

// The colour of that frame (red, green or grey), taken at the lower edge of its box, where there is no text.
async function colourAt(on, row, share) {
  await on.mouse.move(0, 0);
  await settled(on);
  const [red, green, blue] = await on.evaluate(([at, down]) => {
    const canvas = document.getElementById("flame");
    const scale = canvas.width / canvas.clientWidth;
    return [...canvas.getContext("2d").getImageData(Math.round(at * canvas.width), Math.round((down * 18 + 15) * scale), 1, 1).data];
  }, [share, row]);
  const most = Math.max(red, green, blue);
  return most - Math.min(red, green, blue) < 15 ? "grey" : most === red ? "red" : most === green ? "green" : "blue";
}

test("the line at the bottom has both values and the verdict", async () => {
  assert.match(await told(page, 0, 0.5), /^allA 100\.0 % \(10 s\), B 100\.0 % \(10 s\)$/);
  assert.match(await told(page, 2, HOT), /^hot · \/usr\/bin\/appA 40\.0 % \(4 s\), B 52\.0 % \(5\.20 s\): \+12\.00 points, share grew/);
  assert.match(await told(page, 2, COLD), /^cold · .*A 30\.0 % \(3 s\), B 20\.0 % \(2 s\): −10\.00 points, share shrank/);
  assert.match(await told(page, 2, FRESH), /^fresh · .*A 0\.00 % \(0 ns\), B 8\.00 % \(800 ms\): \+8\.00 points, new/);
  assert.match(await told(page, 2, SAME), /^same · .*A 21\.0 % \(2\.10 s\), B 20\.0 % \(2 s\): −1\.00 points, within noise/);
});

test("red where a share grew, green where it shrank, grey within noise, in light and in dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await settled(page);
    const seen = [];
    for (const share of [HOT, FRESH, COLD, SAME]) seen.push(await colourAt(page, 2, share));
    assert.deepStrictEqual(seen, ["red", "red", "green", "grey"], colorScheme);
  }
  await page.emulateMedia({ colorScheme: "light" });
  assert.deepStrictEqual(await page.locator("#legend li").allTextContents(), ["+ share grew", "− share shrank", "within noise, or too few samples"]);
  await page.selectOption("#colour", "module");
  assert.strictEqual(await colourAt(page, 2, COLD), await colourAt(page, 2, HOT));
  await page.selectOption("#colour", "change");
});

test("the name of a frame has a sign, so that the colour is not alone", async () => {
  const { FlameDiff } = await import(path.join(process.env.KYMO_SOURCE, "src/lens/pages/flame_diff.js"));
  const { FlameTree } = await import(path.join(process.env.KYMO_SOURCE, "src/lens/pages/flame_tree.js"));
  // One function that grew, one that shrank, and one that did neither.
  const stacks = { scale: 1, unit: "ns", modules: ["m"], functions: [["a", 0], ["b", 0], ["c", 0]],
    tree: { depths: [0, 0, 0], functions: [0, 1, 2], self: [60, 10, 30], before: [30, 40, 30], verdicts: [1, 2, 0] } };
  const tree = new FlameTree(stacks);
  const diff = new FlameDiff(stacks, { tested: true, self: { before: [], after: [], verdicts: [] } }, tree);
  assert.deepStrictEqual(tree.below(tree.root(false)).map((frame) => diff.sign(frame)), ["+ ", "− ", ""]);
});

test("the table has own or total shares, with new and vanished functions", async () => {
  const rows = () => page.locator("#hottest tbody tr").allTextContents();
  assert.deepStrictEqual((await rows()).slice(0, 4), ["40.0 %52.0 %+12.00burnshare grew · 4 s → 5.20 s · app", "30.0 %20.0 %−10.00coldshare shrank · 3 s → 2 s · app",
    "9.00 %0.00 %−9.00gonevanished · 900 ms → 0 ns · app", "0.00 %8.00 %+8.00freshnew · 0 ns → 800 ms · app"]);
  assert.ok((await rows()).includes(`0.20 %0.00 %−0.20${HOSTILE}not tested · only in A · 20 ms → 0 ns · app`));
  await page.click("#hottest button >> text=Total");
  assert.ok((await rows()).includes("40.0 %52.0 %+12.00hotshare grew · 4 s → 5.20 s · app"));
  await page.click("#hottest button >> text=Self");
  assert.strictEqual(await page.locator("img").count(), 0);
});

test("it says what was compared, and how", async () => {
  assert.strictEqual(await page.textContent("h1"), "cpu-a.pb.gz → cpu-b.pb.gz");
  const said = await page.textContent("#quality");
  assert.match(said, /A: .*cpu-a\.pb\.gz: 10 s of CPU time in 1,000 samples/);
  assert.match(said, /Fisher's, on numbers of samples; p corrected \(Holm\) for 6 frames/);
  assert.match(said, /as wide as its share of B/);
});

test("inverted, the innermost functions have their own shares, and their callers both values", async () => {
  await page.focus("#flame");
  await page.keyboard.press("i");
  assert.match(await told(page, 1, 0.1), /^burn · .*A 40\.0 % \(4 s\), B 52\.0 % .*grew/);
  assert.match(await told(page, 2, 0.1), /^hot · .*A 40\.0 % \(4 s\), B 52\.0 % .*not tested/);
  assert.strictEqual(await colourAt(page, 1, 0.1), "red");
  assert.strictEqual(await colourAt(page, 2, 0.1), "grey");
  await page.keyboard.press("i");
});

test("of waits nothing is tested, and every difference has its colour", async () => {
  const waits = await open(browser, pageOf("waits", "wait"), faults);
  assert.match(await waits.textContent("#quality"), /Nothing was tested: of waits only the sum is known/);
  assert.match(await told(waits, 2, SAME), /−1\.00 points, not tested/);
  assert.strictEqual(await colourAt(waits, 2, SAME), "green");
  await waits.close();
});

test("a narrow screen shows graph and table, without scrolling sideways", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1280]) {
      const one = await open(browser, path.join(folder, "cpu.html"), faults, { viewport: { width, height: 800 }, colorScheme });
      await until("it fits", () => one.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      assert.ok((await one.locator("#flame").boundingBox()).width > width / 2);
      if (process.env.KYMO_SCREENSHOTS) {
        await told(one, 2, HOT);
        await one.screenshot({ path: path.join(process.env.KYMO_SCREENSHOTS, `flame-diff-${width}-${colorScheme}.png`) });
      }
      await one.close();
    }
  }
});

test("no page complained or asked the network for anything", () => assert.deepStrictEqual(faults, []));
