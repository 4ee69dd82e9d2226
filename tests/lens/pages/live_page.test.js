// The page of kymod in a real Chromium, with a real recording and a real dump.
"use strict";
const assert = require("node:assert");
const { after, before, test } = require("node:test");
const { WATCHDOG, launch } = require("./browser.js");
const { Kymod, whyNoCriu } = require("./kymod.js");
const { boxOf, chartOf, moved, pointAt, range, settled, until, zoomTo } = require("./pages.js");
const { load } = require("./recordings.js");

// The tests compare times of day that the page shows. In this time zone it is about noon, so no test crosses midnight.
const hours = 12 - new Date().getUTCHours();
const timezoneId = `Etc/GMT${hours > 0 ? "-" : "+"}${Math.abs(hours)}`; // POSIX reverses the sign
process.env.TZ = timezoneId;

const faults = [];
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
// This kymod keeps seconds in memory and the rest in a file, and its page may change things.
const recordings = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-live-"));
// Without a graphics card each chart is slow, so there are only a few.
const METRICS = "dumps,image_written_bytes,phase,profiler_rows";
const kymod = new Kymod(["--profiling-keep", "1", "--profiling-metrics-log", path.join(recordings, "all.tsv"), "--profiling-metrics", METRICS, "--http-controls"]);
const reader = new Kymod(); // a kymod whose page may only read
let browser;

before(async () => {
  browser = await launch();
  await kymod.start();
  await reader.start();
});
after(async () => {
  await browser.close();
  await kymod.end();
  await reader.end();
  fs.rmSync(recordings, { recursive: true });
});

// Opens a tab with the page. Errors of the page, and requests to other addresses than kymod's, are faults.
async function open(url = kymod.url + "#live", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId, ...options });
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || [kymod.address, reader.address].includes(new URL(request.url()).host) || faults.push(request.url()));
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.state === "live");
  return page;
}
const endsAfter = (page, time) => until("the range moves on", async () => (await range(page))[1] > time);
const recorderStatus = () => JSON.parse(kymod.kymo("recorder", "--json"));
const recorded = (duration_ns) => until("kymod records", () => recorderStatus().duration_ns >= duration_ns);
// Waits until the page shows a value of this column, at a share of its chart, and returns it.
function showsAt(page, name, share) {
  let aside = 0; // moves on if there is a gap at this place
  return until(`a value of ${name}`, async () => {
    aside = (aside + 0.004) % 0.03;
    const { [name]: value } = (await pointAt(page, chartOf(page, name), share - aside)).values;
    return value !== "–" && value;
  });
}
// Reads kymod's events in the way of the page, until `each` returns false.
async function listen(parameters, each) {
  const { Client } = await load("live/client.js");
  const client = new Client(new URL(kymod.url).searchParams.get("token"), `http://${kymod.address}`);
  await client.listen("/api/live", parameters, AbortSignal.timeout(WATCHDOG), each);
}

test("charts follow what is recorded, and stand still when paused", async () => {
  const page = await open();
  await endsAfter(page, (await range(page))[1]);
  await page.click("#pause");
  await settled(page);
  const still = await range(page);
  await recorded(recorderStatus().duration_ns + 1.5e9); // samples arrive each second
  assert.deepStrictEqual(await range(page), still);
  await page.locator("body").press("p");
  await endsAfter(page, still[1]);
  await page.context().close();
});

test("a row of the recording is a point when every row is asked for", async () => {
  const { Store } = await load("live/store.js");
  const store = new Store(1);
  await listen({ columns: "profiler_rows", per_second: 0, back_ns: 1e9 }, (event, data) => {
    if (event === "samples") store.append(data);
    return store.count < 2000;
  });
  const times = Array.from(store.times.subarray(store.count - 1000, store.count));
  // The page must have exactly the rows of the file of the recording, however late the machine took them.
  const written = await until("the file has them", () => {
    const lines = fs.readFileSync(path.join(recordings, "all.tsv"), "utf8").split("\n").slice(1, -1);
    const all = lines.map((line) => parseInt(line, 10));
    return all.length > 0 && all.at(-1) >= times.at(-1) && all;
  });
  assert.deepStrictEqual(times, written.filter((time) => time >= times[0] && time <= times.at(-1)));
  const rows = Array.from(store.parts[0].subarray(store.count - 1000, store.count));
  assert.ok(rows.every((value, i) => i === 0 || value >= rows[i - 1]));
  const page = await open();
  await page.selectOption("#detail", "0");
  await page.waitForFunction(() => /: every row/.test(document.getElementById("range").textContent));
  await showsAt(page, "profiler_rows", 0.99);
  await page.context().close();
});

test("the token leaves the address and a reload finds it; without it nothing is shown", async () => {
  const page = await open();
  assert.ok(!page.url().includes("token"), page.url());
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.state === "live");
  await page.context().close();
  const bare = await browser.newPage();
  await bare.goto(kymod.url.split("?")[0]);
  assert.match(await bare.textContent("body"), /a token is needed: kymo web prints the address/);
  await bare.goto(kymod.url.replace(/token=.*/, "token=0123456789abcdef"));
  assert.match(await bare.textContent("body"), /the token is wrong/);
  await bare.close();
});

test("wheel, drag, buttons and keys move the range, and it stays there", async () => {
  const page = await open();
  await showsAt(page, "profiler_rows", 0.99);
  const box = await boxOf(page.locator(".u-over").first());
  await page.mouse.move(box.x + box.width - 50, box.y + 20);
  await page.mouse.wheel(0, -400);
  await page.waitForFunction(() => document.getElementById("pause").textContent === "follow");
  await settled(page);
  const wheeled = await range(page);
  const closer = await moved(page, () => page.click("#in"));
  assert.ok(closer[1] - closer[0] < wheeled[1] - wheeled[0]);
  await page.locator(".chart").first().focus();
  const earlier = await moved(page, () => page.keyboard.press("ArrowLeft"));
  assert.ok(earlier[0] < closer[0]);
  const whole = await moved(page, () => page.keyboard.press("0"));
  assert.ok(whole[0] < wheeled[0] && whole[1] - whole[0] > closer[1] - closer[0]);
  await page.context().close();
});

test("metrics are chosen, and the choice is kept", async () => {
  const page = await open();
  await page.click("#choose summary");
  await page.fill("#filter", "dumps[ok]");
  assert.strictEqual(await page.locator("#columns li").count(), 1);
  await page.locator("#columns input").check();
  await chartOf(page, "dumps[ok]").waitFor({ state: "attached" }); // the column is folded away, because it has not changed
  await page.reload();
  await chartOf(page, "dumps[ok]").waitFor({ state: "attached" }); // the column is folded away, because it has not changed
  await page.context().close();
});

test("the page only reads unless kymod was told otherwise", async () => {
  const page = await open(reader.url + "#live");
  await page.click("#recorder summary");
  for (const id of ["start", "stop", "set", "snapshot"]) assert.ok(await page.isDisabled("#" + id), id);
  assert.match(await page.textContent("#controlled"), /only reads.*kymo recorder/);
  const token = new URL(reader.url).searchParams.get("token");
  for (const what of ["/api/snapshot", "/api/recorder?action=stop"]) {
    const post = (headers) => fetch(`http://${reader.address}${what}`, { method: "POST", headers: { Authorization: `Bearer ${token}`, ...headers } });
    assert.strictEqual((await post({})).status, 403);
    assert.strictEqual((await post({ Origin: "http://evil.example" })).status, 403);
    const refused = await post({ Origin: `http://${reader.address}` });
    assert.strictEqual(refused.status, 403);
    assert.match((await refused.json()).error.message, /^the page may only read: start kymod with --http-controls/);
  }
  await page.context().close();
});

test("what left memory is shown out of the file, by key, button, wheel and the drawn axis", async () => {
  await recorded(8e9);
  const page = await open();
  await page.selectOption("#window", "5");
  await page.click("#earlier");
  await page.locator(".chart").first().focus();
  await page.keyboard.press("PageUp");
  await settled(page);
  assert.strictEqual(await page.textContent("#pause"), "follow");
  await page.keyboard.press("0"); // shows all that was recorded
  const day = new Date(recorderStatus().start_unix_ns / 1e6);
  const start = (((day.getHours() * 60 + day.getMinutes()) * 60 + day.getSeconds()) * 1000 + day.getMilliseconds()) * 1e6;
  await until("all is shown", async () => (await range(page))[0] <= start + 1e8);
  await zoomTo(page, start, start + 3e9);
  await showsAt(page, "profiler_rows", 0.1); // the value comes from the file, because memory keeps one second
  await showsAt(page, "profiler_rows", 0.3);
  const [from, to] = await range(page);
  assert.ok(from < start + 5e8 && to < start + 4e9, `${from} ${to}`);
  assert.match(await page.textContent("#range"), /before: lowest to highest of each|every row|lowest to highest/);
  const later = await moved(page, () => page.click("#later"));
  assert.ok(later[0] > from);
  const axis = await boxOf(page.locator(".u-axis.time").first());
  const drawnTo = await moved(page, async () => {
    await page.mouse.move(axis.x + 100, axis.y + 10);
    await page.mouse.down();
    await page.mouse.move(axis.x + 400, axis.y + 10, { steps: 4 });
    await page.mouse.up();
  });
  assert.ok(drawnTo[0] < later[0], "drawn to the right shows what was before");
  const plot = await boxOf(page.locator(".u-over").first());
  await page.mouse.move(plot.x + 100, plot.y + 20);
  assert.ok((await moved(page, () => page.mouse.wheel(300, 0)))[0] > drawnTo[0]);
  await page.context().close();
});

test("the recorder is stopped, started and set, and a refusal is one line", async () => {
  const page = await open();
  await page.click("#recorder summary");
  await page.click("#stop");
  await page.waitForFunction(() => /^stopped after .* rows, whole in /.test(document.getElementById("controlled").textContent));
  await page.waitForFunction(() => /nothing is recorded/.test(document.getElementById("subtitle").textContent));
  assert.strictEqual(recorderStatus().running, false);
  assert.ok(await page.isDisabled("#stop"));
  await showsAt(page, "profiler_rows", 0.5); // the value comes from the file
  await page.fill("#rate", "2000");
  await page.focus("#start");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /every 2 ms/.test(document.getElementById("subtitle").textContent));
  let seen = Infinity; // the first reading may still have the range of the old recording
  await until("the range moves on", async () => {
    const [, to] = await range(page);
    const on = to > seen;
    seen = to;
    return on;
  });
  const now = recorderStatus();
  assert.deepStrictEqual([now.running, now.interval_ns, path.basename(now.log_path)], [true, 2_000_000, "all-2.tsv"]);
  const before = faults.length;
  await page.fill("#wanted", "no_such_metric");
  await page.click("#set");
  await page.locator("#controlled.fault").waitFor();
  assert.match(await page.textContent("#controlled"), /no_such_metric/);
  assert.ok(faults.splice(before).every((fault) => /status of 404/.test(fault)));
  await page.fill("#wanted", METRICS);
  await page.fill("#rate", "3000");
  await page.focus("#set");
  await Promise.all([page.waitForResponse((reply) => reply.url().includes("/api/live")), page.locator("#detail").dispatchEvent("change")]);
  await page.click("#set");
  await page.waitForFunction(() => /every 3 ms/.test(document.getElementById("subtitle").textContent));
  for (const us of [1000, 2000, 1000, 2000, 1000]) {
    await page.fill("#rate", String(us));
    await page.click("#set");
    await page.waitForFunction((wanted) => document.getElementById("subtitle").textContent.includes(wanted), `every ${us / 1000} ms`);
  }
  await page.context().close();
});

test("every control is reached by the keyboard, and seen where it is", async () => {
  const page = await open();
  await page.click("#recorder summary");
  await page.click("#choose summary");
  await page.fill("#filter", "phase");
  await page.locator("body").evaluate(() => document.activeElement.blur());
  // The page changes meanwhile. Controls that appear or disappear later are not required.
  const wanted = await page.evaluate(() => {
    window.controls = () => [...document.querySelectorAll("a, button, input, select, summary, .chart")].filter((one) => !one.disabled && one.checkVisibility());
    window.wanted = window.controls();
    window.reached = new Set();
    return window.wanted.length;
  });
  assert.ok(wanted > 15, `only ${wanted} controls`);
  let outlined = 0;
  for (let i = 0; i < wanted + 30; ++i) {
    await page.keyboard.press("Tab");
    outlined += await page.evaluate(() => {
      const one = document.activeElement;
      if (one === document.body || window.reached.has(one)) return 0;
      window.reached.add(one);
      const style = getComputedStyle(one);
      return style.outlineStyle !== "none" && style.outlineWidth !== "0px" ? 1 : 0;
    });
  }
  const missed = await page.evaluate(() => {
    const now = new Set(window.controls());
    return window.wanted.filter((one) => now.has(one) && !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 80));
  });
  assert.deepStrictEqual(missed, []);
  assert.strictEqual(outlined, await page.evaluate(() => window.reached.size), "each shows that it has the focus");
  await page.context().close();
});

// `scripts/bench live` measures how fast both are.
test("it is painted", async () => {
  const page = await open();
  assert.ok(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime) > 0);
  await page.context().close();
});

test("a dump that starts appears by itself, with its phases, and its images in the chart", { skip: whyNoCriu || false }, async () => {
  const page = await open();
  await kymod.run("web-1");
  await kymod.begin("dump", "process", "web-1", "--leave-running");
  const card = page.locator(".request");
  await card.waitFor();
  await page.waitForFunction(() => document.querySelector(".request.succeeded"));
  assert.match(await card.textContent(), /dump of web-1 · succeeded/);
  assert.match(await card.textContent(), /freeze.*memory.*unfreeze/s);
  let phases = [];
  const { Store } = await load("live/store.js");
  const store = new Store(1);
  await listen({ columns: "image_written_bytes", per_second: 100, back_ns: 1e10 }, (event, data) => {
    if (event === "samples") store.append(data);
    else if (data.length > 0) phases = data.at(-1).phases;
    return phases.length === 0 || !store.parts[0].subarray(0, store.count).some((bytes) => bytes > 64 << 20);
  });
  assert.ok(phases.every((phase, i) => i === 0 || phase.begin_ns === phases[i - 1].end_ns));
  await page.click("#raw");
  await settled(page);
  assert.match(await showsAt(page, "image_written_bytes", 0.99), /^\d+(\.\d+)? [KM]iB$/);
  await page.context().close();
});

test("no page complained, and none asked another address", () => {
  assert.deepStrictEqual(faults.filter((fault) => !/status of 401/.test(fault)), []);
});
