// The points that this page has received, oldest first.

/** @import { Lines } from "../lines.js" */
/** @import { Samples } from "../types.d.ts" */

export const MOST_POINTS = 400_000; // points of a column in this page; older ones are requested again

// Points of the chosen columns. Each has its last value, and the lowest and highest value since the
// point before it.
export class Store {
  /** @param {number} columns */
  constructor(columns) {
    this.count = 0;
    this.room = 4096;
    this.times = new Float64Array(this.room);
    // For each column: last, lowest and highest values.
    this.parts = Array.from({ length: columns * 3 }, () => new Float64Array(this.room));
    /** @type {(number | null)[]} the first value of each column */
    this.begun = Array.from({ length: columns }, () => null);
    this.moved = this.begun.map(() => false); // whether the column ever had another value
  }

  /** @param {number} more */
  grow(more) {
    if (this.count + more > MOST_POINTS) {
      const drop = Math.min(this.count, Math.max(MOST_POINTS >> 2, more));
      for (const array of [this.times, ...this.parts]) array.copyWithin(0, drop, this.count);
      this.count -= drop;
    }
    while (this.room < this.count + more) this.room *= 2;
    if (this.room === this.times.length) return;
    /** @param {Float64Array} array */
    const larger = (array) => {
      const made = new Float64Array(this.room);
      made.set(array.subarray(0, this.count));
      return made;
    };
    this.times = larger(this.times);
    this.parts = this.parts.map(larger);
  }

  /** @param {Pick<Samples, "time" | "columns">} samples */
  append(samples) {
    const more = samples.time.length;
    this.grow(more);
    this.times.set(samples.time, this.count);
    samples.columns.forEach((column, k) => {
      for (const value of column.last) {
        if (value === null) continue;
        this.begun[k] = this.begun[k] ?? value;
        this.moved[k] = this.moved[k] || value !== this.begun[k];
      }
      [column.last, column.low, column.high].forEach((from, i) => {
        const to = this.parts[3 * k + i];
        for (let at = 0; at < more; ++at) to[this.count + at] = from[at] ?? NaN;
      });
    });
    this.count += more;
  }

  first() {
    return this.count === 0 ? Infinity : this.times[0];
  }

  /**
   * The first point at or after `t`.
   * @param {number} t
   */
  at(t) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Adds the points of a range to the lines of a chart.
   * @param {Lines} lines
   * @param {number[]} indices columns
   * @param {boolean[]} thinned of each column: draw its lowest and highest values, not its last ones
   * @param {number} from
   * @param {number} to
   */
  fill(lines, indices, thinned, from, to) {
    const low = indices.map((i, k) => this.parts[3 * i + (thinned[k] ? 1 : 0)]);
    const high = indices.map((i, k) => this.parts[3 * i + (thinned[k] ? 2 : 0)]);
    lines.putAll(this.times, low, high, Math.max(this.at(from) - 1, 0), Math.min(this.at(to) + 1, this.count));
  }
}
