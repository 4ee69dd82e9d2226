// Values as text: scaled to a unit, as times, and as the labels of a time axis.

/** @type {[string, number][]} */
export const TIMES = [[" ns", 1], [" µs", 1e3], [" ms", 1e6], [" s", 1e9]];
const MOST_SHARE = 100.05; // %: a time per second above it is no share
/** @type {[string, number][]} */
const COUNTS = [["", 1], [" k", 1e3], [" M", 1e6], [" G", 1e9]];
/** @type {[string, number][]} */
export const BYTES = [[" B", 1], [" KiB", 1024], [" MiB", 1048576], [" GiB", 1073741824]];

/**
 * @param {number} value
 * @param {[string, number][]} steps
 */
export function scaled(value, steps) {
  let [name, factor] = steps[0];
  for (const [next, above] of steps) if (Math.abs(value) >= above) [name, factor] = [next, above];
  const number = value / factor;
  const digits = Math.abs(number) >= 100 || Number.isInteger(number) ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return number.toFixed(digits) + name;
}

/**
 * A value with its unit, or the rate of one.
 * @param {number | null | undefined} value
 * @param {string} [unit]
 * @param {boolean} [rate]
 */
export function written(value, unit, rate) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const per = rate ? "/s" : "";
  if (unit === "bytes") return scaled(value, BYTES) + per;
  if (unit === "nanoseconds" || unit === "microseconds") {
    const ns = unit === "nanoseconds" ? value : value * 1000;
    if (!rate) return scaled(ns, TIMES);
    // Time per second is a share of the time. A counter that several add to, or that grows at once, has more.
    const share = (ns / 1e9) * 100;
    if (share > MOST_SHARE) return scaled(ns, TIMES) + " each second";
    return (Math.abs(share) < 1 ? String(Number(share.toPrecision(2))) : share.toFixed(1)) + " % of the time";
  }
  return scaled(value, COUNTS) + (unit === "pages" ? " pages" : "") + per;
}

/**
 * The labels of an axis: all in the unit that fits the largest, with enough digits to distinguish neighbouring ticks.
 * @param {number[]} ticks
 * @param {number} step between two ticks
 * @param {[string, number][]} units
 */
function inOneUnit(ticks, step, units) {
  const largest = Math.max(...ticks.map(Math.abs), units[0][1]);
  const [name, factor] = units.filter(([, above]) => largest >= above).pop() ?? units[0];
  let digits = 0;
  while (digits < 9 && Math.abs(((step / factor) * 10 ** digits + 0.5) % 1 - 0.5) > 1e-6) ++digits;
  return ticks.map((tick) => (tick / factor).toFixed(digits) + name);
}

/** @type {(ticks: number[], step: number) => string[]} the labels of a time axis */
export const instants = (ticks, step) => inOneUnit(ticks, step, TIMES);

/**
 * The labels of an axis of values.
 * @param {number[]} ticks
 * @param {number} step
 * @param {string} unit
 * @param {boolean} rate
 */
export function axisLabels(ticks, step, unit, rate) {
  /** @type {(units: [string, number][], behind?: string) => [string, number][]} */
  const each = (units, behind = "") => units.map(([name, factor]) => [name + behind + (rate ? "/s" : ""), factor]);
  if (unit === "bytes") return inOneUnit(ticks, step, each(BYTES));
  if (unit !== "nanoseconds" && unit !== "microseconds") return inOneUnit(ticks, step, each(COUNTS, unit === "pages" ? " pages" : ""));
  const ns = unit === "nanoseconds" ? 1 : 1000;
  const times = ticks.map((tick) => tick * ns);
  const share = rate && Math.max(...times) <= MOST_SHARE * 1e7;
  return inOneUnit(times, step * ns, share ? [[" %", 1e7]] : each(TIMES));
}

/** @param {number} ns */
export const instant = (ns) => (ns / 1e9).toFixed(6) + " s";

/** @param {number} ns */
export const duration = (ns) => scaled(ns, TIMES);

/** @param {number} n */
export const bytes = (n) => scaled(n, BYTES);

/** @param {number} share */
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/**
 * A time per second: a share of one core, or so many cores.
 * @param {number} share
 */
export const cores = (share) => (share > 1.005 ? `${share.toFixed(1)} cores` : `${(100 * share).toFixed(share < 0.0995 && share > 0 ? 1 : 0)} %`);

/**
 * The names of two files or folders, with as many of the folders above as it takes to tell them apart:
 * "old/run.tsv" and "new/run.tsv".
 * @param {string} a
 * @param {string} b
 */
export function toldApart(a, b) {
  const both = [a, b].map((path) => path.replace(/\/+$/, "").split("/"));
  const most = Math.max(...both.map((names) => names.length));
  for (let count = 1; ; count++) {
    const ends = both.map((names) => names.slice(-count).join("/"));
    if (ends[0] !== ends[1] || count >= most) return ends;
  }
}

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
