// The graphs of kept stack profiles on kymod's page: links, comparisons, and what is saved.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const { gunzipSync } = require("node:zlib");
const { test } = require("node:test");
const { until } = require("./pages.js");
const { END, HOSTILE_FILE, at, faults, instant, kymod, open, opened, shown, whyNoCriu } = require("./profiles.js");

test("a link shows the same graph again: search, colours, inverted, and the frame that fills it", async () => {
  const page = await opened(at(END - 60, END).replace("profiles=", "profiles=job:web"));
  const canvas = page.locator("#profiles-stacks canvas.flame");
  await page.fill("#profiles-stacks input[type=search]", "send");
  await page.selectOption("#profiles-stacks select", "package");
  await canvas.focus();
  await page.keyboard.press("Home");
  for (let i = 0; i < 3; ++i) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await shown(page, ({ zoom }) => zoom && zoom.split(".").length === 3);
  const look = async (one) => ({ frame: await one.textContent("#profiles-stacks .frame-said"), matched: await one.textContent("#profiles-stacks output"), legend: await one.textContent("#profiles-stacks .legend") });
  const seen = await look(page);
  assert.match(seen.frame, /^http::handle\(Request&\) .* \(100\.0 %\)/);
  assert.match(seen.matched, /^16\.7 % matched/);
  const again = await opened(await page.evaluate(() => location.hash));
  assert.deepStrictEqual(await look(again), seen);
  await again.context().close();
  await canvas.focus();
  await page.keyboard.press("i");
  await shown(page, ({ inverted }) => inverted === "1");
  await page.goBack();
  await shown(page, ({ inverted }) => inverted === undefined);
  assert.deepStrictEqual(await look(page), seen);
  assert.strictEqual(await page.getAttribute("#profiles-stacks [aria-pressed]", "aria-pressed"), "false");
  await page.click("#profiles-stacks .around >> nth=0");
  await shown(page, ({ around }) => around);
  const around = await look(page);
  assert.match(around.frame, /^json::parse\(char const\*\) · .*total 75 s/);
  const third = await opened(await page.evaluate(() => location.hash));
  assert.deepStrictEqual(await look(third), around);
  await third.context().close();
  await page.context().close();
});

test("a comparison with the time before is red where the share grew", async () => {
  const page = await opened(at(END - 60, END).replace("profiles=", "profiles=job:web"));
  await page.selectOption("#profiles-compare", "before");
  await shown(page, ({ compare }) => compare === "before");
  const grew = page.locator("#profiles-stacks tr.grew");
  assert.match(await grew.first().innerText(), /62\.5 %\s+83\.3 %\s+\+20\.83\s+json::parse/);
  assert.match(await page.textContent("#profiles-stacks .quality"), /A: 2025-03-04 04:00 to 2025-03-04 05:00: .*B: 2025-03-04 05:00 to 2025-03-04 06:00: /);
  assert.match(await page.textContent("#profiles-stacks .legend"), /share grew/);
  await page.selectOption("#profiles-compare", "");
  await shown(page, ({ compare }) => compare === undefined);
  assert.strictEqual(await grew.count(), 0);
  await page.goto(kymod.url + at(END - 180, END, "&compare=before"));
  await until("it says why there is none", async () => /in the time before this range/.test(await page.textContent("#profiles-stacks .fault")));
  await page.context().close();
});

test("a comparison with any other time is chosen, linked to, and refused if both overlap", async () => {
  const page = await opened(at(END - 60, END - 30).replace("profiles=", "profiles=job:web"));
  const sides = () => page.textContent("#profiles-stacks .quality");
  assert.ok(await page.isHidden("#profiles-other"));
  await page.selectOption("#profiles-compare", "other");
  await shown(page, ({ compare }) => compare === instant(END - 90));
  assert.strictEqual(await page.inputValue("#profiles-other"), "2025-03-04T04:30");
  await page.fill("#profiles-other", "2025-03-04T03:00");
  await shown(page, ({ compare }) => compare === instant(END - 180));
  assert.match(await sides(), /A: 2025-03-04 03:00 to 2025-03-04 03:30: .*B: 2025-03-04 05:00 to 2025-03-04 05:30: /);
  const link = await opened(await page.evaluate(() => location.hash));
  assert.match(await link.textContent("#profiles-stacks .quality"), /A: 2025-03-04 03:00/);
  assert.strictEqual(await link.inputValue("#profiles-compare"), "other");
  await link.context().close();
  await page.fill("#profiles-other", "2025-03-04T05:10");
  await until("it is refused", async () => /overlaps the one that is shown/.test(await page.textContent("#profiles-stacks .fault")));
  await page.selectOption("#profiles-compare", "week");
  await until("nothing is kept of it", async () => /in the range to compare with/.test(await page.textContent("#profiles-stacks .fault")));
  await page.context().close();
});

test("a comparison with a file beside the profiles, and with the stacks of a dump", { skip: whyNoCriu || false }, async () => {
  const page = await opened(at(END - 60, END).replace("profiles=", "profiles=job:web"));
  const sides = (one = page) => one.textContent("#profiles-stacks .quality");
  assert.deepStrictEqual(await page.locator("#profiles-files option").allTextContents(), [HOSTILE_FILE, "release-1.folded"]);
  await page.selectOption("#profiles-compare", "file:release-1.folded");
  await shown(page, ({ compare }) => compare === "file:release-1.folded");
  assert.match(await sides(), /A: release-1\.folded: 1,000 samplesB: 2025-03-04 05:00 to 2025-03-04 06:00: /);
  assert.match(await page.locator("#profiles-stacks tr.grew").first().innerText(), /50\.0 %\s+83\.3 %\s+\+33\.33\s+json::parse/);
  const link = await opened(await page.evaluate(() => location.hash));
  assert.match(await sides(link), /A: release-1\.folded/);
  assert.strictEqual(await link.inputValue("#profiles-compare"), "file:release-1.folded");
  assert.ok(await link.isHidden("#profiles-other"));
  await link.context().close();
  await page.selectOption("#profiles-compare", `file:${HOSTILE_FILE}`);
  await until("it says what is wrong", async () => /is no profile of pprof, or is damaged/.test(await page.textContent("#profiles-stacks .fault")));
  const checkpoint = await page.locator("#profiles-checkpoints option").first().getAttribute("value");
  assert.match(await page.locator("#profiles-checkpoints option").first().textContent(), /^web: dump of \d{4}-/);
  await page.selectOption("#profiles-compare", checkpoint);
  await shown(page, ({ compare }) => compare === checkpoint);
  assert.match(await sides(), /A: checkpoint .*, dump: .* in 900 samples/);
  await page.goBack();
  await page.goBack();
  await shown(page, ({ compare }) => compare === "file:release-1.folded");
  const gone = await open(at(END - 60, END, "&compare=file:gone.pb.gz"));
  await until("it is gone", async () => /gone\.pb\.gz/.test(await gone.textContent("#profiles-stacks .fault")));
  assert.strictEqual(await gone.inputValue("#profiles-compare"), "file:gone.pb.gz");
  await gone.context().close();
  await page.context().close();
});

test("what is shown is saved for other programs", async () => {
  const page = await opened(at(END - 180, END - 60).replace("profiles=", "profiles=job:web"));
  const saved = async (name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#profiles-stacks .files >> text=${name}`)]);
    return { name: download.suggestedFilename(), bytes: fs.readFileSync(await download.path()) };
  };
  const folded = await saved("folded");
  assert.strictEqual(folded.name, "job-web-2025-03-04-03-00.folded");
  assert.deepStrictEqual(folded.bytes.toString().trim().split("\n").sort(), ["process;main;http::handle(Request&);http::reply(Request&);send 3600", "process;main;http::handle(Request&);json::parse(char const*) 6000"]);
  const pprof = await saved("pprof");
  assert.match(gunzipSync(pprof.bytes).toString("latin1"), /json::parse/);
  const scope = JSON.parse((await saved("speedscope")).bytes);
  assert.strictEqual(scope.profiles[0].endValue, 96e9);
  assert.deepStrictEqual(scope.profiles[0].samples.map((stack) => scope.shared.frames[stack[stack.length - 1]].name).sort(), ["json::parse(char const*)", "send"]);
  const svg = (await saved("SVG")).bytes.toString();
  assert.match(svg, /<title>json::parse\(char const\*\): 60 s \(62\.5 %\)<\/title>/);
  assert.match(svg, /Request&amp;/);
  await page.context().close();
});

test("no page complained or asked another address", () => assert.deepStrictEqual(faults, []));
