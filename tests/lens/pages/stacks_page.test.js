// The stacks of a dump on the page of its recording, in a real Chromium.
"use strict";
const assert = require("node:assert");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch, open } = require("./browser.js");
const { HOSTILE, settled } = require("./pages.js");
const { PHASES, writeRequest } = require("./requests.js");
const { writeStacks } = require("./stacks.js");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-stacks-"));
const faults = [];
const WRITING = "memory: writing pages";
const STACKS = [
  [WRITING, "criu", 60, ["copy_page", "splice", "main"]],
  [WRITING, "criu", 30, ["write", "splice", "main"]],
  [WRITING, "target", 10, ["parasite"]],
  ["freeze", "criu", 3, ["ptrace", "main"]],
  ["freeze", "target", 1, [HOSTILE]],
];
let browser;
let file;

function report(name, stacks, lost = 0) {
  const recording = writeRequest(folder, name);
  if (stacks !== null) writeStacks(path.join(folder, name + ".pb.gz"), stacks, PHASES.map(([phase]) => phase), lost);
  const page = path.join(folder, name + ".html");
  execFileSync(process.env.KYMO_PROGRAM, ["report", recording, "--html", page, "-q"], { stdio: "pipe" });
  return page;
}

before(async () => {
  file = report("dump", STACKS);
  browser = await launch();
});
after(async () => {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
});

const choice = (page, phase) => page.locator(`#stacks .choices button[data-phase="${phase}"]`);
const said = (page) => page.textContent("#stacks .said");
// The text of the line for the frame in the middle of this share of the width.
async function told(page, row, share) {
  const box = await page.locator("#stacks canvas").boundingBox();
  await page.mouse.move(box.x + share * box.width, box.y + row * 18 + 9);
  await settled(page);
  return page.textContent("#stacks .frame-said");
}

test("the phase with most samples comes first, as a flame graph of CRIU and the target", async () => {
  const page = await open(browser, file, faults);
  assert.strictEqual(await said(page), `${WRITING}: 100 samples`);
  assert.strictEqual(await choice(page, WRITING).getAttribute("aria-pressed"), "true");
  assert.deepStrictEqual(await page.locator("#stacks .choices button").evaluateAll((all) => all.map((one) => one.dataset.phase)), ["freeze", WRITING], "in the order of time");
  await page.locator("#stacks canvas").scrollIntoViewIfNeeded();
  assert.match(await told(page, 1, 0.4), /^CRIU.*total 900 ms \(90\.0 %\)/);
  assert.match(await told(page, 1, 0.95), /^target.*total 100 ms \(10\.0 %\)/);
  const hottest = await page.innerText("#stacks .hottest");
  assert.ok(hottest.indexOf("copy_page") < hottest.indexOf("write"), hottest);
  await page.close();
});

test("a click on a phase in the timeline or in the table chooses its stacks", async () => {
  const page = await open(browser, file, faults);
  await page.locator('.lane[data-lane="Phase"] .band[aria-label^="freeze"]').click();
  assert.match(await said(page), /^freeze: 4 samples, too few/);
  await page.locator("#short button", { hasText: WRITING }).click();
  assert.strictEqual(await said(page), `${WRITING}: 100 samples`);
  assert.ok(await page.locator("#stacks canvas").isVisible());
  await page.locator("#short button", { hasText: "collect" }).click();
  assert.match(await said(page), /^collect: no samples/);
  assert.ok(!(await page.locator("#stacks canvas").isVisible()));
  await page.close();
});

test("few samples are a table with the counts, and names are text", async () => {
  const page = await open(browser, file, faults);
  await choice(page, "freeze").click();
  const rows = await page.locator("#stacks tbody tr").evaluateAll((all) => all.map((one) => [...one.children].map((cell) => cell.textContent)));
  assert.deepStrictEqual(rows[0], ["ptrace", "criu", "3", "3"]);
  assert.deepStrictEqual(rows[1], [HOSTILE, "criu", "1", "1"]);
  assert.ok(!(await page.locator("#stacks canvas").isVisible()));
  assert.notStrictEqual(await page.title(), "taken");
  await page.close();
});

test("keys move in the graph, and leave the charts alone", async () => {
  const page = await open(browser, file, faults);
  const range = await page.textContent("#range");
  await page.focus("#stacks canvas");
  for (const key of ["Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  assert.match(await page.textContent("#stacks .frame-said"), /^splice/);
  await page.keyboard.press("Enter");
  assert.match(await page.textContent("#stacks .frame-said"), /^splice/);
  await page.keyboard.press("Escape");
  assert.match(await page.textContent("#stacks .frame-said"), /^main/);
  assert.strictEqual(await page.textContent("#range"), range);
  await page.close();
});

test("a narrow screen needs no scrolling to the side", async () => {
  const page = await open(browser, file, faults);
  await page.setViewportSize({ width: 390, height: 800 });
  await settled(page);
  const { width, canvas } = await page.evaluate(() => ({ width: document.documentElement.scrollWidth, canvas: document.querySelector("#stacks canvas").clientWidth }));
  assert.ok(width <= 390, `${width}`);
  assert.ok(canvas > 300 && canvas <= 390, `${canvas}`);
  await page.close();
});

test("what was lost is said; without a profile there is no section", async () => {
  let page = await open(browser, report("lost", STACKS, 7), faults);
  assert.match(await page.innerText("#stacks"), /104 samples of CRIU and of the target, one each 10 ms of CPU time; 7 samples lost/);
  await page.close();
  page = await open(browser, report("none", null), faults);
  assert.ok(!(await page.locator("#stacks").isVisible()));
  await page.close();
});

test("a damaged profile is one line, and the rest of the page is there", async () => {
  const recording = path.join(folder, "dump.tsv");
  fs.writeFileSync(path.join(folder, "dump.pb.gz"), "no profile");
  const broken = path.join(folder, "broken.html");
  execFileSync(process.env.KYMO_PROGRAM, ["report", recording, "--html", broken, "-q"], { stdio: "pipe" });
  const page = await open(browser, broken, faults);
  assert.match(await page.innerText("#stacks .warning"), /dump\.pb\.gz is no profile of pprof, or is damaged/);
  assert.ok(await page.locator("#timeline").isVisible());
  await page.close();
});

test("nothing was wrong in the browser's console", () => assert.deepStrictEqual(faults, []));
