// The view of kept stack profiles on kymod's page: services, kinds and ranges.
"use strict";
const assert = require("node:assert");
const { test } = require("node:test");
const { boxOf, until } = require("./pages.js");
const { END, HOSTILE, another, at, chosen, faults, folder, instant, open, opened, place, said, services, shown } = require("./profiles.js");
const { load } = require("./recordings.js");

const hidden = another(["--profiles", folder]); // a kymod that does not serve the profiles
const none = another([]);

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

// Holds what the page asks for the chart, until release(). asked() waits until it has asked.
async function hold(page) {
  let release;
  let asked = 0;
  const released = new Promise((resolve) => (release = resolve));
  await page.route((url) => url.pathname === "/api/profile_totals", async (route) => {
    ++asked;
    await released;
    await route.continue();
  });
  return { release, asked: () => until("the page asks", () => asked > 0) };
}

test("what is chosen on the chart while another range is read is not lost", async () => {
  const page = await opened(at(END - 60, END));
  const held = await hold(page);
  await page.focus("#profiles-chart .chart");
  await page.keyboard.press("PageUp");
  await held.asked();
  await page.keyboard.press("0");
  held.release();
  await shown(page, ({ from }) => from === instant(END - 180));
  assert.strictEqual((await place(page)).to, instant(END));
  await page.context().close();
});

test("quick moves ask for the first and the last range only", async () => {
  const page = await opened(at(END - 10, END));
  await page.evaluate(() => {
    const real = window.fetch;
    window.asked = [];
    window.fetch = (...words) => {
      window.asked.push(new URL(words[0], location.href));
      return real(...words);
    };
  });
  // The ends of the ranges whose totals were asked for.
  const ends = () => page.evaluate(() => window.asked.filter(({ pathname }) => pathname === "/api/profile_totals").map(({ searchParams }) => Number(searchParams.get("to_unix_ns")) / 6e10));
  const held = await hold(page);
  await page.focus("#profiles-chart .chart");
  for (let move = 1; move <= 6; ++move) {
    await page.keyboard.press("PageUp");
    await until("the address names the range", async () => (await place(page)).to === instant(END - 10 * move));
  }
  await held.asked();
  assert.deepStrictEqual(await ends(), [END - 10]);
  held.release();
  await shown(page, ({ to }) => to === instant(END - 60));
  assert.deepStrictEqual(await ends(), [END - 10, END - 60]);
  assert.strictEqual(await page.textContent("#profiles-fault"), "");
  await page.context().close();
});

test("Back, while another range is read, shows the range before", async () => {
  const page = await opened(at(END - 60, END));
  const held = await hold(page);
  await page.focus("#profiles-chart .chart");
  await page.keyboard.press("PageUp");
  await held.asked();
  await page.goBack();
  await shown(page, ({ to }) => to === instant(END));
  held.release();
  await page.focus("#profiles-chart .chart");
  await page.keyboard.press("PageUp");
  await shown(page, ({ to }) => to !== instant(END));
  assert.deepStrictEqual((({ from, to }) => [from, to])(await place(page)), [instant(END - 120), instant(END - 60)]);
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

test("no page complained or asked another address", () => assert.deepStrictEqual(faults, []));
