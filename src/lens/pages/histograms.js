// Quantiles of the histograms of a recording (docs/library.md). The counts of buckets say little by themselves.
import { written } from "./format.js";
import { Heat } from "./heat.js";

/** @import { LaneKind } from "./lanes.js" */
/** @import { SummedColumn } from "./types.d.ts" */
/** @typedef {{ low: number, high: number, column: SummedColumn }} Bucket */
/** @typedef {{ name: string, unit: string, buckets: Bucket[], sum?: SummedColumn, count?: SummedColumn }} Histogram */

const QUANTILES = [0.5, 0.9, 0.99];
const COLORS = ["#3b82f6", "#e0862b", "#e5484d"];
/** @param {number} quantile */
const percent = (quantile) => `${100 * quantile} %`;

/**
 * @param {SummedColumn[]} columns
 * @returns {Histogram[]}
 */
export function histogramsOf(columns) {
  /** @type {Map<string, Histogram>} */
  const all = new Map();
  for (const column of columns) {
    const bounds = (column.fields?.bucket ?? "").match(/^(\d+)-(\d+|inf)$/);
    if (!bounds || !column.metric) continue;
    const one = all.get(column.metric) ?? { name: column.metric, unit: "", buckets: [] };
    one.buckets.push({ low: Number(bounds[1]), high: bounds[2] === "inf" ? Infinity : Number(bounds[2]), column });
    all.set(column.metric, one);
  }
  for (const one of all.values()) {
    one.buckets.sort((a, b) => a.low - b.low);
    one.sum = columns.find((column) => column.name === `${one.name}_sum`);
    one.count = columns.find((column) => column.name === `${one.name}_count`);
    one.unit = one.sum?.unit ?? "";
  }
  return [...all.values()];
}

/**
 * The value below which this share of the counted values lies. Within a bucket they count as evenly
 * spread. In the first bucket it is its bound, because it may be anything below. In the last one, which has no
 * bound, it is its lower bound. Null if nothing was counted.
 * @param {{ low: number, high: number }[]} buckets by value
 * @param {number[]} counts of each
 * @param {number} share
 */
export function quantile(buckets, counts, share) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (!(all > 0)) return null;
  let left = share * all;
  for (let i = 0; i < buckets.length; ++i) {
    if (left <= counts[i] && counts[i] > 0) {
      const { low, high } = buckets[i];
      return low === 0 ? high : high === Infinity ? low : low + ((high - low) * left) / counts[i];
    }
    left -= counts[i];
  }
  return buckets[buckets.length - 1].low;
}

/**
 * The bound that no value was above, "> bound" if there are values above the last one.
 * @param {Bucket[]} buckets by value
 * @param {number[]} counts of each
 * @param {string} unit
 */
function highest(buckets, counts, unit) {
  let last = counts.length - 1;
  while (last >= 0 && !(counts[last] > 0)) --last;
  if (last < 0) return written(null, unit);
  const { low, high } = buckets[last];
  return high === Infinity ? `> ${written(low - 1, unit)}` : `\u2264 ${written(high, unit)}`;
}

/**
 * A quantile as text. In a bucket without one of its bounds, all that is known is on which side of the other it lies.
 * @param {Histogram} histogram
 * @param {number | null} value
 */
function writtenQuantile({ buckets, unit }, value) {
  const [first, last] = [buckets[0], buckets[buckets.length - 1]];
  if (value !== null && value === last.low && last.high === Infinity) return `> ${written(last.low - 1, unit)}`;
  return (value !== null && value === first.high ? "\u2264 " : "") + written(value, unit);
}

/**
 * Rows of a table: name, values, mean, quantiles and maximum.
 * @param {SummedColumn[]} columns
 */
export function quantileRows(columns) {
  return histogramsOf(columns).map((one) => {
    const counts = one.buckets.map(({ column }) => column.last - column.first);
    const all = counts.reduce((sum, count) => sum + count, 0);
    const mean = one.sum && all > 0 ? (one.sum.last - one.sum.first) / all : null;
    return [one.name, all.toLocaleString("en"), written(mean, one.unit), ...QUANTILES.map((share) => writtenQuantile(one, quantile(one.buckets, counts, share))),
      highest(one.buckets, counts, one.unit)];
  });
}

/**
 * A lane for each histogram: its quantiles over time, on the heat map of its values.
 * @param {SummedColumn[]} columns
 * @param {number} window over which the values count
 * @returns {LaneKind[]}
 */
export function histogramLanes(columns, window) {
  return histogramsOf(columns).filter((one) => one.buckets.some(({ column }) => !column.idle)).map((one) => {
    const names = one.buckets.map(({ column }) => column.name);
    return { title: one.name, of: "values, darker where there are more", height: 92, heat: new Heat(one.buckets), parts: QUANTILES.map((share, k) => ({
      name: percent(share), color: COLORS[k], columns: names.filter((_, i) => !one.buckets[i].column.idle), write: (value) => writtenQuantile(one, value),
      value: (points, i) => quantile(one.buckets, names.map((name) => points.rate(name, i, window) ?? 0), share),
      over: (points, from, to) => quantile(one.buckets, names.map((name) => (points.value(name, to) ?? 0) - (points.value(name, from) ?? 0)), share) })) };
  });
}

/**
 * Whether a histogram's quantiles say what this column holds.
 * @param {SummedColumn[]} columns all
 */
export function inHistogram(columns) {
  const names = new Set(histogramsOf(columns).flatMap((one) => [...one.buckets.map(({ column }) => column.name), one.sum?.name, one.count?.name]));
  /** @param {SummedColumn} column */
  return (column) => names.has(column.name);
}
