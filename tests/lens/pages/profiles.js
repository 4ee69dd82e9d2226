// A kymod whose page shows kept stack profiles, for the tests of profiles_*.test.js. The profiles come from
// page_profiles.cc.
"use strict";
const { execFileSync, spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, before } = require("node:test");
const { launch } = require("./browser.js");
const { Kymod, whyNoCriu } = require("./kymod.js");
const { settled, until } = require("./pages.js");

const HOSTILE = "<img src=x onerror=document.title='taken'>";
const HOSTILE_FILE = "<img src=x onerror=document.title='taken'>.pb.gz";
const END = 29_017_800; // 2025-03-04 06:00 UTC
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kymo-profiles-"));
const faults = [];
const kymod = new Kymod(["--profiles", folder, "--http-profiles"]);
const all = [kymod];
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
  await browser?.close();
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
// Waits until the screen shows everything that the address names. Takes all in one look: between two, another place could
// come into the address, of which nothing is shown yet.
async function shown(page, wanted = () => true) {
  await until(`the view is shown: ${wanted}`, async () => {
    const { hash, whole } = await page.evaluate(() => {
      const { dataset, ariaBusy } = document.getElementById("profiles");
      return { hash: location.hash, whole: dataset.shown === location.hash && ariaBusy === null };
    });
    return whole && wanted(partsOf(hash));
  });
  await settled(page);
}
const partsOf = (hash) => Object.fromEntries(new URLSearchParams(hash.slice(1)));
// The parameters of the address.
const place = async (page) => partsOf(await page.evaluate(() => location.hash));
const said = (page) => page.textContent("#profiles-stacks .said");
const services = (page) => page.locator(".services button:visible span:first-child").allTextContents();
const chosen = (page) => page.locator(".services button[aria-pressed=true]").getAttribute("data-service");
const opened = async (hash, options) => {
  const page = await open(hash, options);
  await shown(page);
  return page;
};

// Starts another kymod. Call this before the first test.
const another = (flags) => {
  all.push(new Kymod(flags));
  return all[all.length - 1];
};

module.exports = { END, HOSTILE, HOSTILE_FILE, another, at, chosen, faults, folder, instant, kymod, open, opened, place, said, services, shown, whyNoCriu };
