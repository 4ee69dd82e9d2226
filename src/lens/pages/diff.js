// The page of `kymo diff --html`: aligned recordings drawn over each other. All data from a
// recording is set as text, never as markup.
import uPlot from "uplot";
import { Board } from "./board.js";
import { byId, css, element, fold, table as makeTable } from "./dom.js";
import { TIMES, instant, instants, percent, scaled, toldApart, written } from "./format.js";
import { Recording } from "./recording.js";

/** @import { CheckpointDifference, Column, Diff, Difference, Group } from "./types.d.ts" */

const MOST_CHARTS = 40;
const FIRST_ROWS = 20; // of the differences of checkpoints
/** @type {Record<string, string>} */
const SIDES = { A: "#0090ff", B: "#f76b15" };
/** @type {Diff} */
const diff = JSON.parse(byId("diff").textContent ?? "");
const runs = diff.recordings.map((described, i) => ({ described, data: new Recording(described, `r${i}-`) }));
/** @typedef {typeof runs[number]} Run */

// Times on the page count from the point at which a recording is aligned.
const compared = {
  from: Math.min(...diff.recordings.map((run) => run.window_ns[0] - run.origin_ns)),
  to: Math.max(...diff.recordings.map((run) => run.window_ns[1] - run.origin_ns)),
};
const whole = {
  from: Math.min(...diff.recordings.map((run) => run.first_ns - run.origin_ns)),
  to: Math.max(...diff.recordings.map((run) => run.last_ns - run.origin_ns)),
};

// --- charts -----------------------------------------------------------------------------------

/** @type {(Column & { run: Run, index: number })[]} the lines of all charts, with their recording and their column in it */
const columns = [];
/** @type {(Group & { metric: Difference })[]} the charts, in Board's form */
const drawn = [];

// Makes a chart for each metric that a recording has a line of, up to the maximum number.
function choose() {
  const all = diff.metrics.filter((metric) => metric.what !== "phase duration").map((metric) => ({ metric, lines: linesFor(metric.name) })).filter(({ lines }) => lines.length > 0);
  for (const { metric, lines } of all.slice(0, MOST_CHARTS)) {
    const entries = Object.entries(SIDES).map(([side, color]) => ({ name: side, color, lines: lines.flatMap(({ run }, k) => (run.described.side === side ? [k] : [])) }));
    drawn.push({ title: metric.name, note: change(metric), metric, indices: lines.map((_, k) => columns.length + k), entries, alpha: lines.length > 2 ? 0.55 : 0.9 });
    columns.push(...lines.map(({ run, index, column }) => ({ ...column, run, index })));
  }
  return all.length - drawn.length;
}

/**
 * The runs that have a column of this name, with its index in each.
 * @param {string} name
 */
function linesFor(name) {
  return runs.flatMap((run) => {
    const at = run.data.shown.findIndex((column) => column.name === name);
    return at < 0 ? [] : [{ run, index: at + 1, column: run.data.shown[at] }];
  });
}

/** @type {Board} */
const board = new Board(byId("charts"), {
  columns,
  groups: () => drawn,
  home: () => [compared.from, compared.to],
  bounds: () => [whole.from, whole.to],
  // Each recording has its own times. At the times of other recordings, its line continues.
  lines(indices, from, to, pixels) {
    const tables = indices.map((i) => {
      const { run, index } = columns[i];
      const origin = run.described.origin_ns;
      const lines = run.data.linesOf([index], from + origin, to + origin, pixels, () => board.asRate(i));
      return /** @type {uPlot.AlignedData} */ ([lines.times.map((time) => time - origin), lines.values[0]]);
    });
    const [times, ...values] = uPlot.join(tables, tables.map(() => [0, 2]));
    return { times, values };
  },
  drawBehind: drawMarks,
  name: () => document.title,
  instants,
  say,
});

/**
 * Draws the marks of each side's first recording as lines with names, and the compared range as a
 * band.
 * @param {uPlot} plot
 */
function drawMarks(plot) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  /** @param {number} time */
  const place = (time) => plot.valToPos(time, "x", true);
  ctx.globalAlpha = 0.12;
  ctx.fillStyle = css("--band");
  ctx.fillRect(place(compared.from), bbox.top, place(compared.to) - place(compared.from), bbox.height);
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  Object.entries(SIDES).forEach(([side, color], row) => {
    const run = diff.recordings.find((recording) => recording.side === side);
    if (run === undefined) return;
    let free = -Infinity;
    for (const phase of run.phases) {
      const x = place(phase.begin_ns - run.origin_ns);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.globalAlpha = 0.8;
      ctx.fillStyle = color;
      ctx.fillRect(x, bbox.top, devicePixelRatio, bbox.height);
      if (x < free) continue;
      ctx.globalAlpha = 1;
      ctx.fillText(phase.name, x + 3, bbox.top + 2 + row * 14 * devicePixelRatio);
      free = x + ctx.measureText(phase.name).width + 8;
    }
  });
  ctx.restore();
}

/** @param {number} [cursor] */
function say(cursor) {
  const at = diff.aligned_at ? ` from ${diff.aligned_at}` : "";
  byId("range").textContent = `${instant(board.view.from)} to ${instant(board.view.to)}${at}, ${scaled(board.view.to - board.view.from, TIMES)}` +
    (diff.recordings.some((run) => run.samples_left_out) ? ": single samples only of what was compared" : "") +
    (cursor === undefined ? "" : ` · at ${instant(cursor)}`);
}

// --- text and tables --------------------------------------------------------------------------

/** @param {number} share */
const signedPercent = (share) => (share >= 0 ? "+" : "−") + percent(Math.abs(share));

/** @param {Difference} metric */
function change(metric) {
  if (metric.a === null || metric.b === null) return metric.a === null ? "only B has it" : "only A has it";
  const size = metric.share === null ? "from nothing" : signedPercent(metric.share);
  return metric.verdict === "changed" ? `${size}, beyond noise` : metric.verdict === "no change" ? "no change beyond noise" : metric.verdict === "the same" ? "the same" : `${size}, not to be told from noise`;
}

/** @type {(metric: Difference, value: number | null) => string} */
const amount = (metric, value) => (value === null ? "–" : written(value, metric.unit, metric.what === "rate per second"));
/** @param {Difference} metric */
const label = (metric) => (metric.what === "phase duration" ? "phase: " : "") + metric.name;

/** @param {Difference} metric */
function link(metric) {
  const chart = board.charts[drawn.findIndex((one) => one.metric === metric)];
  if (chart === undefined) return label(metric);
  return element("button", { type: "button", title: "Show its chart", onclick: () => chart.box.scrollIntoView({ behavior: "smooth" }) }, label(metric));
}

/**
 * @param {string} title
 * @param {string[]} head
 * @param {(Node | string)[][]} rows
 */
function table(title, head, rows) {
  if (rows.length > 0) byId("tables").append(element("h2", {}, title), makeTable(head, rows));
}

function tables() {
  /** @param {...string} verdicts */
  const of = (...verdicts) => diff.metrics.filter((metric) => verdicts.includes(metric.verdict));
  table("Changed beyond noise", ["metric", "A", "B", "median shift", "95 % interval", "p", diff.values], of("changed").map((m) => [
    link(m), amount(m, m.a), amount(m, m.b), m.share === null ? "from nothing" : signedPercent(m.share),
    m.a ? `${signedPercent(m.shift_low / m.a)} to ${signedPercent(m.shift_high / m.a)}` : "–",
    m.adjusted_p < 0.0001 ? "< 0.0001" : m.adjusted_p.toFixed(4), `${m.values_a}, ${m.values_b}`]));
  table("Not to be told from noise", ["metric", "A", "B", "difference", "why:"], of("cannot be told", "on one side only").map((m) => [
    link(m), amount(m, m.a), amount(m, m.b), m.share === null ? "–" : signedPercent(m.share), element("span", { class: "why" }, m.reason || change(m))]));
  for (const verdict of ["no change", "the same"]) {
    const names = of(verdict).map((m) => label(m) + (m.in_one_bucket ? " (in one bucket)" : "")).sort().join(", ");
    if (names) byId("tables").append(element("h2", {}, verdict === "no change" ? "No change beyond noise" : "The same"), element("p", {}, names));
  }
}

/** @type {(difference: CheckpointDifference) => string[]} */
function differenceRow({ group, name, unit, per_second, a, b, change: by, share }) {
  /** @type {(value: number | null) => string} */
  const shown = (value) => (value === null ? "–" : written(value, unit, per_second));
  return [group, name, shown(a), shown(b), a === null ? "only in B" : b === null ? "only in A" : (by < 0 ? "−" : "+") + shown(Math.abs(by)),
    share === null ? "" : signedPercent(share)];
}

// Why one dump took longer, and all that differs between the checkpoints of the recordings.
function checkpointTables() {
  if (!diff.checkpoints) return;
  const { a, b, lines, notes, differences } = diff.checkpoints;
  const place = byId("checkpoints");
  place.append(element("h2", {}, "The two checkpoints"));
  for (const [side, path] of [["A", a], ["B", b]]) place.append(element("p", { class: "quiet" }, `${side}: ${path}`));
  for (const line of [...lines, ...notes]) place.append(element("p", {}, line));
  if (differences.length === 0) {
    place.append(element("p", {}, "Nothing differs."));
    return;
  }
  const head = ["of", "what changed most first:", "A", "B", "change", ""];
  place.append(makeTable(head, differences.slice(0, FIRST_ROWS).map(differenceRow)));
  const more = differences.slice(FIRST_ROWS).map(differenceRow);
  if (more.length > 0) place.append(fold(`${more.length} more`, "", makeTable(head, more)));
}

function describe() {
  /** @param {string} name */
  const side = (name) => diff.recordings.filter((run) => run.side === name);
  // The recordings of all checkpoints have the same name.
  /** @type {Record<string, string | undefined>} */
  const checkpoints = { A: diff.checkpoints?.a, B: diff.checkpoints?.b };
  /** @param {string} name */
  const named = (name) => checkpoints[name] || (side(name).length === 1 ? side(name)[0].path : `${side(name).length} recordings`);
  document.title = toldApart(named("A"), named("B")).join(" → ");
  byId("title").textContent = document.title;
  byId("subtitle").textContent = `${diff.test}'s test, a value of each ${diff.values === "runs" ? "run" : "block"}; p corrected (${diff.correction}) for ${diff.tested} metrics` +
    (diff.margin > 0 ? `; changes of up to ${diff.margin * 100} % ignored` : "");
  const changed = diff.metrics.filter((metric) => metric.verdict === "changed").length;
  const told = changed > 0 || diff.metrics.some((metric) => metric.verdict === "no change");
  byId("quality").append(element("li", { class: changed || !told ? "warning" : "good" },
    !told ? "nothing can be told from noise" : changed === 0 ? "nothing changed beyond noise" : `${changed} ${changed === 1 ? "metric" : "metrics"} changed beyond noise`));
  if (diff.fail_on_change && diff.fail_on_change.outcome === "cannot tell") {
    const { broken, cannot_tell, runs_needed } = diff.fail_on_change;
    const why = broken.length > 0 ? `these recordings do not hold all that happened: ${broken.join("; ")}` :
      `cannot tell whether ${cannot_tell.join(", ")} changed: ${runs_needed ? `it takes about ${runs_needed}` : "not even 100"} recordings of each side${runs_needed ? "" : " would decide"}`;
    byId("quality").append(element("li", { class: "warning" }, why));
  }
  for (const note of diff.notes) byId("quality").append(element("li", { class: "warning" }, note));
  for (const run of diff.recordings) {
    byId("sides").append(element("li", {}, element("span", { class: "swatch", style: `background:${SIDES[run.side]}` }), `${run.side}: ${run.path}`));
  }
}

async function begin() {
  describe();
  await Promise.all(runs.map((run) => run.data.readOutlines()));
  await Promise.all(runs.map((run) => run.data.readSamples()));
  const more = choose();
  board.make();
  checkpointTables();
  if (more > 0) byId("charts").append(element("p", {}, `${more} more metrics are not drawn`));
  tables();
  requestAnimationFrame(() => (document.documentElement.dataset.state = "whole"));
}

byId("reset").textContent = "compared";
byId("reset").title = "What was compared (0)";
board.wire();
begin();
