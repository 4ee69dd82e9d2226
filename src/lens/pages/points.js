// The rows of a recording, thinned for lanes: the values at the first row of each piece of time. The rate of a counter
// between two of these rows is exact, because counters are sums. (Charts draw the extremes of each piece instead, lines.js. The
// shares in a lane must add up, so they are averages over the same time.)
import { ageColumnOf, ratePerSecond, shortestWindow } from "./lines.js";

/** @import { Recording } from "./recording.js" */
/** @import { Gap } from "./types.d.ts" */

// Rows at some times: `broken[i]` says that a gap stands before row i.
export class Points {
  /**
   * @param {string[]} names of columns
   * @param {number} [interval] of the rows, in nanoseconds
   */
  constructor(names, interval) {
    this.window = shortestWindow(interval);
    /** @type {number[]} */
    this.times = [];
    /** @type {boolean[]} */
    this.broken = [];
    this.columns = new Map(names.map((name) => [name, /** @type {number[]} */ ([])]));
  }

  /**
   * What the column held at row i. Null if there is no such column.
   * @param {string} name
   * @param {number} i
   */
  value(name, i) {
    return this.columns.get(name)?.[i] ?? null;
  }

  /**
   * How much a counter grew per second from the row before, by the times at which it was read. Null if this is unknown.
   * @param {string} name
   * @param {number} i
   * @param {number} [window] at least so long before, for a column that is not read for every row
   */
  rate(name, i, window = this.window) {
    const values = this.columns.get(name);
    if (values === undefined || i === 0) return null;
    const ages = this.columns.get(ageColumnOf(name));
    /** @type {(row: number) => number} */
    const read = (row) => this.times[row] - (ages?.[row] ?? 0);
    const ended = read(i);
    let from = i - 1;
    while (from > 0 && ended - read(from) < window) --from;
    let [began, before] = [read(from), values[from]];
    if (ended - began > window && from + 1 < i) {
      // The window begins between two rows.
      before += ((values[from + 1] - before) * (ended - window - began)) / (read(from + 1) - began);
      began = ended - window;
    }
    return ended > began ? Math.max(0, ratePerSecond(values[i] - before, ended - began)) : null;
  }

  /** @param {number} t the last row at or before this time, or the first one */
  at(t) {
    let low = 0;
    let high = this.times.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= t) low = middle;
      else high = middle;
    }
    return low;
  }
}

/**
 * The columns of these names in a range, and one row beyond each end of it.
 * @param {Recording} data
 * @param {string[]} names
 * @param {number} from
 * @param {number} to
 * @param {number} bucket the least time between two rows, in nanoseconds
 */
export function pointsOf(data, names, from, to, bucket) {
  const wanted = [...new Set([...names, ...names.map(ageColumnOf)])];
  const present = wanted.map((name) => [name, data.shown.findIndex((column) => column.name === name) + 1]).filter(([, index]) => index !== 0);
  const points = new Points(present.map(([name]) => String(name)), data.described.interval_ns);
  if (data.columns.length === 0) return points;
  const columns = present.map(([, index]) => data.columns[Number(index)]);
  const { time } = data;
  const first = Math.max(data.blockAt(from) - 1, 0);
  const last = Math.min(data.blockAt(to) + 1, time.blocks - 1);
  if (data.served && last - first <= 256 && !data.trouble) data.ask(data.served, first, last);
  const put = placer(points, data.gaps, from, to, bucket);
  for (let block = first; block <= last; ++block) {
    const times = time.values(block);
    const values = times === null ? null : columns.map((column) => column.values(block));
    if (times !== null && values !== null && values.every((each) => each !== null)) {
      for (let row = 0; row < times.length; ++row) put(times[row], (k) => /** @type {Float64Array} */ (values[k])[row]);
    } else {
      put(time.first[block], (k) => columns[k].first[block]);
      put(time.last[block], (k) => columns[k].last[block]);
    }
  }
  return points;
}

/**
 * Gives a function that takes each row in turn and keeps those that are needed.
 * @param {Points} points
 * @param {Gap[]} gaps by time
 * @param {number} from
 * @param {number} to
 * @param {number} bucket
 */
function placer(points, gaps, from, to, bucket) {
  const lists = [...points.columns.values()];
  let gap = 0;
  let before = -Infinity; // the row before
  let beyond = false;
  let broken = false;
  /** @type {(t: number, value: (k: number) => number) => void} */
  return (t, value) => {
    if (beyond) return;
    while (gap < gaps.length && gaps[gap].end_ns <= t) {
      const { start_ns, end_ns } = gaps[gap++];
      broken = broken || (end_ns > before && end_ns - start_ns >= bucket);
    }
    before = t;
    const { times } = points;
    const kept = times.length > 0 ? times[times.length - 1] : -Infinity;
    if (t < from) {
      // Only the last row before the range is needed.
      times.length = points.broken.length = 0;
      lists.forEach((list) => (list.length = 0));
    } else if (kept >= from && t - kept < bucket && t < to && !broken) return;
    times.push(t);
    points.broken.push(broken);
    lists.forEach((list, k) => list.push(value(k)));
    broken = false;
    beyond = t >= to;
  };
}
