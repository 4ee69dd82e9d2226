// The heat map of a histogram: how many values fell into each bucket, over time. It lies behind the lines of its quantiles.

/** @import { Points } from "./points.js" */
/** @import { Bucket } from "./histograms.js" */
/** @typedef {{ row: number, from: number, to: number, rate: number }} Cell values per second in one bucket, between two rows */

const COLOR = "#2a9db0";
const FAINTEST = 0.12;
const STRONGEST = 0.85;

/** The buckets from the lowest to the highest one that ever got a value, as rows of equal height. */
export class Heat {
  /** @param {Bucket[]} buckets by value */
  constructor(buckets) {
    const used = buckets.map(({ column }) => !column.idle);
    this.buckets = buckets.slice(used.indexOf(true), used.lastIndexOf(true) + 1);
  }

  get rows() {
    return this.buckets.length;
  }

  /**
   * Where a value stands: its bucket counted from below, and its place in it. In a bucket without an end, its lower edge.
   * @param {number | null} value
   */
  place(value) {
    if (value === null) return null;
    const found = this.buckets.findIndex(({ high }) => value <= high);
    const row = found === -1 ? this.rows - 1 : found;
    const { low, high } = this.buckets[row];
    return row + (high === Infinity ? 0 : Math.min(Math.max((value - low) / (high - low), 0), 1));
  }

  /**
   * The cells with values.
   * @param {Points} points
   * @returns {Cell[]}
   */
  cells(points) {
    const { times, broken } = points;
    return this.buckets.flatMap(({ column }, row) => times.flatMap((to, i) => {
      const rate = broken[i] ? 0 : points.rate(column.name, i) ?? 0;
      return rate > 0 ? [{ row, from: times[i - 1], to, rate }] : [];
    }));
  }

  /**
   * The darkness of a cell goes with the logarithm of its rate, so that rare values are seen beside many.
   * @param {uPlot} plot whose y axis counts rows
   * @param {Points | null} points
   */
  draw(plot, points) {
    const { ctx, bbox } = plot;
    const cells = points === null ? [] : this.cells(points);
    const most = cells.reduce((rate, cell) => Math.max(rate, cell.rate), 0);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = COLOR;
    for (const { row, from, to, rate } of cells) {
      // Whole pixels: two cells that share one would make it darker.
      const left = Math.round(plot.valToPos(from, "x", true));
      const top = Math.round(plot.valToPos(row + 1, "y", true));
      ctx.globalAlpha = FAINTEST + (STRONGEST - FAINTEST) * (Math.log1p(rate) / Math.log1p(most));
      ctx.fillRect(left, top, Math.max(Math.round(plot.valToPos(to, "x", true)) - left, 1), Math.round(plot.valToPos(row, "y", true)) - top);
    }
    ctx.restore();
  }
}
