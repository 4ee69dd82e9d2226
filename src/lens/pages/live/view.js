// The charts of the live page: what they draw, and which range they show or follow.
import { Board } from "../board.js";
import { byId, fieldById } from "../dom.js";
import { duration } from "../format.js";
import { Lines } from "../lines.js";
import { before, seek } from "./past.js";
import { state } from "./state.js";

/** @import { Source } from "../types.d.ts" */

/**
 * A time of the recording as wall clock time, with enough digits for `step`.
 * @param {number} ns
 * @param {number} step
 */
function clock(ns, step) {
  const ms = (state.status?.recorder.start_unix_ns ?? 0) / 1e6 + ns / 1e6;
  const date = new Date(ms);
  const whole = [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
  const digits = step >= 1e9 ? 0 : step >= 1e6 ? 3 : 6;
  return digits === 0 ? whole : whole + (((ms % 1000) + 1000) % 1000 / 1000).toFixed(digits).slice(1);
}

const pointNs = () => 1e9 / Number(fieldById("detail").value); // Infinity: every row
const everyRow = () => pointNs() === Infinity || pointNs() <= (state.status?.recorder.interval_ns ?? 0);
const gaps = () => (state.past ? [...state.past.gaps, ...state.gaps] : state.gaps);

/** @type {Source} */
const source = {
  labelWidth: 96,
  get columns() {
    return state.shown;
  },
  lines(indices, from, to, pixels) {
    const first = state.store.first();
    const early = from < first && state.first < first;
    if (early) seek(from, Math.min(to, first, state.now), () => board.redraw());
    const past = early ? state.past : null;
    const lines = new Lines(indices.length, (to - from) / pixels, past ? gaps() : state.gaps);
    const thinned = indices.map((i) => board.view.rates || state.shown[i].kind !== "counter");
    if (past) past.store.fill(lines, indices, thinned, from, Math.min(to, first));
    state.store.fill(lines, indices, thinned, from, to);
    lines.close();
    lines.single = everyRow();
    return lines;
  },
  bounds() {
    const first = Math.min(state.store.first(), state.first, state.now - 1e9);
    return [Math.max(first, 0), Math.max(state.now, first + 1e9)];
  },
  phases: () => [...state.requests.values()].flatMap((one) => one.phases.map((phase) => (
    { name: phase.name, begin_ns: phase.begin_ns, end_ns: phase.end_ns ?? state.now }))),
  gaps,
  instants: (ticks, step) => ticks.map((t) => clock(t, step)),
  name: () => "kymod",
  moved: () => follow(false),
  say(cursor) {
    if (state.status === null) return; // nothing is known yet
    const { from, to } = board.view;
    const what = state.shown.length === 0 ? "no metric is chosen" : everyRow() ? "every row" : `lowest to highest${board.view.rates ? `, rates over at least ${duration(Math.min(pointNs(), 10e6))}` : ""}`;
    byId("range").textContent = `${clock(from, 1e6)} to ${clock(to, 1e6)}, ${duration(to - from)}: ${what}` + before(from) +
      (cursor === undefined ? "" : ` · at ${clock(cursor, 1e5)}`);
  },
  keys: { p: () => follow(!state.follow) },
};

/** @type {Board} */
export const board = new Board(byId("charts"), source);

// Folds away the charts whose columns have not changed in what this page has received.
export function foldIdle() {
  const idle = /** @type {HTMLDetailsElement} */ (byId("idle"));
  const [summary, inner] = idle.children;
  /** @type {string[]} */
  const names = [];
  for (const chart of board.charts) {
    const moved = !state.status?.recorder.running || chart.indices.some((i) => state.store.moved[i] || state.past?.store.moved[i]);
    if (!moved) names.push(...chart.columns.map((column) => column.name));
    const place = moved ? board.box : inner;
    if (chart.box.parentElement !== place) place.append(chart.box);
  }
  idle.hidden = names.length === 0;
  const text = `Not changed in what was received: ${names.join(", ")}`;
  if (summary.textContent !== text) summary.textContent = text;
}

export function showWhole() {
  board.show(...source.bounds());
}

/** @param {boolean} on */
export function follow(on) {
  state.follow = on;
  byId("pause").setAttribute("aria-pressed", String(!on));
  byId("pause").textContent = on ? "pause" : "follow";
  if (on) advance();
}

// Shows the newest samples, if the page follows them.
export function advance() {
  if (!state.follow || !state.status?.recorder.running) return;
  board.show(state.now - Number(fieldById("window").value) * 1e9, state.now);
}

export function wireView() {
  board.wire();
  /** @type {[string, string, () => void][]} */
  const actions = [
    ["pause", "click", () => follow(!state.follow)], ["window", "change", () => follow(true)],
    ["in", "click", () => board.zoom(0.5)], ["out", "click", () => board.zoom(2)],
    ["earlier", "click", () => board.move(-0.5)], ["later", "click", () => board.move(0.5)],
  ];
  for (const [id, event, act] of actions) byId(id).addEventListener(event, act);
}
