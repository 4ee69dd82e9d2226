// A chart: its legend, its plot (uPlot) and the values under the cursor. Names are set as text, never
// as markup.
import uPlot from "uplot";
import { css, element, save } from "./dom.js";
import { axisLabels, written } from "./format.js";

/** @import { Board } from "./board.js" */
/** @import { Gap, Group } from "./types.d.ts" */

export const HEIGHT = 190;
export const COLORS = ["#0090ff", "#f76b15", "#30a46c", "#8e4ec6", "#e54666", "#00a2c7", "#ad7f58", "#86ac23"];
// The steps between ticks of an axis of bytes: powers of two, as for KiB, MiB and GiB.
const BINARY_STEPS = Array.from({ length: 64 }, (_, i) => 2 ** i);

const LABELS = "12px system-ui, sans-serif";
// Of the axis of values, in pixels: the tick and the space beside a label, and the least that charts share, so that
// their plots begin below each other.
const BESIDE_LABEL = 18;
const NARROW_AXIS = 84;
const WIDE_AXIS = 112;
const TIME_LABEL = 72; // the width of a label of the time axis, in pixels, like "1122.5 ms" or "12.3456 s"

/**
 * The space around the plot, in pixels: above, right (half of the last label of the time axis), below and left, where uPlot
 * leaves space if there is no axis of values. The others are fixed, so that the height of a plot does not depend on that
 * axis: uPlot lays out a chart at most three times, and the last time it must already know the labels that it draws.
 * @param {number} label the width of a label of the time axis
 * @returns {uPlot.Padding}
 */
const padding = (label) => [17, label / 2, 0, null];

/**
 * The width of the longest of these labels, in pixels.
 * @param {string[]} texts
 */
function labelWidth(texts) {
  const ink = /** @type {CanvasRenderingContext2D} */ (element("canvas", {}).getContext("2d"));
  ink.font = LABELS;
  return Math.max(0, ...texts.map((text) => ink.measureText(text).width));
}

export class Chart {
  /**
   * @param {Board} board
   * @param {Group} group
   */
  constructor(board, group) {
    this.board = board;
    this.group = group;
    this.indices = group.indices;
    this.columns = group.indices.map((i) => board.source.columns[i]);
    this.entries = group.entries || this.columns.map((column, k) => ({ name: column.name, color: COLORS[k % COLORS.length], lines: [k] }));
    /** @type {string[]} of each line */
    this.colors = [];
    this.entries.forEach((entry) => entry.lines.forEach((k) => (this.colors[k] = entry.color)));
    this.on = this.entries.map(() => true);
    this.box = element("div", { class: "chart", tabindex: "0", "aria-label": group.title });
    this.plotBox = element("div");
    this.legend = element("ul", { class: "legend" });
    const save = element("button", { type: "button", title: "Save this chart as a picture" }, "PNG");
    save.addEventListener("click", () => this.save(group.title));
    const note = group.note ? [element("span", { class: "change" }, group.note)] : [];
    this.box.append(element("div", { class: "head" }, element("h2", {}, group.title), ...note, save), this.legend, this.plotBox);
    this.box.addEventListener("keydown", (event) => board.onKey(event));
    board.box.append(this.box);
    this.values = this.makeLegend();
    this.single = false; // whether each point is a sample
    this.plot = this.makePlot();
  }

  // The entries of the legend, and the places of their values.
  makeLegend() {
    return this.entries.map((entry, n) => {
      const value = element("span", { class: "value" });
      const button = element("button", { type: "button", "aria-pressed": "true", title: "Hide or show; with Shift: this one alone" },
        element("span", { class: "swatch", style: `background:${entry.color}` }), entry.name, value);
      button.addEventListener("click", (event) => this.toggle(n, event.shiftKey));
      this.legend.append(element("li", {}, button));
      return value;
    });
  }

  /** @param {number} k */
  shows(k) {
    return this.entries.every((entry, n) => this.on[n] || !entry.lines.includes(k));
  }

  /**
   * @param {number} n
   * @param {boolean} alone
   */
  toggle(n, alone) {
    if (alone) {
      const only = this.on.every((on, i) => on === (i === n));
      this.on = this.on.map((_, i) => only || i === n);
    } else this.on[n] = !this.on[n];
    this.columns.forEach((_, k) => this.plot.setSeries(k + 1, { show: this.shows(k) }));
    this.on.forEach((on, i) => this.legend.children[i].firstElementChild?.setAttribute("aria-pressed", String(on)));
  }

  // Draws anew, with the colours of the theme and the units of the view.
  remake() {
    this.plot.destroy();
    this.plot = this.makePlot();
  }

  makePlot() {
    const { board } = this;
    const { view } = board;
    const unit = this.columns[0].unit;
    const rate = board.asRate(this.indices[0]);
    const space = board.source.labelWidth ?? TIME_LABEL;
    const axis = { font: LABELS, stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
    const made = new uPlot({
      width: this.width(), height: HEIGHT, padding: padding(space),
      cursor: { sync: { key: "kymo" }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
      legend: { show: false },
      scales: { x: { time: false, range: () => [view.from, view.to] }, ...(board.source.fromZero ? { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } } : {}) },
      axes: [
        { ...axis, ...(board.source.steps ? { incrs: board.source.steps } : {}), space, values: (_, ticks, __, ___, step) => board.source.instants(ticks, step) },
        { ...axis, ...(unit === "bytes" ? { incrs: BINARY_STEPS } : {}), size: (_, texts) => this.axisWidth(texts ?? []), values: (_, ticks, __, ___, step) => axisLabels(ticks, step, unit, rate) },
      ],
      series: [{}, ...this.indices.map((_, k) => ({
        stroke: this.colors[k], alpha: this.group.alpha || 1, width: 1.25, show: this.shows(k), spanGaps: false, points: { show: false } }))],
      hooks: {
        drawClear: [(plot) => (board.source.drawBehind ? board.source.drawBehind(plot) : drawBands(plot, board, true))],
        setCursor: [(plot) => this.read(plot, plot.cursor.idx)],
        setSelect: [(plot) => zoomToSelection(plot, board)],
      },
    }, [[], ...this.indices.map(() => [])], this.plotBox);
    onWheel(made.over, board, (event) => made.posToVal(event.offsetX, "x"));
    const time = /** @type {HTMLElement} */ (made.root.querySelector(".u-axis"));
    moveBy(time, board, () => made.over.clientWidth);
    return made;
  }

  width() {
    return Math.max(this.board.box.clientWidth, 280);
  }

  /**
   * Of the axis of values, with these labels.
   * @param {string[]} texts
   */
  axisWidth(texts) {
    return Math.max(this.width() < 500 ? NARROW_AXIS : WIDE_AXIS, Math.ceil(labelWidth(texts)) + BESIDE_LABEL);
  }

  resize() {
    this.plot.setSize({ width: this.width(), height: HEIGHT });
  }

  draw() {
    const { view } = this.board;
    const lines = this.board.source.lines(this.indices, view.from, view.to, Math.max(this.width() - 100, 100));
    this.plot.setData([lines.times, ...lines.values]);
    this.single = lines.single ?? false;
  }

  /**
   * The values under the cursor. If lines have their own times, the last values before it.
   * @param {uPlot} plot
   * @param {number | null | undefined} at
   */
  read(plot, at) {
    const none = at === null || at === undefined;
    this.entries.forEach((entry, n) => {
      const [k] = entry.lines;
      const value = this.values[n];
      if (none) value.textContent = "";
      else if (k === undefined) value.textContent = "–";
      else {
        let i = at;
        while (this.group.entries && i > 0 && (plot.data[k + 1][i] ?? null) === null) --i;
        value.textContent = written(plot.data[k + 1][i], this.columns[k].unit, this.board.asRate(this.indices[k]));
      }
    });
    if (!none) this.board.say(plot.data[0][at]);
  }

  /** @param {string} title */
  save(title) {
    const from = this.plot.ctx.canvas;
    const canvas = element("canvas", { width: from.width, height: from.height + 60 });
    const ink = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    ink.fillStyle = css("--paper");
    ink.fillRect(0, 0, canvas.width, canvas.height);
    ink.drawImage(from, 0, 60);
    ink.fillStyle = css("--ink");
    ink.font = "22px system-ui, sans-serif";
    ink.fillText(`${title} · ${this.board.source.name()}`, 12, 24);
    let x = 12;
    ink.font = "16px system-ui, sans-serif";
    this.entries.forEach((entry, n) => {
      if (!this.on[n]) return;
      ink.fillStyle = entry.color;
      ink.fillText(entry.name, x, 50);
      x += ink.measureText(entry.name).width + 24;
    });
    canvas.toBlob((blob) => {
      if (blob !== null) save(blob, `${title.replace(/[^\w-]+/g, "-")}.png`);
    });
  }
}

/**
 * Shows the range that the user has dragged over, unless it is a slip of the mouse.
 * @param {uPlot} plot
 * @param {Board} board
 */
export function zoomToSelection(plot, board) {
  if (plot.select.width < 3) return;
  const from = plot.posToVal(plot.select.left, "x");
  const to = plot.posToVal(plot.select.left + plot.select.width, "x");
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  board.go(from, to);
}

/**
 * The wheel over an element zooms and moves, and a double click shows the whole range.
 * @param {HTMLElement} over
 * @param {Board} board
 * @param {(event: WheelEvent) => number} timeAt the time under the mouse
 */
export function onWheel(over, board, timeAt) {
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) board.move(sideways / over.clientWidth);
    else board.zoom(Math.exp(event.deltaY / 400), timeAt(event));
  }, { passive: false });
  over.addEventListener("dblclick", () => board.whole());
}

/**
 * Moves the view when the user drags a time axis. Dragging to the right shows earlier times.
 * @param {HTMLElement} axis
 * @param {Board} board
 * @param {() => number} width of the plot, in pixels
 */
export function moveBy(axis, board, width) {
  axis.title = "Draw to move in time";
  axis.classList.add("time");
  axis.addEventListener("pointerdown", (event) => {
    axis.setPointerCapture(event.pointerId);
    let at = event.clientX;
    /** @param {PointerEvent} moved */
    const along = (moved) => {
      board.move((at - moved.clientX) / width());
      at = moved.clientX;
    };
    axis.addEventListener("pointermove", along);
    const end = () => axis.removeEventListener("pointermove", along);
    axis.addEventListener("pointerup", end, { once: true });
    axis.addEventListener("pointercancel", end, { once: true });
  });
}

/**
 * The share of gaps in the time of each pixel, so that many short gaps do not look like a long
 * one.
 * @param {Gap[]} gaps
 * @param {{ from: number, to: number }} view
 * @param {number} width
 */
export function gapShares(gaps, view, width) {
  const shares = new Float32Array(width);
  const pixels = width / (view.to - view.from);
  for (const gap of gaps) {
    const from = Math.max((gap.start_ns - view.from) * pixels, 0);
    const to = Math.min((gap.end_ns - view.from) * pixels, width);
    for (let x = Math.floor(from); x < to; ++x) shares[x] += Math.min(to, x + 1) - Math.max(from, x);
  }
  return shares;
}

/**
 * Draws phases as bands, and gaps in red.
 * @param {uPlot} plot
 * @param {Board} board
 * @param {boolean} named whether the bands have their names
 */
export function drawBands(plot, board, named) {
  const { ctx, bbox } = plot;
  const { view, source } = board;
  if (bbox.width <= 0) return; // it was hidden meanwhile
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  /** @param {number} t */
  const place = (t) => plot.valToPos(Math.min(Math.max(t, view.from), view.to), "x", true);
  (source.phases?.() ?? []).forEach((phase, i) => {
    if (phase.end_ns < view.from || phase.begin_ns > view.to) return;
    const left = place(phase.begin_ns);
    const right = place(phase.end_ns);
    ctx.globalAlpha = phase.color ? 0.09 : i % 2 === 0 ? 0.16 : 0.07;
    ctx.fillStyle = phase.color ?? css("--band");
    ctx.fillRect(left, bbox.top, Math.max(right - left, 1), bbox.height);
    ctx.globalAlpha = 1;
    if (named && right - left > ctx.measureText(phase.name).width + 6) {
      ctx.fillStyle = css("--quiet");
      ctx.fillText(phase.name, left + 3, bbox.top + 2);
    }
  });
  ctx.fillStyle = css("--gap");
  gapShares(source.gaps?.() ?? [], view, Math.ceil(bbox.width)).forEach((share, x) => {
    if (share === 0) return;
    ctx.globalAlpha = 0.1 + 0.15 * Math.min(share, 1); // at least 0.1, to show the shortest gap
    ctx.fillRect(Math.floor(bbox.left) + x, bbox.top, 1, bbox.height);
  });
  ctx.restore();
}
