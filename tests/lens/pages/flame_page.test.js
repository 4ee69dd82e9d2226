// The page of `kymo profile -o FILE.html` in a real Chromium.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch, open } = require("./browser.js");
const { HOSTILE, settled, until } = require("./pages.js");
const { load } = require("./recordings.js");
const { writeStacks } = require("./stacks.js");

const APP = "@/usr/bin/app";
const LIBC = "@/usr/lib/libc.so.6";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-flame-"));
const faults = [];
let browser;
let small;
let large;

function pageOf(name, stacks) {
  const file = path.join(folder, name);
  const input = stacks.map((stack) => stack.join("\t")).join("\n") + "\n";
  fs.writeFileSync(file, execFileSync(process.env.FLAME_PAGE_PROGRAM, { input, maxBuffer: 1 << 30 }));
  return file;
}

// Pseudo-random numbers that are the same in each run.
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

// Makes `count` distinct stacks of 10 to 30 frames.
function manyStacks(count) {
  const next = numbers(1);
  const stacks = new Map();
  while (stacks.size < count) {
    const stack = ["app"];
    for (let depth = 10 + Math.floor(next() * 20); depth > 0; --depth) stack.push(`function_${depth}_${Math.floor(next() * next() * 12)}${APP}`);
    const key = stack.join("\t");
    stacks.set(key, (stacks.get(key) ?? 0) + 1);
  }
  return [...stacks].map(([stack, value]) => [value, stack]);
}

before(async () => {
  small = pageOf("small.html", [
    [50, "app", "main" + APP, "half()" + APP, "burn()" + APP],
    [30, "app", "main" + APP, "third()" + APP, "burn()" + APP],
    [15, "app", "main" + APP, "memcpy" + LIBC],
    [5, "app", "main" + APP, HOSTILE + LIBC, HOSTILE + LIBC],
  ]);
  large = pageOf("large.html", manyStacks(100_000));
  browser = await launch();
});
after(async () => {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
});

const status = (page) => page.textContent("#status");
const focus = async (page) => {
  await page.focus("#flame");
  await page.keyboard.press("Home");
  await settled(page);
};
// The text of the line at the bottom for the frame in this row, in the middle of these shares of
// the width.
async function told(page, row, share) {
  const box = await page.locator("#flame").boundingBox();
  await page.mouse.move(box.x + share * box.width, box.y + row * 18 + 9);
  await settled(page);
  return status(page);
}

test("a frame says its function, its module, its total and its own time", async () => {
  const page = await open(browser, small, faults);
  assert.match(await page.textContent("#subtitle"), /1 s of CPU time in 100 samples of 2 s/);
  assert.match(await page.textContent("#quality"), /2 samples lost/);
  assert.match(await told(page, 0, 0.5), /^all1 s \(100\.0 %\)/);
  assert.match(await told(page, 3, 0.3), /^half\(\) · \/usr\/bin\/apptotal 500 ms \(50\.0 %\), self 0 ns/);
  assert.match(await told(page, 4, 0.3), /^burn\(\) · .*total 500 ms \(50\.0 %\), self 500 ms/);
  await page.close();
});

test("the table has each function once, sorted by its own or by its total time", async () => {
  const page = await open(browser, small, faults);
  const rows = () => page.locator("#hottest tbody tr").allTextContents();
  assert.deepStrictEqual((await rows()).slice(0, 2), ["80.0 %80.0 %burn()app", "15.0 %15.0 %memcpylibc.so.6"]);
  await page.click("#hottest th button >> text=Total");
  assert.strictEqual((await rows())[0], "0.00 %100.0 %mainapp");
  assert.ok((await rows()).includes(`5.00 %5.00 %${HOSTILE}libc.so.6`));
  await page.close();
});

test("keys choose, zoom, go back, invert and search", async () => {
  const page = await open(browser, small, faults);
  await focus(page);
  for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowDown"); // each time to the widest frame
  assert.match(await status(page), /^half\(\)/);
  await page.keyboard.press("ArrowRight");
  assert.match(await status(page), /^memcpy/);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  assert.match(await told(page, 4, 0.98), /^burn\(\) · .*total 500 ms/);
  await page.keyboard.press("Escape");
  assert.match(await told(page, 4, 0.98), /^burn\(\) · .*total 300 ms/);
  await page.keyboard.press("i");
  assert.strictEqual(await page.getAttribute("#inverted", "aria-pressed"), "true");
  assert.match(await told(page, 1, 0.1), /^burn\(\) · .*self 800 ms \(80\.0 %\)/);
  assert.match(await told(page, 2, 0.1), /^half\(\) · .*500 ms \(50\.0 %\) of burn\(\) is called from here/);
  await page.keyboard.press("/");
  await page.keyboard.type("HALF");
  assert.strictEqual(await page.textContent("#matched"), "50.0 % matched (500 ms)");
  await page.keyboard.press("Escape");
  assert.strictEqual(await page.textContent("#matched"), "");
  await page.close();
});

test("a function stands between what calls it and what it calls", async () => {
  const page = await open(browser, small, faults);
  await page.click("#hottest tbody tr:first-child .around");
  assert.match(await told(page, 3, 0.5), /^burn\(\) · .*total 800 ms \(80\.0 %\), self 800 ms/);
  assert.match(await told(page, 2, 0.1), /^half\(\) · .*500 ms \(50\.0 %\) of burn\(\) is called from here/);
  assert.match(await told(page, 2, 0.9), /^third\(\) · .*300 ms \(30\.0 %\) of burn\(\) is called from here/);
  assert.match(await told(page, 0, 0.1), /^app/);
  await page.mouse.click((await page.locator("#flame").boundingBox()).x + 20, (await page.locator("#flame").boundingBox()).y + 2 * 18 + 9);
  assert.match(await status(page), /^half\(\) · .*total 500 ms/); // now it is in the middle
  assert.match(await told(page, 3, 0.5), /^burn\(\) · .*total 500 ms/);
  await page.focus("#flame");
  await page.keyboard.press("Escape");
  assert.match(await told(page, 0, 0.5), /^all1 s/);
  await page.close();
});

test("keys go up to callers and down to what is called", async () => {
  const page = await open(browser, small, faults);
  await focus(page);
  for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("s");
  assert.match(await status(page), /^half\(\) · .*total 500 ms/);
  await page.keyboard.press("ArrowUp");
  assert.match(await status(page), /^main · .*500 ms \(50\.0 %\) of half\(\) is called from here/);
  await page.keyboard.press("ArrowDown"); // back to the frame in the middle
  await page.keyboard.press("ArrowDown");
  assert.match(await status(page), /^burn\(\) · .*total 500 ms/);
  await page.keyboard.press("Enter");
  assert.match(await status(page), /^burn\(\) · .*total 800 ms/);
  await page.keyboard.press("ArrowRight"); // it is the only frame in its row
  assert.match(await status(page), /^burn\(\)/);
  await page.keyboard.press("0");
  assert.match(await status(page), /^all/);
  await page.close();
});

test("of a function that calls itself, the time counts once", async () => {
  const { FlameTree, sandwiched } = await load("flame_tree.js");
  const tree = new FlameTree({ modules: ["m"], functions: [["main", 0], ["again", 0], ["leaf", 0]], tree: { depths: [0, 1, 2, 3, 1], functions: [0, 1, 1, 2, 2], self: [1, 2, 4, 8, 16] } });
  const { rows, middle } = sandwiched(tree, 1, 1000);
  assert.strictEqual(middle, 1);
  assert.deepStrictEqual(rows.map((row) => row.map((box) => [tree.functions[box.frame.fn].name, box.frame.value])), [[["main", 14]], [["again", 14]], [["again", 12]], [["leaf", 8]]]);
});

test("a function that is found in a stack twice is counted once", async () => {
  const page = await open(browser, small, faults);
  await page.fill("#search", "onerror");
  assert.strictEqual(await page.textContent("#matched"), "5.00 % matched (50 ms)");
  await page.close();
});

test("names are text: no markup of a profile becomes part of the page", async () => {
  const page = await open(browser, small, faults);
  assert.strictEqual(await page.locator("img").count(), 0);
  assert.strictEqual(await page.textContent("h1"), HOSTILE);
  await told(page, 3, 0.02);
  assert.strictEqual(await page.locator("img").count(), 0);
  assert.strictEqual(await page.title(), HOSTILE);
  await page.close();
});

test("frames narrower than a pixel are one, and seen when their caller is wide", async () => {
  const { FlameTree, placed } = await load("flame_tree.js");
  const tree = new FlameTree({ modules: ["", "m"], functions: [["app", 0], ["wide", 1], ["a", 1], ["b", 1], ["c", 1]],
    tree: { depths: [0, 1, 2, 2, 2, 1], functions: [0, 1, 2, 3, 4, 4], self: [0, 0, 2, 3, 4, 991] } });
  const rows = placed(tree, tree.root(false), 200);
  const merged = rows[3];
  assert.deepStrictEqual(merged.map((box) => [box.merged, box.frame.value]), [[3, 9]]);
  const zoomed = placed(tree, rows[2][0].frame, 200);
  assert.deepStrictEqual(zoomed[3].map((box) => [tree.functions[box.frame.fn].name, box.merged]), [["a", 0], ["b", 0], ["c", 0]]);
  // In the inverted graph, all places of `c` are one frame.
  const callers = placed(tree, tree.root(true), 1000);
  assert.deepStrictEqual(callers[1].map((box) => [tree.functions[box.frame.fn].name, box.frame.value]), [["c", 995], ["b", 3], ["a", 2]]);
});

test("packages of Go, namespaces of C++, else the module", async () => {
  const { packageOf } = await load("flame_tree.js");
  const of = (name) => packageOf({ name, module: "lib.so" });
  assert.strictEqual(of("net/http.(*conn).serve"), "net/http");
  assert.strictEqual(of("runtime.mallocgc"), "runtime");
  assert.strictEqual(of("void kymo::stacks::add<std::string>(int)"), "kymo::stacks");
  assert.strictEqual(of("memcpy"), "lib.so");
});

test("of memory the values are bytes", async () => {
  const profile = path.join(folder, "heap.pb.gz");
  writeStacks(profile, [["", "", 3, ["keep", "main"]], ["", "", 1, ["make", "main"]]], [], 0, [["inuse_objects", "count"], ["inuse_space", "bytes"]]);
  const file = path.join(folder, "heap.html");
  execFileSync(process.env.KYMO_PROGRAM, ["profile", "--from", profile, "-o", file, "-q"]);
  const page = await open(browser, file, faults);
  assert.strictEqual(await page.textContent("#subtitle"), "38.1 MiB of memory in use in 4 objects of 2.71 s");
  await page.fill("#search", "keep");
  assert.strictEqual(await page.textContent("#matched"), "75.0 % matched (28.6 MiB)");
  await page.close();
});

test("a hundred thousand stacks are drawn, and can be zoomed and inverted", async () => {
  const page = await open(browser, large, faults);
  const opened = await page.evaluate(() => performance.now());
  console.log(`# opened after ${Math.round(opened)} ms`);
  assert.match(await page.textContent("#subtitle"), /in 1\d\d,\d\d\d samples/);
  await focus(page);
  await page.keyboard.press("i");
  assert.match(await told(page, 1, 0.01), /self/);
  await page.close();
});

test("a narrow screen shows graph and table, without scrolling sideways", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1280]) {
      const page = await open(browser, small, faults, { viewport: { width, height: 800 }, colorScheme });
      await until("it fits", () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      assert.ok((await page.locator("#flame").boundingBox()).width > width / 2);
      if (process.env.KYMO_SCREENSHOTS) await page.screenshot({ path: path.join(process.env.KYMO_SCREENSHOTS, `flame-${width}-${colorScheme}.png`) });
      await page.close();
    }
  }
});

test("no page complained or asked the network for anything", () => assert.deepStrictEqual(faults, []));
