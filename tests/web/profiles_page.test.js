// The view of kept stack profiles on kymod's page. The profiles come from page_profiles.cc.
"use strict";
const assert = require("node:assert");
const { execFileSync, spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { gunzipSync } = require("node:zlib");
const { after, before, test } = require("node:test");
const { launch } = require("./browser.js");
const { Kymod, whyNoCriu } = require("./kymod.js");
const { boxOf, settled, until } = require("./pages.js");
const { load } = require("./recordings.js");

const HOSTILE = "<img src=x onerror=document.title='taken'>";
const HOSTILE_FILE = "<img src=x onerror=document.title='taken'>.pb.gz";
const END = 29_017_800; // 2025-03-04 06:00 UTC
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-profiles-"));
const faults = [];
const kymod = new Kymod(["--profiles", folder, "--http-profiles"]);
const hidden = new Kymod(["--profiles", folder]); // a kymod that does not serve the profiles
const none = new Kymod();
const all = [kymod, hidden, none];
let browser;
let lock;

before(async () => {
  fs.chmodSync(folder, 0o700);
  // Locks the folder like another kymod. So no kymod takes stacks here, because unwinding those of the browser
  // takes much time.
  lock = spawn("flock", [folder, "sh", "-c", "echo locked; cat"], { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise((resolve, reject) => lock.on("error", reject).stdout.once("data", resolve));
  execFileSync(process.env.PAGE_PROFILES_PROGRAM, [path.join(folder, "profiles.db"), String(END)]);
  fs.mkdirSync(path.join(folder, "files"));
  const folded = path.join(folder, "files", "release-1.folded");
  fs.writeFileSync(folded, "process;main;http::handle(Request&);json::parse(char const*) 500\nprocess;main;http::handle(Request&);http::reply(Request&);send 500\n");
  fs.utimesSync(folded, 1, 1); // the older file is the last one of the list
  fs.writeFileSync(path.join(folder, "files", HOSTILE_FILE), "hello");
  browser = await launch();
  await Promise.all(all.map((one) => one.start()));
  if (whyNoCriu) return;
  await kymod.run("web", 4);
  const dump = JSON.parse(kymod.kymo("dump", "process", "web", "--leave-running", "--json"));
  // A profile as --profiling-stacks makes it.
  const stacks = path.join(folder, "stacks.pb.gz");
  execFileSync(process.env.KYMO_PROGRAM, ["profiles", "web", "--directory", folder, "--from", "2025-03-04 05:00", "--to", "2025-03-04 05:05", "-q", "-o", stacks], { env: { ...process.env, TZ: "UTC" } });
  fs.copyFileSync(stacks, path.join(dump.directory, "recordings", "dump.pb.gz"));
});
after(async () => {
  await browser.close();
  for (const one of all) await one.end();
  lock.stdin.end();
  fs.rmSync(folder, { recursive: true });
});

const instant = (minute) => new Date(minute * 60_000).toISOString().slice(0, 16) + "Z";
const at = (from, to, rest = "") => `#profiles=&type=cpu&from=${instant(from)}&to=${instant(to)}${rest}`;

async function open(hash, options = {}, { url } = kymod) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "UTC", ...options });
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && !/status of (400|403|404|409|500)/.test(message.text()) && faults.push(message.text()));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || all.some((one) => one.address === new URL(request.url()).host) || faults.push(request.url()));
  await page.goto(url + hash);
  return page;
}
// Waits until the screen shows everything that the address names.
async function shown(page, wanted = () => true) {
  await until(`the view is shown: ${wanted}`, () => page.evaluate(() => document.getElementById("profiles").dataset.shown === location.hash && !document.getElementById("profiles").hasAttribute("aria-busy"))
    .then(async (done) => done && wanted(await place(page))));
  await settled(page);
}
// The parameters of the address.
const place = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
const said = (page) => page.textContent("#profiles-stacks .said");
const services = (page) => page.locator(".services button:visible span:first-child").allTextContents();
const chosen = (page) => page.locator(".services button[aria-pressed=true]").getAttribute("data-service");
const opened = async (hash, options) => {
  const page = await open(hash, options);
  await shown(page);
  return page;
};

test("the start page leads to the last hour of all services, if kymod keeps profiles", async () => {
  const page = await open("#jobs");
  await page.click("nav a[href='#profiles']");
  await shown(page);
  const { from, to, type } = await place(page);
  assert.strictEqual(Date.parse(to) - Date.parse(from), 3_600_000);
  assert.ok(Math.abs(Date.parse(to) - Date.now()) < 600_000, to);
  assert.strictEqual(type, "cpu");
  assert.strictEqual(await page.getAttribute("nav a[href='#profiles']", "aria-current"), "page");
  assert.match(await page.textContent("#profiles-stacks .fault"), /^all services: there are no samples of CPU time in this range/);
  assert.match(await page.textContent("#profiles-kept"), /^170 minutes are kept, from 2025-03-04 03:00 to 2025-03-04 06:00, in /);
  await page.context().close();
});

test("a page without profiles has no link to them", async () => {
  const page = await open("#live", {}, none);
  await page.waitForFunction(() => document.documentElement.dataset.state === "live");
  assert.ok(await page.isHidden("#to-profiles"));
  await page.goto(none.url + "#profiles");
  await until("the reason is said", async () => (await page.textContent("#profiles-fault")) === "kymod keeps no profiles: start it with --profiles=FOLDER");
  await page.context().close();
});

test("a page that may not show them says which flag is needed", async () => {
  const page = await open("#profiles", {}, hidden);
  await until("the reason is said", async () => /start kymod with --http-profiles/.test(await page.textContent("#profiles-fault")));
  assert.ok(await page.isHidden("#profiles-shown"));
  await page.context().close();
});

test("services are listed, the hottest first, found by a part of their name, and chosen", async () => {
  const page = await opened(at(END - 180, END - 60));
  assert.deepStrictEqual((await services(page)).slice(0, 4), ["all services", "job:web", "process:sh", `process:${HOSTILE}`]);
  assert.match(await page.locator(".services button").nth(1).innerText(), /^job:web\s+96 s\s+68 %$/);
  assert.match(await said(page), /^14\d s of CPU time in 14,040 samples of 7200 s$/);
  await page.fill("#profiles-services input", "SH");
  assert.deepStrictEqual(await services(page), ["all services", "process:sh"]);
  await page.focus(".services button");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await shown(page, ({ profiles }) => profiles === "process:sh");
  assert.match(await said(page), /^24 s of CPU time in 2,400 samples/);
  assert.strictEqual(await chosen(page), "process:sh");
  assert.strictEqual(await page.evaluate(() => document.activeElement.dataset.service), "process:sh", "the focus stays");
  await page.goBack();
  await shown(page, ({ profiles }) => profiles === "");
  assert.match(await said(page), /14,040 samples/);
  await page.goForward();
  await shown(page, ({ profiles }) => profiles === "process:sh");
  assert.match(await said(page), /2,400 samples/);
  await page.context().close();
});

test("an address that is wrong or says little is completed", async () => {
  const { hashOf, placeIn } = await load("profiles/place.js");
  const now = END * 60_000 - 30_000; // a time in the minute before END
  const hour = "#profiles=&type=cpu&from=2025-03-04T05:00Z&to=2025-03-04T06:00Z";
  for (const hash of ["#profiles", "#profiles=&type=&from=soon&to=&zoom=&search=", "#profiles=&from=2030-01-01T00:00Z"]) assert.strictEqual(hashOf(placeIn(hash, now)), hour, hash);
  const all = "#profiles=job:a%26b%3Dc&type=off-cpu&from=2025-03-04T05:00Z&to=2025-03-04T06:00Z&compare=before&search=%3Cimg%3E&inverted=1&colour=package&zoom=a.b&around=c";
  assert.strictEqual(hashOf(placeIn(all, 0)), all);
  assert.strictEqual(placeIn(all, 0).service, "job:a&b=c");
});

test("names are text: no markup of a profile becomes part of the page", async () => {
  const page = await opened(at(END - 180, END).replace("profiles=", `profiles=${encodeURIComponent("process:" + HOSTILE)}`));
  assert.strictEqual(await page.locator("img").count(), 0);
  assert.strictEqual(await chosen(page), `process:${HOSTILE}`);
  assert.match(await page.textContent("#profiles-stacks .hottest"), /<img src=x/);
  assert.strictEqual(await page.title(), "Kymograph");
  await page.context().close();
});

test("waits are another kind", async () => {
  const page = await opened(at(END - 60, END));
  assert.deepStrictEqual(await page.locator("#profiles-kinds button").allTextContents(), ["CPU time", "waiting"]);
  await page.click("#profiles-kinds >> text=waiting");
  await shown(page, ({ type }) => type === "off-cpu");
  assert.match(await said(page), /^\d+ s of waiting in 20,000 waits/);
  assert.match(await page.textContent("#profiles-stacks .hottest"), /epoll_wait/);
  assert.deepStrictEqual(await services(page), ["all services", "job:web"]);
  await page.context().close();
});

test("a range that is dragged over the chart is chosen, and Back goes back", async () => {
  const page = await opened(at(END - 180, END));
  const box = await boxOf(page.locator("#profiles-chart .u-over"));
  await page.mouse.move(box.x + box.width / 3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + (box.width * 2) / 3, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await shown(page, ({ from }) => from !== instant(END - 180));
  const { from, to } = await place(page);
  const near = (text, minute) => assert.ok(Math.abs(Date.parse(text) / 60_000 - minute) <= 2, `${text} is not near ${instant(minute)}`);
  near(from, END - 120);
  near(to, END - 60);
  assert.strictEqual(Number((await said(page)).match(/in ([\d,]+) samples/)[1].replace(",", "")), 117 * (Date.parse(to) - Date.parse(from)) / 60_000 +
    (Date.parse(to) / 60_000 > END - 60 ? 100 * (Date.parse(to) / 60_000 - END + 60) : 0));
  await page.goBack();
  await shown(page, (now) => now.from === instant(END - 180));
  await page.context().close();
});

test("keys on the chart move and widen the range, and a gap is drawn as a gap", async () => {
  const page = await opened(at(END - 60, END));
  await page.focus("#profiles-chart .chart");
  await page.keyboard.press("PageUp");
  await shown(page, ({ to }) => to === instant(END - 60));
  await page.keyboard.press("0"); // shows all that is kept
  await shown(page, ({ from }) => from === instant(END - 180));
  const { linesOf, gapsOf } = await load("profiles/steps.js");
  const minute = 6e10;
  const totals = { from_unix_ns: 0, to_unix_ns: 3.5 * minute, step_ns: minute, covered_ns: [minute, 0, 0, minute / 2], samples: [], unit: "ns", level: false, ns: [minute / 4, 0, 0, minute / 2] };
  assert.deepStrictEqual(linesOf(totals), { times: [0, 59_999, 60_000, 119_999, 120_000, 179_999, 180_000, 209_999], values: [[2.5e8, 2.5e8, null, null, null, null, 1e9, 1e9]] });
  const level = { ...totals, unit: "bytes", level: true, bytes: [500, 0, 0, 100] };
  assert.deepStrictEqual(linesOf(level).values, [[500, 500, null, null, null, null, 200, 200]], "a level is what there was, whatever the time");
  assert.deepStrictEqual(gapsOf(totals, 0, 210_000), [{ start_ns: 60_000, end_ns: 180_000, ticks: 0, cause: "" }]);
  assert.deepStrictEqual(gapsOf(totals, 0, 60_000), [], "what is not written yet is no gap");
  assert.deepStrictEqual(gapsOf(totals, 180_000, 210_000), [], "nor is what is not kept any more");
  await page.context().close();
});

test("a range is typed, and one that ends before it begins is refused", async () => {
  const page = await opened(at(END - 60, END));
  assert.strictEqual(await page.inputValue("#profiles-from"), "2025-03-04T05:00");
  await page.fill("#profiles-from", "2025-03-04T05:50");
  await shown(page, ({ from }) => from === "2025-03-04T05:50Z");
  assert.match(await said(page), /in 2,170 samples of 600 s/);
  await page.fill("#profiles-from", "2025-03-04T06:10");
  await until("it is refused", async () => (await page.textContent("#profiles-fault")) === "The range ends before it begins.");
  assert.strictEqual((await place(page)).from, "2025-03-04T05:50Z");
  await page.click("#profiles-last >> text=day");
  await shown(page, ({ from, to }) => Date.parse(to) - Date.parse(from) === 86_400_000);
  await page.context().close();
});

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

test("a narrow and a wide screen, light and dark, show all of it without scrolling sideways", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1280]) {
      const page = await opened(at(END - 80, END), { viewport: { width, height: 900 }, colorScheme });
      for (const name of ["stacks", "compared", "file"]) {
        if (name !== "stacks") await page.selectOption("#profiles-compare", name === "file" ? "file:release-1.folded" : "other");
        await shown(page, ({ compare }) => (compare !== undefined) === (name !== "stacks") && (compare === "file:release-1.folded") === (name === "file"));
        await until("it fits", () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        assert.ok((await boxOf(page.locator("#profiles-stacks canvas"))).width > width / 2);
        if (process.env.KYMO_SCREENSHOTS) await page.screenshot({ fullPage: true, path: path.join(process.env.KYMO_SCREENSHOTS, `profiles-${width}-${colorScheme}-${name}.png`) });
      }
      await page.context().close();
    }
  }
});

test("no page complained or asked another address", () => assert.deepStrictEqual(faults, []));
