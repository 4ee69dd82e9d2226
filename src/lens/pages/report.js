// The page of `kymo report --html`: draws the data that the C++ code packed (docs/web.md).
// All data from a recording is set as text, never as markup.
import { Board } from "./board.js";
import { moveBy } from "./charts.js";
import { byId, element, fold, table as makeTable, takeToken } from "./dom.js";
import { bytes, duration, instant, instants, percent, written } from "./format.js";
import { inHistogram, quantileRows } from "./histograms.js";
import { colorOfPhase, phasesOf, sums } from "./phases.js";
import { Recording } from "./recording.js";
import { stacksOfPage } from "./stacks.js";
import { Timeline } from "./timeline.js";
import { verdictBox } from "./verdict.js";

/** @import { Stacks } from "./stacks.js" */
/** @import { Described, Scope, SummedColumn } from "./types.d.ts" */

const MOST_PHASES = 12; // in the short table

/** @type {Described} */
const recording = JSON.parse(byId("recording").textContent ?? "");
const data = new Recording(recording);
// The number of a state says nothing: the phases have its names.
const counted = inHistogram(recording.columns);
const shown = data.shown.filter((column) => column.name !== "phase" && !counted(column));
const { gaps } = data;
const request = phasesOf(recording);
const phases = request.phases.map((phase) => ({ ...phase, ...(request.exact ? { color: colorOfPhase(phase.name) } : {}) }));
/** @param {number} t of the rows, as a time since the request began */
const at = (t) => instant(t - request.origin);

// --- charts -----------------------------------------------------------------------------------

const fileName = () => recording.path.split("/").pop() ?? "";
/** @returns {[number, number]} */
const bounds = () => [recording.first_ns, Math.max(recording.last_ns, recording.first_ns + 1)];
/** @type {Board} */
const board = new Board(byId("charts"), {
  columns: shown,
  // Column 0 of the data is the time, so the shown columns begin at 1.
  lines: (indices, from, to, pixels) => data.linesOf(indices.map((i) => data.shown.indexOf(shown[i]) + 1), from, to, pixels, (i) => board.view.rates && data.shown[i - 1].kind === "counter"),
  bounds,
  home() {
    const [first, last] = bounds();
    if (!request.exact) return [first, last];
    const [begin, end] = [phases[0].begin_ns, phases[phases.length - 1].end_ns];
    const margin = 0.04 * (end - begin);
    const range = /** @type {[number, number]} */ ([Math.max(begin - margin, first), Math.min(end + margin, last)]);
    return range[0] < range[1] ? range : [first, last];
  },
  phases: () => phases,
  gaps: () => gaps,
  name: fileName,
  instants: (ticks, step) => instants(ticks.map((t) => t - request.origin), step),
  say(cursor) {
    const { charts, view } = board;
    const what = charts.length === 0 ? timeline.empty ? "" : missed() : charts.every((chart) => chart.single) ? "single samples; lowest to highest where a pixel holds several"
      : recording.samples_left_out ? "lowest to highest of each 1,024 rows: single samples here are not in this page" : "lowest to highest of each 1,024 rows";
    byId("range").textContent = `${at(view.from)} to ${at(view.to)}, ${duration(view.to - view.from)}${what ? ": " + what : ""}` +
      (cursor === undefined ? "" : ` · at ${at(cursor)}`) + (data.trouble ? ` · ${data.trouble}` : "");
    timeline.read(cursor);
  },
});
/** @type {Stacks | null} */
let stacks = null;
/** @type {Timeline} */
const timeline = new Timeline(byId("timeline"), board, data, { ...request, phases }, (name) => stacks?.choose(name));

function missed() {
  const ticks = gaps.reduce((sum, gap) => sum + gap.ticks, 0);
  return "drag, or turn the wheel, to see single samples" + (ticks > 0 ? `; ${ticks.toLocaleString("en")} missed ticks are gaps` : "");
}

// --- text and tables --------------------------------------------------------------------------

/** @type {(title: string, note: string, ...content: (Node | string)[]) => void} */
function folded(title, note, ...content) {
  byId("tables").append(fold(title, note, ...content));
}

function describe() {
  const about = recording.about || {};
  const name = about.job ? about.job.name : about.target && about.target.pid ? `process ${about.target.pid}` : "";
  const what = about.request ? `${about.request}${name ? " of " + name : ""}` : "";
  document.title = fileName();
  byId("title").textContent = what ? what[0].toUpperCase() + what.slice(1) : fileName();
  byId("subtitle").textContent = [
    what ? fileName() : "", recording.start_unix_ns ? new Date((recording.start_unix_ns + request.origin) / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "",
    name && about.target?.pid && about.job ? `process ${about.target.pid}` : "", about.image_bytes ? bytes(about.image_bytes) : "",
    `${recording.rows.toLocaleString("en")} rows in ${duration(recording.duration_ns)}`,
    recording.interval_ns ? `one every ${duration(recording.interval_ns)}` : "", recording.host || "", about.outcome && about.outcome !== "ok" ? about.outcome : recording.state || "",
  ].filter(Boolean).join(" · ");
  const box = verdictBox(about.verdict);
  if (box) byId("verdict-place").append(box);
  describeQuality();
}

// Of a request, a good quality is not worth a line on the first screen.
function describeQuality() {
  const missing = recording.about?.inside?.missing;
  const notSeen = (Array.isArray(missing) ? missing : []).filter((text) => typeof text === "string").map((text) => ({ level: "warning", text: `not seen: ${text}` }));
  const notes = recording.notes.filter((text) => !recording.quality.some((one) => one.text === text));
  const items = [...recording.quality.map((one) => ({ level: one.level, text: one.text })), ...notes.map((text) => ({ level: "warning", text })), ...notSeen,
    ...recording.left_out.map((span) => ({ level: "bad", text: `lines ${span.first_line} to ${span.last_line} left out: ${span.reason}` }))];
  const first = items.filter((item) => !ofRequest() || item.level === "bad").slice(0, ofRequest() ? 3 : items.length);
  /** @param {{ level: string, text: string }} item */
  const made = (item) => element("li", { class: item.level }, item.text);
  byId("quality").append(...first.map(made));
  const rest = items.filter((item) => !first.includes(item));
  const worst = ["bad", "warning"].find((level) => rest.some((item) => item.level === level)) ?? "good";
  if (rest.length > 0) folded("Quality of the recording", worst, element("ul", { class: "quality" }, ...rest.map(made)));
}

const ofRequest = () => Boolean(recording.about && recording.about.request);

function phasesTable() {
  const all = sums(phases);
  const whole = all.reduce((sum, one) => sum + one.duration_ns, 0) || 1;
  const kept = new Set(all.slice().sort((a, b) => b.duration_ns - a.duration_ns).slice(0, all.length > MOST_PHASES ? MOST_PHASES - 1 : MOST_PHASES));
  const rest = all.filter((one) => !kept.has(one));
  /** @type {(name: Node | string, ns: number, color: string) => (Node | string)[]} */
  const row = (name, ns, color) => [name, duration(ns), percent(ns / whole),
    element("span", { class: "track short" }, element("span", { class: "bar", style: `width:${((100 * ns) / whole).toFixed(2)}%;background:${color}` }))];
  const rows = all.filter((one) => kept.has(one)).map((one) => {
    const go = element("button", { type: "button", class: "plain", title: "Show it" }, element("span", { class: "swatch", style: `background:${colorOfPhase(one.name)}` }), one.name);
    go.addEventListener("click", () => {
      board.go(one.first.begin_ns, one.first.end_ns);
      stacks?.choose(one.name);
    });
    return row(one.times > 1 ? element("span", {}, go, ` ${one.times}×`) : go, one.duration_ns, colorOfPhase(one.name));
  });
  if (rest.length > 0) rows.push(row(`${rest.length} more`, rest.reduce((sum, one) => sum + one.duration_ns, 0), "var(--band)"));
  byId("short").append(element("section", {}, element("h2", {}, request.exact ? "Phases" : "Phases, from mark to mark"), makeTable(["phase", "time", request.exact ? "of the request" : "of the recording", ":"], rows, { class: "lines" })));
}

// What somebody asks for first, as far as it is known.
function figures() {
  const { verdict, image_bytes, stats } = recording.about || {};
  /** @param {string} name */
  const grew = (name) => {
    const column = shown.find((one) => one.name === name);
    return column ? column.last - column.first : 0;
  };
  /** @type {[string, number | undefined, (value: number) => string][]} */
  const known = [
    ["took", request.exact ? phases[phases.length - 1].end_ns - phases[0].begin_ns : 0, duration],
    ["processes stood still", verdict?.frozen_ns || ((stats?.freezing_time_us ?? 0) + (stats?.frozen_time_us ?? 0)) * 1000, duration],
    ["downtime in all", verdict?.downtime_ns, duration],
    ["images", image_bytes, bytes], ["pages written", (stats?.pages_written ?? 0) + (stats?.shpages_written ?? 0), (n) => n.toLocaleString("en")], ["of them, of shared memory", stats?.shpages_written, (n) => n.toLocaleString("en")], ["pages restored, without shared memory", stats?.pages_restored, (n) => n.toLocaleString("en")],
    ["CRIU’s time on a CPU", grew("criu_run_ns") || grew("criu_cpu_ns"), duration], ["CRIU waited for a CPU", grew("criu_runnable_ns") || grew("criu_cpu_wait_ns"), duration],
    ["CRIU waited for the disk", grew("criu_disk_wait_ns"), duration],
  ];
  const rows = known.filter(([, value]) => typeof value === "number" && value > 0).map(([name, value, write]) => [name, write(Number(value))]);
  if (rows.length > 0) byId("short").append(element("section", {}, element("h2", {}, "In figures"), makeTable(["", ""], rows, { class: "lines" })));
}

const MOST_TREES = 20;

function tables() {
  if (phases.length > 0) {
    phasesTable();
    if (ofRequest()) figures();
    folded("Phases in order", `${phases.length}, with what shows each`, makeTable(["phase", "begins", "lasts", "shown by:"], phases.map((phase) => [
      phase.name + (phase.frozen ? " (processes stand still)" : ""), at(phase.begin_ns) + (phase.uncertainty_ns ? ` ± ${duration(phase.uncertainty_ns)}` : ""),
      duration(phase.end_ns - phase.begin_ns), phase.evidence ?? "a mark of the recording"])));
  }
  const { stats } = recording.about || {};
  if (stats && Object.keys(stats).length > 0) folded("CRIU’s statistics", `${Object.keys(stats).length} figures`, makeTable(["figure", "value"], Object.entries(stats).map(([name, value]) => [
    name, name.endsWith("_us") ? written(value, "microseconds") : Number(value).toLocaleString("en")])));
  const tree = (recording.about || {}).timing;
  if (tree) folded("Steps of the request", duration(tree.duration_ns || 0), makeTable(["part", "lasts", "share", ":"], treeRows(tree, tree.duration_ns || 1, 0)));
  const own = [...(recording.scopes || [])].sort((a, b) => (b.duration_ns || 0) - (a.duration_ns || 0));
  if (own.length > 0) folded("Scopes of the program", `the longest of ${own.length.toLocaleString("en")}`, makeTable(["scope", "lasts", "share", ":"],
    own.slice(0, MOST_TREES).flatMap((one) => treeRows(one, one.duration_ns || 1, 0))));
  columnsTables();
  if (gaps.length > 0) folded("Gaps", `the ${gaps.length} longest`, makeTable(["begins", "lasts", "ticks", "cause:"],
    gaps.map((gap) => [at(gap.start_ns), duration(gap.end_ns - gap.start_ns), gap.ticks.toLocaleString("en"), gap.cause])));
  const { timing: _timing, phases: _phases, verdict: _verdict, ...about } = recording.about || {};
  const shownAlready = new Set(["columns", "scopes", "phases", "histograms", "gaps", "quality", "notes", "left_out"]);
  const rest = Object.fromEntries(Object.entries(recording).filter(([name]) => !shownAlready.has(name)));
  folded("Metadata", "", element("pre", {}, JSON.stringify({ ...rest, about }, null, 2)));
}

function columnsTables() {
  /** @param {SummedColumn[]} columns */
  const counters = (columns) => makeTable(["counter", "first", "last", "mean rate", "highest rate", "at"], columns.map((c) => [
    c.rate_window_ns === recording.rate_window_ns ? c.name : `${c.name} (over ${duration(c.rate_window_ns)})`,
    written(c.first, c.unit), written(c.last, c.unit),
    written(c.rate_per_second, c.unit, true), written(c.highest_rate_per_second, c.unit, true), at(c.highest_rate_at_ns)]));
  /** @param {SummedColumn[]} columns */
  const gauges = (columns) => makeTable(["gauge", "first", "last", "lowest", "highest", "mean"],
    columns.map((c) => [c.name, ...[c.first, c.last, c.min, c.max, c.mean].map((v) => written(v, c.unit))]));
  const histograms = quantileRows(recording.columns);
  if (histograms.length > 0) folded("Histograms", `${histograms.length}, with quantiles`, makeTable(["histogram", "observed", "mean", "50 %", "90 %", "99 %", "max"], histograms));
  const counting = shown.filter((column) => column.kind === "counter");
  const gauging = shown.filter((column) => column.kind !== "counter");
  const parts = [...(counting.length > 0 ? [counters(counting)] : []), ...(gauging.length > 0 ? [gauges(gauging)] : [])];
  const idle = recording.columns.filter((column) => column.idle && column.name !== "phase" && !counted(column));
  if (idle.length > 0) parts.push(element("p", { class: "names" }, `Never changed: ${idle.map((c) => `${c.name} = ${c.first ?? "never a value"}`).join(", ")}`));
  if (parts.length > 0) folded("Columns", `${shown.length} that changed, ${idle.length} that did not`, ...parts);
}

/**
 * @param {Scope} node
 * @param {number} whole its duration
 * @param {number} depth
 * @param {number} around the thread of the scope around it
 * @returns {(Node | string)[][]}
 */
function treeRows(node, whole, depth, around = 0) {
  const share = (node.duration_ns || 0) / whole;
  const bar = element("span", { class: "track" }, element("span", { class: "bar", style: `width:${(12 * share).toFixed(3)}rem` }));
  const thread = node.thread && node.thread !== around ? ` (thread ${node.thread})` : "";
  const name = "\u2003".repeat(depth) + node.name + thread + (node.parallel ? " (parallel)" : "") + (node.redundant ? " (in what stands above)" : "");
  const row = [name, duration(node.duration_ns || 0), percent(share), bar];
  return [row, ...(node.components || []).flatMap((part) => treeRows(part, whole, depth + 1, node.thread || around))];
}

// --- start ------------------------------------------------------------------------------------

// The charts of all columns are folded away where lanes show what matters.
function startCharts() {
  const all = /** @type {HTMLDetailsElement} */ (byId("all-charts"));
  const summary = /** @type {HTMLElement} */ (all.querySelector("summary"));
  summary.append("Charts of all columns", element("span", { class: "quiet" }, ` ${shown.length}`));
  if (shown.length === 0) all.hidden = true;
  all.open = !ofRequest() || timeline.lanes.length === 0;
  const make = () => (board.charts.length === 0 ? board.make() : board.resize());
  if (all.open) make();
  all.addEventListener("toggle", () => all.open && make());
}

async function begin() {
  describe();
  stacks = stacksOfPage();
  tables();
  if (recording.rows === 0) {
    byId("all-charts").hidden = true;
    return;
  }
  await data.readOutlines();
  if (!timeline.empty) {
    byId("happened").hidden = false;
    timeline.make();
    board.others.push(timeline);
    moveBy(timeline.axis.plot, board, () => timeline.axis.plot.clientWidth);
  }
  startCharts();
  board.redraw();
  document.documentElement.dataset.state = "outlines";
}

const begun = begin();
// The samples stand behind this script, at the end of the page.
document.addEventListener("DOMContentLoaded", async () => {
  await begun;
  if (recording.served) data.serve(takeToken(), () => board.redraw());
  else await data.readSamples();
  board.redraw();
  requestAnimationFrame(() => (document.documentElement.dataset.state = "whole"));
});

board.wire();
