// Jobs, checkpoints, comparisons and history on kymod's page, after real dumps.
"use strict";
const assert = require("node:assert");
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { launch } = require("./browser.js");
const { MoodyDisk } = require("./moody_disk.js");
const { assertFitsDarkPhone, DARK_PHONE, until } = require("./pages.js");
const { Kymod, whyNoCriu } = require("./kymod.js");

const skip = whyNoCriu || false;
const faults = [];
const kymod = new Kymod(["--http-controls"]);
let browser;
let page;

before(async () => {
  if (skip) return;
  browser = await launch();
  await kymod.start();
  await kymod.run("web-1", 32);
  kymod.kymo("dump", "process", "web-1", "--leave-running");
  kymod.kymo("dump", "process", "web-1", "--leave-running");
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || new URL(request.url()).host === kymod.address || faults.push(request.url()));
});
after(async () => {
  if (skip) return;
  await browser.close();
  await kymod.end();
});

async function show(hash) {
  await page.goto(kymod.url + "#" + hash);
  await page.waitForFunction((wanted) => document.getElementById("stored").dataset.shown === wanted, "#" + hash);
}
// Waits until the screen shows what a click has opened.
const shown = (start) => page.waitForFunction((wanted) => (document.getElementById("stored").dataset.shown || "").startsWith(wanted), "#" + start);

test("jobs and checkpoints are listed, and a new one comes by itself", { skip }, async () => {
  await show("jobs");
  assert.match(await page.textContent("#stored"), /web-1/);
  assert.strictEqual(await page.locator("#checkpoints tbody tr").count(), 2);
  await kymod.begin("dump", "process", "web-1", "--leave-running");
  await page.waitForFunction(() => document.querySelectorAll("#checkpoints tbody tr").length === 3);
});

test("the machine and the jobs that run are live", { skip }, async () => {
  await show("jobs");
  await page.waitForFunction(() => /\d of \d+ cores in use.* memory free/.test(document.getElementById("now").textContent), null, { timeout: 20_000 });
  await page.waitForFunction(() => /(of a core|cores), .*MiB/.test(document.querySelector("#jobs tbody .now").textContent), null, { timeout: 20_000 });
});

test("a checkpoint's phases are a small bar, and its verdict stands in words", { skip }, async () => {
  const [newest] = JSON.parse(kymod.kymo("checkpoints", "--json")).slice(-1);
  const file = path.join(newest.directory, "checkpoint.json");
  const record = JSON.parse(fs.readFileSync(file, "utf8"));
  const hostile = "<img src=x> waited for the disk";
  const phase = (name, begin_ns, end_ns) => ({ name, begin_ns, end_ns });
  fs.writeFileSync(file, JSON.stringify({ ...record, phases: [phase("freeze", 0, 100), phase(hostile, 100, 400), { name: 7 }, null], verdict: { short: hostile } }));
  await show("history=web-1"); // another view first, because the same address would not be loaded again
  await show("jobs");
  for (const row of ["#checkpoints tbody tr", "#jobs tbody tr"]) {
    const first = page.locator(row).first();
    assert.ok((await first.innerText()).includes(hostile));
    assert.match(await first.locator(".phases").getAttribute("aria-label"), /^freeze 100 ns, <img src=x> waited for the disk 300 ns$/);
    const widths = await first.locator(".phases span").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width));
    assert.ok(Math.abs(widths[1] / widths[0] - 3) < 0.1, String(widths));
  }
  assert.strictEqual(await page.locator("#stored img").count(), 0);
});

test("two that are ticked are compared", { skip }, async () => {
  await show("jobs");
  const ticks = page.locator("#checkpoints input");
  assert.ok(await page.isDisabled("#compare"));
  await ticks.nth(1).check();
  await ticks.nth(0).check();
  await page.click("#compare");
  await shown("comparison");
  assert.match(await page.textContent("#differences"), /time/);
  assert.match(await page.textContent("#verdict"), /stood still for/);
});

test("a checkpoint has its phases, statistics, timing tree and recording", { skip }, async () => {
  await show("jobs");
  await page.locator("#checkpoints a").first().click();
  await shown("checkpoint");
  const text = await page.textContent("#stored");
  for (const wanted of [/Phases of the dump/, /freeze/, /pages_written/, /The dump/, /Whose memory/, /kymo-churn/]) assert.match(text, wanted);
  await page.locator("#stored details", { has: page.locator(".icicle") }).first().locator("summary").click();
  const scopes = await page.locator(".scope").evaluateAll((all) => all.map((one) => [one.offsetLeft, one.offsetLeft + one.offsetWidth, one.offsetTop]));
  assert.ok(scopes.length > 5 && scopes.every(([left, right]) => left >= 0 && right <= scopes[0][1] + 4), JSON.stringify(scopes));
  const frame = page.frameLocator("iframe").first();
  await frame.locator(".lane").first().waitFor();
  assert.match(await frame.locator("#title").textContent(), /Dump of web-1/);
  // A name with the ending of the file had been refused.
  const src = await page.locator("iframe").first().getAttribute("src");
  assert.strictEqual(await page.evaluate(async (url) => (await fetch(url)).status, src.replace("name=dump", "name=dump.tsv")), 200);
});

test("a job's history with too few runs says so, and not that nothing changed", { skip }, async () => {
  await show("jobs");
  await page.locator("#stored a").first().click();
  await shown("history");
  assert.strictEqual(await page.locator(".trend a").count(), 3);
  assert.match(await page.textContent("#no-change"), /Too few runs to tell a change: [23] of the 8/);
  await page.getByText("frozen", { exact: true }).first().click();
  await shown("history=web-1&kind=dumps&metric=frozen");
});

// Sets the sizes of a job's dumps in kymod's store, the oldest first, because real sizes and times differ by
// chance.
async function setSizes(job, sizes) {
  await page.goto("about:blank"); // otherwise the page would report that kymod is gone
  await kymod.stop();
  const script = `import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
rows = base.execute("SELECT id FROM runs WHERE owner = 'job:' || ? ORDER BY created_unix_ns", (sys.argv[2],)).fetchall()
for (row,), size in zip(rows, sys.argv[3:], strict=True):
    base.execute("UPDATE runs SET image_bytes = ?, warmth = '' WHERE id = ?", (int(size), row))
base.commit()`;
  const done = spawnSync("/usr/bin/python3", ["-c", script, path.join(kymod.folder, "state", "kymo.db"), job, ...sizes.map(String)], { encoding: "utf8" });
  assert.strictEqual(done.status, 0, done.stderr);
  await kymod.start();
}

test("the point of a regression stands where the runs got worse, and nowhere where they did not", { skip }, async () => {
  await kymod.run("web-2", 4);
  for (let i = 0; i < 10; ++i) kymod.kymo("dump", "process", "web-2", "--leave-running");
  const history = async () => {
    await show("jobs"); // another view first, because the same address would not be loaded again
    await show("history=web-2&kind=dumps&metric=bytes");
    return page.locator(".trend a").evaluateAll((bars) => bars.map((bar) => bar.className.trim()));
  };
  await setSizes("web-2", Array(10).fill(5_000_000));
  assert.deepStrictEqual(await history(), Array(10).fill(""));
  assert.match(await page.textContent("#no-change"), /No lasting change/);
  await setSizes("web-2", [...Array(5).fill(5_000_000), ...Array(5).fill(9_000_000)]);
  assert.deepStrictEqual(await history(), [...Array(5).fill(""), "worse", ...Array(4).fill("")]);
  assert.strictEqual(await page.locator("#no-change").count(), 0);
  assert.match(await page.textContent("#stored .fault"), /^Worse from .* 1\.80 times, p = /);
  const edges = await page.locator(".trend a").evaluateAll((bars) => bars.slice(4, 6).map((bar) => getComputedStyle(bar).borderLeftWidth));
  assert.deepStrictEqual(edges, ["0px", "3px"], "a line is seen there, and not before it");
  await setSizes("web-2", [...Array(5).fill(9_000_000), ...Array(5).fill(5_000_000)]);
  assert.deepStrictEqual(await history(), [...Array(5).fill(""), "better", ...Array(4).fill("")]);
});

test("what is unknown is one clear line", { skip }, async () => {
  const before = faults.length;
  await show("checkpoint=none");
  assert.match(await page.textContent("#stored .fault"), /none/);
  await show("history=none");
  assert.match(await page.textContent("#stored .fault"), /none/);
  await show("comparison=a,b");
  assert.match(await page.textContent("#stored .fault"), /a/);
  const told = faults.splice(before);
  assert.ok(told.every((fault) => /status of 404/.test(fault)), told.join("\n"));
});

test("the API answers what is wrong with one object", { skip }, async () => {
  const token = new URL(kymod.url).searchParams.get("token");
  const ask = async (path) => {
    const reply = await fetch(`http://${kymod.address}${path}`, { headers: { Authorization: `Bearer ${token}` } });
    return [reply.status, (await reply.json()).error.message];
  };
  for (const [path, status, message] of [
    ["/api/checkpoint", 400, /id is missing/], ["/api/checkpoint?id=../../etc", 404, /etc/], ["/api/checkpoint?id=%00", 404, /./],
    ["/api/comparison?before=x", 404, /x/], ["/api/history?job=web-1&kind=both", 400, /dumps and restores/],
    ["/api/history?job=web-1&metric=luck", 400, /duration, frozen/], ["/api/live?columns=none", 404, /'none' is not recorded/],
    ["/api/live?per_second=-1", 400, /wanted a number/], ["/api/live?per_second=99999999999999999999", 400, /wanted a number/],
    ["/api/live?back_ns=1e9", 400, /wanted a number/], ["/recording?checkpoint=none&name=dump", 404, /none/], ["/api/none", 404, /nothing at this path/],
  ]) {
    const [got, text] = await ask(path);
    assert.strictEqual(got, status, `${path}: ${text}`);
    assert.match(text, message);
    assert.ok(!text.includes("\n"));
  }
});

test("a snapshot is taken where kymod allows it, and opens", { skip }, async () => {
  await page.goto(kymod.url + "#live");
  await page.waitForFunction(() => document.documentElement.dataset.state === "live");
  await page.click("#recorder summary");
  await page.click("#snapshot");
  const [opened] = await Promise.all([page.context().waitForEvent("page"), page.locator("#taken a").click()]);
  await opened.locator(".chart, .lane").first().waitFor();
  await opened.close();
});

test("user nobody gets neither the token nor anything without it", { skip }, async () => {
  const script = `const fs = require("node:fs"); (async () => {
    const [, origin, file, socket] = process.argv;
    const status = async (path, headers) => (await fetch(origin + path, { headers })).status;
    const why = (act) => { try { act(); return "done"; } catch (error) { return error.code; } };
    const got = [process.getuid(), await status("/healthz"), await status("/metrics"), await status("/"), await status("/api/jobs"),
      await status("/api/jobs", { Authorization: "Bearer 0" }), why(() => fs.readFileSync(file))];
    require("node:net").connect(socket).on("connect", () => got.push("connected")).on("error", (error) => got.push(error.code))
      .on("close", () => console.log(JSON.stringify(got)));
  })()`;
  const file = path.join(kymod.folder, "state", "http-token");
  const nobody = spawnSync(process.execPath, ["-e", script, `http://${kymod.address}`, file, kymod.socket], { uid: 65534, gid: 65534, encoding: "utf8", cwd: "/" });
  assert.strictEqual(nobody.stdout.trim(), JSON.stringify([65534, 200, 200, 401, 401, 401, "EACCES", "EACCES"]), nobody.stderr);
});

test("names from a job and a recording are text", { skip }, async () => {
  const hostile = "<img src=x onerror=document.title='taken'>";
  const copy = path.join(kymod.folder, "evil");
  fs.copyFileSync(process.env.CHURN_PROGRAM, copy);
  fs.chmodSync(copy, 0o755);
  kymod.kymo("run", "process", "--name", "evil", "--", copy, "--mib", "1", hostile);
  await show("jobs");
  assert.ok((await page.textContent("#stored")).includes(hostile));
  assert.strictEqual(await page.locator("#stored img").count(), 0);
  assert.strictEqual(await page.title(), "Kymograph");
});

test("it fits a phone, in the dark", { skip }, async () => {
  const small = await (await browser.newContext(DARK_PHONE)).newPage();
  for (const hash of ["live", "jobs"]) {
    await small.goto(kymod.url + "#" + hash);
    await small.waitForFunction(() => document.documentElement.dataset.state === "live");
    await small.locator(hash === "live" ? ".chart" : "#checkpoints tbody tr").first().waitFor();
    await assertFitsDarkPhone(small);
    // There may be no scroll bar inside a table, either.
    if (hash === "jobs") assert.ok(await small.locator("#stored .scroll").evaluateAll((all) => all.every((one) => one.scrollWidth <= one.clientWidth)));
  }
  await small.context().close();
});

test("a job that a killed CRIU holds is shown as held until its disk answers", { skip }, async () => {
  const disk = new MoodyDisk();
  try {
    await disk.mounted();
    await kymod.run("stuck", 4);
    const stateShown = async () => {
      await show("history=web-1"); // another view first, because the same address would not be loaded again
      await show("jobs");
      const row = page.locator("#jobs tbody tr", { hasText: "stuck" });
      return [await row.locator(".state").textContent(), await row.innerText()];
    };
    disk.be("stalls-at-pages");
    const dump = kymod.begin("dump", "process", "stuck", "--no-stream", "--dir", path.join(disk.path, "c"));
    const failed = assert.rejects(dump, /is held by process \d+/);
    await until("CRIU waits for the disk", () => disk.holdsPages());
    await kymod.begin("cancel", "stuck").catch(() => {}); // it may wait for an end that does not come
    await failed;
    const [state, text] = await stateShown();
    assert.strictEqual(state, "held");
    assert.match(text, /held by process \d+, a CRIU that was killed but cannot end before its disk answers/);
    assert.match(text, /repair the disk, or unmount it with umount -f/);
    disk.be("well");
    await until("CRIU has ended", () => JSON.parse(kymod.kymo("ps", "--json")).find((job) => job.name === "stuck").held === "");
    assert.strictEqual((await stateShown())[0], "running");
  } finally {
    disk.end();
  }
});

test("no page complained, and none asked another address", { skip }, () => {
  assert.deepStrictEqual(faults, []);
});
