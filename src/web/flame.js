// The page of `kymo profile -o FILE.html`: a flame graph and the hottest functions. All names of a
// profile are set as text or drawn, never as markup.
import { byId, css, element, fieldById } from "./dom.js";
import { TIMES, scaled } from "./format.js";
import { FlameTree, packageOf, placed } from "./flame_tree.js";

/** @import { FlameProfile } from "./types.d.ts" */
/** @import { Box, Frame } from "./flame_tree.js" */

const ROW = 18;
const MOST_PIXELS = 16000; // of a canvas, in each direction
const MOST_FUNCTIONS = 60; // in the table
const MOST_GROUPS = 10; // in the legend
const TEXT_FROM = 24; // narrower frames have no text

/** @type {FlameProfile} */
const profile = JSON.parse(byId("profile").textContent ?? "");
byId("profile").remove();
const tree = new FlameTree(profile);
const hot = tree.hottest();
const canvas = /** @type {HTMLCanvasElement} */ (byId("flame"));
const search = fieldById("search");

/** What is shown. */
const view = {
  zoom: tree.root(false),
  /** @type {Box[][]} */
  rows: [],
  /** @type {Box | null} under the mouse, or chosen by keys */
  chosen: null,
  /** @type {Uint8Array | null} for each function, whether the search finds it */
  found: null,
  byTotal: profile.kind === "wait",
};

/** @param {number} value */
const time = (value) => scaled(value * profile.unit_ns, TIMES);
/** @param {number} value */
const share = (value) => (tree.sum > 0 ? ((value / tree.sum) * 100).toFixed(value < tree.sum / 10 ? 2 : 1) : "0") + " %";
/** @param {Frame} frame */
const nameOf = (frame) => (frame.fn < 0 ? "all" : tree.functions[frame.fn].name);
/** @param {string} path */
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

// --- colours ----------------------------------------------------------------------------------

/** @type {Map<string, number>} the hue of each module or package */
const hues = new Map();
/** @type {string[]} for each function, its module or package */
let groups = [];

// The groups with most time come first, so that their hues are furthest apart.
function chooseColours() {
  const byPackage = fieldById("colour").value === "package";
  groups = tree.functions.map((one) => (one.module === "" ? "" : byPackage ? packageOf(one) : one.module));
  /** @type {Map<string, number>} */
  const sums = new Map();
  groups.forEach((group, fn) => group !== "" && sums.set(group, (sums.get(group) ?? 0) + hot.self[fn]));
  const sorted = [...sums].sort((a, b) => b[1] - a[1]);
  hues.clear();
  sorted.forEach(([group], rank) => hues.set(group, Math.round(210 + rank * 137.5) % 360));
  const shown = sorted.filter(([, sum]) => sum > 0).slice(0, MOST_GROUPS);
  byId("legend").replaceChildren(...shown.map(([group, sum]) =>
    element("li", { title: group }, element("span", { class: "swatch", style: `background:hsl(${hues.get(group)} var(--frame))` }), baseName(group),
      element("span", { class: "value" }, share(sum)))));
}

/** @type {(box: Box, style: { frame: string, plain: string, match: string }) => string} */
function colourOf(box, style) {
  if (view.found !== null && box.frame.fn >= 0 && view.found[box.frame.fn]) return style.match;
  const hue = box.frame.fn < 0 ? undefined : hues.get(groups[box.frame.fn]);
  return hue === undefined || view.found !== null ? style.plain : `hsl(${hue} ${style.frame})`;
}

// --- the graph --------------------------------------------------------------------------------

/** @param {CanvasRenderingContext2D} context */
function shortened(context, /** @type {string} */ text, /** @type {number} */ width) {
  if (context.measureText(text).width <= width) return text;
  let fits = 0;
  for (let above = Math.min(text.length, Math.ceil(width)); fits < above;) {
    const middle = (fits + above + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) fits = middle;
    else above = middle - 1;
  }
  return fits > 1 ? text.slice(0, fits) + "…" : "";
}

function place() {
  view.rows = placed(tree, view.zoom, canvas.clientWidth);
  draw();
}

function draw() {
  const width = canvas.clientWidth;
  const height = view.rows.length * ROW;
  const scale = Math.min(devicePixelRatio, MOST_PIXELS / Math.max(width, height, 1));
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(scale, scale);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const style = { frame: css("--frame"), plain: css("--plain"), match: css("--match"), ink: css("--frame-ink") };
  const depth = view.rows.findIndex(([box]) => box.frame === view.zoom);
  view.rows.forEach((row, at) => {
    context.globalAlpha = at < depth ? 0.6 : 1; // callers of the frame that fills the graph
    for (const box of row) drawBox(context, box, at, style);
  });
  context.globalAlpha = 1;
  if (view.chosen !== null) outline(context, view.chosen, style.ink);
}

/** @type {(context: CanvasRenderingContext2D, box: Box, row: number, style: { frame: string, plain: string, match: string, ink: string }) => void} */
function drawBox(context, box, row, style) {
  context.fillStyle = colourOf(box, style);
  context.fillRect(box.x, row * ROW, Math.max(box.width - (box.width > 3 ? 1 : 0), 0.5), ROW - 1);
  if (box.width < TEXT_FROM) return;
  context.fillStyle = style.ink;
  context.fillText(shortened(context, box.merged > 0 ? `${box.merged} more` : nameOf(box.frame), box.width - 6), box.x + 3, row * ROW + ROW / 2);
}

/** @type {(context: CanvasRenderingContext2D, box: Box, ink: string) => void} */
function outline(context, box, ink) {
  const row = rowOf(box);
  context.strokeStyle = ink;
  context.lineWidth = 2;
  context.strokeRect(box.x + 1, row * ROW + 1, Math.max(box.width - 3, 1), ROW - 3);
}

/** @param {Box} box */
function rowOf(box) {
  let row = 0;
  for (let caller = box.caller; caller !== null; caller = caller.caller) ++row;
  return row;
}

/** @type {(row: Box[] | undefined, x: number) => Box | null} */
const boxAt = (row, x) => row?.find((box) => x >= box.x && x < box.x + Math.max(box.width, 1)) ?? null;

/** @param {MouseEvent} event */
const under = (event) => boxAt(view.rows[Math.floor(event.offsetY / ROW)], event.offsetX);

/** @param {Box | null} box */
function choose(box) {
  if (box === view.chosen) return;
  view.chosen = box;
  draw();
  say();
}

/** @param {Frame} frame */
function zoomTo(frame) {
  view.zoom = frame;
  view.chosen = null;
  view.rows = placed(tree, frame, canvas.clientWidth);
  view.chosen = view.rows.flat().find((box) => box.frame === frame) ?? null;
  draw();
  say();
}

/** @param {boolean} inverted */
function invert(inverted) {
  byId("inverted").setAttribute("aria-pressed", String(inverted));
  zoomTo(tree.root(inverted));
}

/** @param {Frame} frame */
function innermost(frame) {
  let at = frame;
  while (at.caller !== null && at.caller.fn >= 0) at = at.caller;
  return at;
}

// Says what the chosen frame is, or what can be done.
function say() {
  const box = view.chosen;
  if (box === null) {
    byId("status").textContent = "Click a frame, or press Enter, to zoom; Escape goes back. Arrow keys move, / searches, i inverts.";
    return;
  }
  const { frame } = box;
  const total = `${time(frame.value)} (${share(frame.value)})`;
  if (box.merged > 0) {
    byId("status").textContent = `${box.merged} functions, each narrower than a pixel: ${total}. Zoom into the frame above them to see them.`;
    return;
  }
  const name = element("b", {}, nameOf(frame));
  const module = frame.fn < 0 || tree.functions[frame.fn].module === "" ? "" : ` · ${tree.functions[frame.fn].module}`;
  const values = frame.fn < 0 ? total : !frame.inverted ? `total ${total}, self ${time(tree.selfOf(frame))} (${share(tree.selfOf(frame))})` :
    frame.caller?.fn === -1 ? `self ${total}` : `${total} of ${nameOf(innermost(frame))} is called from here`;
  byId("status").replaceChildren(name, module, element("br", {}), values);
}

// --- keys -------------------------------------------------------------------------------------

/** @param {number} step */
function aside(step) {
  const from = view.chosen ?? view.rows[0][0];
  const row = view.rows[rowOf(from)];
  choose(row[row.indexOf(from) + step] ?? from);
}

function deeper() {
  const from = view.chosen;
  if (from === null) return choose(view.rows[0][0]);
  const below = (view.rows[rowOf(from) + 1] ?? []).filter((box) => box.caller === from);
  if (below.length > 0) choose(below.reduce((widest, box) => (box.width > widest.width ? box : widest)));
}

function back() {
  if (search.value !== "" && document.activeElement === search) {
    search.value = "";
    find();
  } else if (view.zoom.caller !== null) {
    zoomTo(view.zoom.caller);
  }
  canvas.focus();
}

function enter() {
  if (view.chosen !== null && view.chosen.merged === 0) zoomTo(view.chosen.frame);
}

function otherTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  draw();
}

/** @type {Record<string, () => void>} */
const anywhere = {
  "/": () => search.focus(),
  i: () => invert(!view.zoom.inverted),
  t: otherTheme,
  0: () => zoomTo(tree.root(view.zoom.inverted)),
  Escape: back,
};
/** @type {Record<string, () => void>} */
const onGraph = {
  ArrowLeft: () => aside(-1),
  ArrowRight: () => aside(1),
  ArrowUp: () => choose(view.chosen?.caller ?? view.chosen),
  ArrowDown: deeper,
  Home: () => zoomTo(tree.root(view.zoom.inverted)),
  Enter: enter,
  " ": enter,
};

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const writing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (writing && event.key !== "Escape") return;
  const act = (event.target === canvas ? onGraph[event.key] : undefined) ?? anywhere[event.key];
  if (act === undefined) return;
  event.preventDefault();
  act();
  if (event.target === canvas && view.chosen !== null) showChosen();
}

// Scrolls as far as the chosen frame needs, above the line with its values.
function showChosen() {
  const top = canvas.getBoundingClientRect().top + rowOf(/** @type {Box} */ (view.chosen)) * ROW;
  const bottom = innerHeight - byId("status").offsetHeight - ROW;
  if (top < 0) scrollBy(0, top);
  else if (top > bottom) scrollBy(0, top - bottom);
}

// --- search and table -------------------------------------------------------------------------

function find() {
  const wanted = search.value.toLowerCase();
  view.found = wanted === "" ? null : Uint8Array.from(tree.functions, ({ name }) => Number(name.toLowerCase().includes(wanted)));
  const found = view.found;
  const value = found === null ? 0 : tree.matched((fn) => found[fn] === 1);
  byId("matched").textContent = found === null ? "" : `${share(value)} matched (${time(value)})`;
  draw();
}

/** @param {string} name */
function searchFor(name) {
  search.value = name;
  find();
}

/** @type {(title: string, total: boolean) => HTMLElement} */
const sorter = (title, total) => element("th", {}, element("button", {
  type: "button", "aria-pressed": String(view.byTotal === total), title: `Sort by ${title.toLowerCase()}`,
  onclick() {
    view.byTotal = total;
    showHottest();
  },
}, title));

function showHottest() {
  const { self, total } = hot;
  const [first, second] = view.byTotal ? [total, self] : [self, total];
  const order = tree.functions.map((_, fn) => fn).filter((fn) => tree.functions[fn].module !== "")
    .sort((a, b) => first[b] - first[a] || second[b] - second[a]);
  const rows = order.slice(0, MOST_FUNCTIONS).map((fn) => element("tr", {}, ...[self, total].map((of) => element("td", { title: time(of[fn]) }, share(of[fn]))),
    element("td", {}, element("button", { type: "button", class: "plain", title: "Search for it", onclick: () => searchFor(tree.functions[fn].name) }, tree.functions[fn].name),
      element("span", { class: "quiet" }, baseName(tree.functions[fn].module)))));
  const left = order.length - rows.length;
  byId("hottest").replaceChildren(element("table", {},
    element("thead", {}, element("tr", {}, sorter("Self", false), sorter("Total", true), element("th", {}, "Function"))), element("tbody", {}, ...rows)),
  ...(left > 0 ? [element("p", {}, `${left.toLocaleString("en")} more functions`)] : []));
}

// --- begin ------------------------------------------------------------------------------------

function describe() {
  const waits = profile.kind === "wait";
  const count = (/** @type {number} */ n) => n.toLocaleString("en");
  document.title = profile.title;
  byId("title").textContent = profile.title;
  byId("subtitle").textContent = `${scaled(profile.ns, TIMES)} of ${waits ? "waiting" : "CPU time"} in ${count(profile.samples)} ${waits ? "waits" : "samples"} of ${scaled(profile.duration_ns, TIMES)}`;
  const missing = [
    [profile.samples === 0, "no stack was taken"],
    [profile.lost > 0, `${count(profile.lost)} ${waits ? "waits" : "samples"} lost`],
    [profile.lost_mappings > 0, `${count(profile.lost_mappings)} records of mappings lost: names may be missing`],
    [profile.unknown_frames > profile.frames / 100, `${count(profile.unknown_frames)} of ${count(profile.frames)} frames have no name`],
    [profile.truncated > profile.samples / 100, `${count(profile.truncated)} stacks are truncated`],
  ];
  for (const [is, text] of missing) if (is) byId("quality").append(element("li", { class: "warning" }, String(text)));
}

function wire() {
  canvas.addEventListener("mousemove", (event) => choose(under(event)));
  canvas.addEventListener("mouseleave", () => choose(null));
  canvas.addEventListener("click", (event) => {
    choose(under(event));
    enter();
  });
  canvas.addEventListener("focus", () => view.chosen === null && canvas.matches(":focus-visible") && choose(view.rows[0][0]));
  document.addEventListener("keydown", pressed);
  search.addEventListener("input", find);
  byId("colour").addEventListener("change", () => {
    chooseColours();
    draw();
  });
  byId("inverted").addEventListener("click", anywhere.i);
  byId("whole").addEventListener("click", anywhere[0]);
  byId("theme").addEventListener("click", otherTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => {
    view.chosen = null;
    place();
  }).observe(/** @type {HTMLElement} */ (canvas.parentElement));
}

describe();
chooseColours();
showHottest();
place();
say();
wire();
requestAnimationFrame(() => (document.documentElement.dataset.state = "whole"));
