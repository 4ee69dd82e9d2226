// Charts over one range of time, with the buttons and keys that move it. The page provides the lines.
import { Chart } from "./charts.js";
import { byId } from "./dom.js";

/** @import { Column, Drawn, Group, Source } from "./types.d.ts" */

/**
 * Groups columns into charts: the columns of one metric, and the other ones by unit and kind.
 * @param {Column[]} columns
 * @returns {Group[]}
 */
function groups(columns) {
  /** @type {Map<string, Group>} */
  const all = new Map();
  columns.forEach((column, i) => {
    const several = columns.filter((other) => other.metric && other.metric === column.metric).length > 1;
    const key = several ? column.metric : `${column.kind} ${column.unit}`;
    const title = several ? column.metric
      : `${column.kind === "counter" ? "Counters" : "Gauges"}${column.unit ? ", " + column.unit : ""}`;
    const group = all.get(key) ?? { title, indices: [] };
    group.indices.push(i);
    all.set(key, group);
  });
  return [...all.values()];
}

// Charts over one range of time, as `source` gives it.
export class Board {
  /**
   * @param {HTMLElement} box
   * @param {Source} source
   */
  constructor(box, source) {
    this.box = box;
    this.source = source;
    const [from, to] = this.home();
    this.view = { from, to, rates: true };
    /** @type {Chart[]} */
    this.charts = [];
    /** @type {Drawn[]} what else shows the range: a timeline */
    this.others = [];
    this.pending = false;
    /** @param {number} index a column */
    this.asRate = (index) => this.view.rates && source.columns[index].kind === "counter";
  }

  make() {
    this.box.replaceChildren();
    this.charts.forEach((chart) => chart.plot.destroy());
    this.charts = (this.source.groups ? this.source.groups() : groups(this.source.columns)).map((group) => new Chart(this, group));
    this.redraw();
  }

  // The charts are drawn only while they are on the page: they may be folded away.
  /** @returns {Drawn[]} */
  drawn() {
    return this.box.getClientRects().length > 0 ? [...this.others, ...this.charts] : this.others;
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.drawn().forEach((one) => one.draw());
      this.say();
    });
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  show(from, to) {
    const least = 10; // ns
    const [first, last] = this.source.bounds();
    const length = Math.min(Math.max(to - from, least), last - first);
    this.view.from = Math.min(Math.max(from, first), last - length);
    this.view.to = this.view.from + length;
    this.redraw();
  }

  /**
   * The same as show(), when the user has chosen the range.
   * @param {number} from
   * @param {number} to
   */
  go(from, to) {
    if (this.source.moved) this.source.moved();
    this.show(from, to);
  }

  /**
   * Moves the view by a share of its length.
   * @param {number} share
   */
  move(share) {
    const { from, to } = this.view;
    const by = share * (to - from);
    this.go(from + by, to + by);
  }

  home() {
    return this.source.home ? this.source.home() : this.source.bounds();
  }

  whole() {
    this.go(...this.home());
  }

  /**
   * @param {number} factor
   * @param {number} [center]
   */
  zoom(factor, center = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.go(center - (center - from) * factor, center + (to - center) * factor);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    /** @type {Record<string, () => void>} */
    const actions = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25),
      PageUp: () => this.move(-1), PageDown: () => this.move(1),
      0: () => this.whole(), Home: () => this.go(...this.source.bounds()),
      r: () => this.toggleRates(), t: () => this.toggleTheme(), ...this.source.keys,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  /** @param {number} [cursor] */
  say(cursor) {
    this.source.say(cursor);
  }

  toggleRates() {
    this.view.rates = !this.view.rates;
    byId("raw").setAttribute("aria-pressed", String(!this.view.rates));
    this.remake();
  }

  toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.remake();
  }

  remake() {
    [...this.others, ...this.charts].forEach((one) => one.remake());
    this.redraw();
  }

  resize() {
    this.drawn().forEach((one) => one.resize());
    this.redraw();
  }

  // Connects the buttons #raw, #reset and #theme, the keys (if no element has the focus), and
  // changes of the window's width.
  wire() {
    /** @type {(id: string, act: () => void) => void} */
    const on = (id, act) => byId(id).addEventListener("click", act);
    on("raw", () => this.toggleRates());
    on("reset", () => this.whole());
    on("theme", () => this.toggleTheme());
    addEventListener("keydown", (event) => {
      if (!(event.target instanceof Element && event.target.closest("input, select, textarea"))) this.onKey(event);
    });
    addEventListener("resize", () => this.resize());
  }
}
