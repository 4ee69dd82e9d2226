// The page of `kymo profile -o FILE.html`: a flame graph and the hottest functions; and of `kymo diff A B --html FILE`, of two
// profiles: both in one graph, and the functions whose share changed. All names of a
// profile are set as text or drawn, never as markup.
import { byId, element, fieldById } from "./dom.js";
import { FlameGraph, ROW } from "./flame_graph.js";
import { compared } from "./flame_diff.js";
import { missingIn, summaryOf } from "./flame_parts.js";

/** @import { FlameComparison, FlameProfile } from "./types.d.ts" */

/** @type {FlameProfile} */
const profile = JSON.parse(byId("profile").textContent ?? "");
byId("profile").remove();

function describe() {
  document.title = profile.title;
  byId("title").textContent = profile.title;
  if (profile.comparison !== undefined) return describeComparison(profile.comparison);
  byId("subtitle").textContent = summaryOf(profile);
  byId("quality").append(...missingIn(profile).map((text) => element("li", { class: "warning" }, text)));
}

/** @param {FlameComparison} comparison */
function describeComparison(comparison) {
  byId("subtitle").textContent = `Comparison of two stack profiles by the shares of ${comparison.shares_of}`;
  byId("quality").append(...compared(comparison, profile).map((text) => element("li", { class: "said" }, text)));
  byId("colour").prepend(element("option", { selected: "" }, "change"));
  byId("hottest").setAttribute("aria-label", "Functions whose share changed");
}

describe();
const canvas = /** @type {HTMLCanvasElement} */ (byId("flame"));
const graph = new FlameGraph({
  canvas, search: fieldById("search"), matched: byId("matched"), colour: fieldById("colour"), legend: byId("legend"),
  status: byId("status"), hottest: byId("hottest"), inverted: byId("inverted"),
}, profile, profile.sorted_by_total, profile.comparison);

function otherTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  graph.draw();
}

// Scrolls as far as the chosen frame needs, above the line with its values.
function showChosen() {
  if (graph.chosen === null) return;
  const top = canvas.getBoundingClientRect().top + graph.rowOf(graph.chosen) * ROW;
  const bottom = innerHeight - byId("status").offsetHeight - ROW;
  if (top < 0) scrollBy(0, top);
  else if (top > bottom) scrollBy(0, top - bottom);
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  const writing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (plain && !writing && event.key === "t") {
    event.preventDefault();
    otherTheme();
  } else if (graph.pressed(event) && event.target === canvas) {
    showChosen();
  }
}

document.addEventListener("keydown", pressed);
byId("whole").addEventListener("click", () => graph.whole());
byId("theme").addEventListener("click", otherTheme);
requestAnimationFrame(() => (document.documentElement.dataset.state = "whole"));
