// Thinning: the lowest and highest value of each pixel of a chart.

/** @import { Gap } from "./types.d.ts" */

/** @type {(growth: number, passedNs: number) => number} how much a counter grew per second */
export const ratePerSecond = (growth, passedNs) => (growth * 1e9) / passedNs;

/**
 * The shortest window over which a rate is shown. Rows that are nearer to each other than half their interval were taken late.
 * @param {number | undefined} interval of the rows, in nanoseconds
 */
export const shortestWindow = (interval) => (interval ?? 0) / 2;

/** @type {(name: string) => string} the column that says how long before their rows a column's values were read (src/base/reading_age.h) */
export const ageColumnOf = (name) => `profiler_${name.split("_", 1)[0]}_age_ns`;

// The lines of a chart on one time axis. Each piece of the axis has its lowest and highest value,
// so that no spike is lost, or single samples if there is room. The lines break at `gaps`, which
// are sorted by time.
export class Lines {
  /**
   * @param {number} count lines
   * @param {number} bucket the time of a piece, in nanoseconds
   * @param {Gap[]} gaps
   */
  constructor(count, bucket, gaps) {
    this.count = count;
    this.bucket = bucket;
    this.gaps = gaps;
    /** @type {number[]} */
    this.times = [];
    this.values = Array.from({ length: count }, () => /** @type {(number | null)[]} */ ([]));
    this.end = -Infinity;
    this.rows = 0;
    this.low = new Float64Array(count).fill(Infinity);
    this.high = new Float64Array(count).fill(-Infinity);
    this.gap = 0;
    this.lastTime = -Infinity;
    this.first = NaN; // the first and last time of the piece
    this.last = NaN;
    this.single = false; // whether each point is a sample
  }

  /**
   * @param {number} t
   * @param {number[]} lows
   * @param {number[]} highs
   */
  put(t, lows, highs) {
    if (t >= this.end) {
      this.close();
      this.end = t + this.bucket;
      this.first = t;
    }
    this.last = t;
    ++this.rows;
    for (let k = 0; k < this.count; ++k) {
      if (lows[k] < this.low[k]) this.low[k] = lows[k];
      if (highs[k] > this.high[k]) this.high[k] = highs[k];
    }
  }

  /**
   * Adds the points from index `at` up to `end`, with an array for each column in `lows` and
   * `highs`. Each point costs only comparisons, so a frame can redraw a hundred thousand points.
   * @param {Float64Array} times
   * @param {Float64Array[]} lows
   * @param {Float64Array[]} highs
   * @param {number} at
   * @param {number} end
   */
  putAll(times, lows, highs, at, end) {
    while (at < end) {
      this.breakAtGap(times[at]);
      if (times[at] >= this.end) {
        this.close();
        this.end = times[at] + this.bucket;
        this.first = times[at];
      }
      const stop = this.gap < this.gaps.length ? Math.min(this.end, this.gaps[this.gap].end_ns) : this.end;
      let to = at + 1;
      while (to < end && times[to] < stop) ++to;
      for (let k = 0; k < this.count; ++k) {
        let least = this.low[k];
        let most = this.high[k];
        for (let i = at; i < to; ++i) {
          if (lows[k][i] < least) least = lows[k][i];
          if (highs[k][i] > most) most = highs[k][i];
        }
        this.low[k] = least;
        this.high[k] = most;
      }
      this.rows += to - at;
      this.last = this.lastTime = times[to - 1];
      at = to;
    }
  }

  close() {
    if (this.rows === 0) return;
    let two = this.rows > 1;
    for (let k = 0; k < this.count; ++k) two = two || this.high[k] > this.low[k];
    this.times.push(this.first);
    if (two) this.times.push(this.last);
    for (let k = 0; k < this.count; ++k) {
      // There may be no value: the first row of a counter has no rate.
      const empty = this.low[k] === Infinity;
      this.values[k].push(empty ? null : this.low[k]);
      if (two) this.values[k].push(empty ? null : this.high[k]);
    }
    this.rows = 0;
    this.low.fill(Infinity);
    this.high.fill(-Infinity);
  }

  /** @param {number} t */
  breakAtGap(t) {
    let broken = false;
    while (this.gap < this.gaps.length && this.gaps[this.gap].end_ns <= t) {
      broken = broken || this.gaps[this.gap].end_ns > this.lastTime;
      ++this.gap;
    }
    // A gap that is shorter than a pixel does not break the line.
    if (broken && this.lastTime > -Infinity && t - this.lastTime >= this.bucket) {
      this.close();
      this.end = -Infinity;
      this.times.push(this.lastTime + (t - this.lastTime) / 2);
      this.values.forEach((values) => values.push(null));
    }
    this.lastTime = t;
  }
}
