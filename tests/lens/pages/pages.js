// What the tests of pages share. They use a page like its user: by its text, its mouse and its pixels.
"use strict";
const assert = require("node:assert");
const { WATCHDOG } = require("./browser.js");

exports.settled = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));

// Calls `look` repeatedly until it returns something. Fails with `what` if it never does.
exports.until = async (what, look) => {
  const end = Date.now() + WATCHDOG;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`it did not come to pass: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
};

const MS = 1e6;
// Converts "12.5 s" of a recording, or the time of day "14:05:06.789", to nanoseconds.
function instantOf(text) {
  if (text.endsWith(" s")) return Math.round(parseFloat(text) * 1e9);
  const [hours, minutes, seconds] = text.split(":").map(Number);
  return Math.round(((hours * 60 + minutes) * 60 + seconds) * 1000) * MS;
}

// The range that the text above the charts shows: [from, to].
exports.range = async (page) => {
  const text = await exports.until("a range is named", async () => {
    const found = await page.textContent("#range");
    return found.includes(" to ") && found;
  });
  const named = text.match(/^(-?[\d.]+ s|[\d:.]+) to (-?[\d.]+ s|[\d:.]+)/);
  if (!named) throw new Error(`no range: ${text}`);
  return [instantOf(named[1]), instantOf(named[2])];
};

// The chart that has this name in its legend.
exports.chartOf = (page, name) => page.locator(".chart").filter({ has: page.locator(".legend button", { hasText: name }) }).first();

// The chart with this title.
exports.chartTitled = (page, title) => page.locator(".chart").and(page.getByLabel(title, { exact: true }));

// Where an element is on the screen. Waits until it is there.
exports.boxOf = (element) => element.evaluate((one) => {
  one.scrollIntoView({ block: "nearest", behavior: "instant" });
  const { x, y, width, height } = one.getBoundingClientRect();
  return { x, y, width, height };
});

// The time and values of the point that is nearest to `share` of the chart's width: {at, values}, with the names of the
// legend.
exports.pointAt = async (page, chart, share) => {
  const box = await exports.boxOf(chart.locator(".u-over"));
  await page.mouse.move(box.x + share * (box.width - 1), box.y + box.height / 2);
  await exports.settled(page);
  return chart.evaluate((one) => ({
    at: document.getElementById("range").textContent.split(" · at ")[1]?.split(" · ")[0] ?? "",
    values: Object.fromEntries([...one.querySelectorAll(".legend button")].map((button) => {
      const value = button.querySelector(".value").textContent;
      return [button.textContent.slice(0, button.textContent.length - value.length), value];
    })),
  })).then(({ at, values }) => ({ at: at ? instantOf(at) : NaN, values }));
};

// The same for the point that is nearest to `time`.
exports.pointAtTime = async (page, chart, time) => {
  const [from, to] = await exports.range(page);
  if (time < from || time > to) throw new Error(`${time} is not in what is shown: ${from} to ${to}`);
  return exports.pointAt(page, chart, (time - from) / (to - from));
};

// Calls `act`, which changes the shown range. Returns the range after it.
exports.moved = async (page, act) => {
  const before = String(await exports.range(page));
  await act();
  await exports.until("the range changes", async () => String(await exports.range(page)) !== before);
  await exports.settled(page);
  return exports.range(page);
};

// Turns the wheel over the first chart until this range is shown, with a tolerance of a twentieth of its length: up and down
// to zoom, sideways to move if the range is outside. The middle of the chart keeps its place, so no exact pixel must be hit.
exports.zoomTo = async (page, from, to) => {
  const near = (to - from) / 20;
  for (let step = 0; step < 20; ++step) {
    const [first, last] = await exports.range(page);
    if (Math.abs(first - from) < near && Math.abs(last - to) < near) return;
    const box = await exports.boxOf(page.locator(".chart .u-over").first());
    await page.mouse.move(box.x + box.width / 2, box.y + 20);
    const factor = Math.max((to - from) / (last - first), 0.02);
    const aside = (from + to - first - last) / 2;
    const wheel = Math.abs(factor - 1) > 0.01 ? [0, 400 * Math.log(factor)] : [(aside / (last - first)) * box.width, 0];
    await exports.moved(page, () => page.mouse.wheel(...wheel));
  }
  throw new Error(`the wheel does not come to ${from} to ${to}, but to ${await page.textContent("#range")}`);
};

// The pixels of a chart that have about the colour of this line: their number, and the number of pixel rows that have some.
// `share` is a range of the plot's width (default: all of it).
exports.inked = (chart, name, [begin, end] = [0, 1]) => chart.evaluate((one, wanted) => {
  const button = [...one.querySelectorAll(".legend button")].find((each) => each.textContent.startsWith(wanted.name));
  const rgb = getComputedStyle(button.querySelector(".swatch")).backgroundColor.match(/\d+/g).map(Number);
  const canvas = one.querySelector("canvas");
  const plot = one.querySelector(".u-over");
  const scale = canvas.width / canvas.clientWidth;
  const left = Math.floor((plot.offsetLeft + wanted.begin * plot.clientWidth) * scale);
  const width = Math.ceil((wanted.end - wanted.begin) * plot.clientWidth * scale);
  const { data } = canvas.getContext("2d").getImageData(left, 0, width, canvas.height);
  const rows = new Set();
  let pixels = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] <= 100 || !rgb.every((value, k) => Math.abs(data[i + k] - value) < 60)) continue;
    ++pixels;
    rows.add(Math.floor(i / 4 / width));
  }
  return { pixels, rows: rows.size };
}, { name, begin, end });

// A name that would become markup and change the title, if a page did not show it as text.
exports.HOSTILE = "</script><img src=x onerror=document.title='taken'>";

exports.assertNamesAreText = async (page, title) => {
  assert.strictEqual(await page.title(), title);
  assert.ok((await page.textContent("body")).includes(exports.HOSTILE));
  assert.strictEqual(await page.locator("img").count(), 0);
};

exports.DARK_PHONE = { viewport: { width: 390, height: 800 }, colorScheme: "dark" };

// On a DARK_PHONE, nothing may be wider than the screen, and the page must be dark.
exports.assertFitsDarkPhone = async (page) => {
  const [inner, full] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  assert.ok(full <= inner, `${page.url()}: ${full} > ${inner}`);
  assert.strictEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(17, 17, 19)");
};

// Labels of charts are text on a canvas, which cannot be asked for. Notes each one that the pages of this context draw from now on.
exports.noteLabels = (context) => context.addInitScript(() => {
  const { fillText } = CanvasRenderingContext2D.prototype;
  window.labels = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    const { actualBoundingBoxLeft, actualBoundingBoxRight } = this.measureText(text);
    const at = this.getTransform().e + x;
    if (this.canvas.closest(".uplot") !== null) {
      window.labels.push({ text, left: at - actualBoundingBoxLeft, right: at + actualBoundingBoxRight, width: this.canvas.width, chart: this.canvas.closest(".chart")?.ariaLabel });
    }
    return fillText.call(this, text, x, y, ...more);
  };
});

// The labels that a page has drawn since the last call: {texts, cut}, with those that a side of their canvas cuts.
exports.labels = async (page) => {
  await exports.settled(page);
  const all = (await Promise.all(page.frames().map((frame) => frame.evaluate(() => window.labels.splice(0))))).flat();
  const cut = all.filter((one) => one.left < 0 || one.right > one.width);
  return { texts: all.map((one) => one.text), cut: [...new Set(cut.map((one) => `${one.chart}: ${one.text}: ${one.left.toFixed(1)} to ${one.right.toFixed(1)} of ${one.width}`))] };
};
