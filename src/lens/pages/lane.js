// A lane of a timeline: its name, its plot (uPlot) and its values. Names are set as text, never as markup.
import uPlot from "uplot";
import { drawBands, onWheel, zoomToSelection } from "./charts.js";
import { element } from "./dom.js";

/** @import { Board } from "./board.js" */
/** @import { LaneKind, Part } from "./lanes.js" */
/** @import { Points } from "./points.js" */

/**
 * The row of a lane: its name, a place for its plot, and a place for its values.
 * @param {string} title
 * @param {string} [of]
 */
export function laneRow(title, of = "") {
  const plot = element("div", { class: "plot" });
  const values = element("div", { class: "values" });
  const box = element("div", { class: "lane", "data-lane": title },
    element("div", { class: "name" }, element("b", {}, title), ...(of ? [element("span", { class: "quiet" }, of)] : [])), plot, values);
  return { box, plot, values };
}

export class Lane {
  /**
   * @param {Board} board
   * @param {LaneKind} kind
   * @param {() => [number, number]} averaged the range of the values that stand there without a cursor
   */
  constructor(board, kind, averaged) {
    this.board = board;
    this.kind = kind;
    this.averaged = averaged;
    this.single = false;
    const { box, plot, values } = laneRow(kind.title, kind.of);
    this.box = box;
    this.plotBox = plot;
    this.valuesBox = values;
    this.values = kind.parts.map((part) => {
      const value = element("b");
      values.append(element("span", { class: "value", "data-part": part.name }, value, ` ${part.name} `, element("span", { class: "swatch", style: `background:${part.color}` })));
      return value;
    });
    /** @type {Points | null} */
    this.points = null;
    /** @type {(number | null)[][]} of each part */
    this.data = [];
    /** @type {uPlot | null} */
    this.plot = null;
  }

  columns() {
    return [...new Set(this.kind.parts.flatMap((part) => part.columns))];
  }

  make() {
    if (this.plot) this.plot.destroy();
    const { board, kind } = this;
    const { view } = board;
    const paths = /** @type {NonNullable<typeof uPlot.paths.stepped>} */ (uPlot.paths.stepped)({ align: -1 });
    /** @type {(least: number) => uPlot.Range.Function} */
    const upTo = (least) => (_, __, most) => [0, Math.max(least, (most || 0) * 1.06) || 1];
    const { heat } = kind;
    // The areas of a stack are drawn from the highest sum to the lowest one.
    const order = kind.stacked ? kind.parts.slice().reverse() : kind.parts;
    const made = (this.plot = new uPlot({
      width: this.plotBox.clientWidth, height: kind.height,
      padding: [3, 0, 1, 0],
      cursor: { sync: { key: "kymo" }, y: false, drag: { x: true, y: false, setScale: false }, points: { show: false } },
      legend: { show: false },
      scales: { x: { time: false, range: () => [view.from, view.to] }, y: { range: heat ? () => [0, heat.rows] : upTo(kind.least ?? 0) }, z: { range: upTo(0) } },
      axes: [{ show: false }, { show: false }],
      series: [{}, ...order.map((part) => ({ scale: part.scale ?? "y", stroke: part.color, width: kind.stacked ? 0.5 : 1.25, paths, spanGaps: false,
        fill: part.area ? part.color + (kind.stacked ? "d8" : "70") : undefined, points: { show: false } }))],
      hooks: {
        drawClear: [(plot) => drawBands(plot, board, false), (plot) => heat?.draw(plot, this.points)],
        setCursor: [(plot) => this.read(plot)],
        setSelect: [(plot) => zoomToSelection(plot, board)],
      },
    }, [[], ...order.map(() => [])], this.plotBox));
    onWheel(made.over, board, (event) => made.posToVal(event.offsetX, "x"));
  }

  remake() {
    this.make();
  }

  resize() {
    this.plot?.setSize({ width: this.plotBox.clientWidth, height: this.kind.height });
  }

  destroy() {
    this.plot?.destroy();
  }

  /** @param {Points} points the rows to draw */
  draw(points) {
    const { kind } = this;
    this.points = points;
    this.data = kind.parts.map((part) => points.times.map((_, i) => part.value(points, i)));
    /** @type {number[]} */
    const times = [];
    points.times.forEach((t, i) => {
      if (points.broken[i]) times.push(points.times[i - 1] + 1);
      times.push(t);
    });
    /** @param {(number | null)[]} values */
    const withBreaks = (values) => values.flatMap((value, i) => (points.broken[i] ? [null, value] : [value]));
    let lines = this.data;
    if (kind.heat) {
      const { heat } = kind;
      lines = this.data.map((values) => values.map((value) => heat.place(value)));
    }
    if (kind.stacked) {
      const sum = points.times.map(() => 0);
      lines = this.data.map((values) => values.map((value, i) => (value === null ? null : (sum[i] += value)))).reverse();
    }
    this.plot?.setData([times, ...lines.map(withBreaks)]);
    this.showAverages();
  }

  /** @param {uPlot} plot */
  read(plot) {
    const { points } = this;
    if (points === null || plot.cursor.left === undefined || plot.cursor.left < 0) {
      this.showAverages();
      if (plot.cursor.left !== undefined) this.board.say();
      return;
    }
    const t = plot.posToVal(plot.cursor.left, "x");
    // A rate stands at the end of its piece of time.
    const at = Math.min(points.at(t) + 1, points.times.length - 1);
    this.kind.parts.forEach((part, k) => this.write(k, part, part.columns.some((name) => /_(ns|bytes|us)$/.test(name)) ? this.data[k][at] : this.data[k][points.at(t)]));
    this.board.say(t);
  }

  /**
   * @param {number} k
   * @param {Part} part
   * @param {number | null | undefined} value
   */
  write(k, part, value) {
    this.values[k].textContent = value === null || value === undefined ? "–" : part.write(value);
  }

  // What stands there of the whole request, or of what is shown of it.
  showAverages() {
    const { points } = this;
    if (points === null) return;
    const [from, to] = this.averaged();
    this.kind.parts.forEach((part, k) => {
      if (part.over) return this.write(k, part, points.times.length > 0 ? part.over(points, points.at(from), points.at(to)) : null);
      let sum = 0;
      let time = 0;
      for (let i = 1; i < points.times.length; ++i) {
        const value = this.data[k][i];
        const lasts = Math.min(points.times[i], to) - Math.max(points.times[i - 1], from);
        if (value === null || lasts <= 0) continue;
        sum += value * lasts;
        time += lasts;
      }
      this.write(k, part, time > 0 ? sum / time : null);
    });
  }
}
