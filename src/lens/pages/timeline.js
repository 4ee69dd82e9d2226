// A request on one screen: its phases, the target's state, and lanes of what moved, over one range of time.
import { drawTicks } from "./axis.js";
import { onWheel } from "./charts.js";
import { element } from "./dom.js";
import { duration } from "./format.js";
import { Lane, laneRow } from "./lane.js";
import { lanesOf, stateColumns, statesOf, statesOfPhases } from "./lanes.js";
import { colorOfPhase } from "./phases.js";
import { pointsOf } from "./points.js";

/** @import { Board } from "./board.js" */
/** @import { Stretch } from "./lanes.js" */
/** @import { Recording } from "./recording.js" */
/** @import { Phase } from "./types.d.ts" */

const LEAST_NAMED = 5; // pixels of each character of a name, about

// A lane of bands: phases, or states. It is made of elements, so that each band can be reached by keys.
class Bands {
  /**
   * @param {Timeline} timeline
   * @param {string} title
   * @param {string} what
   */
  constructor(timeline, title, what) {
    this.timeline = timeline;
    const { box, plot, values } = laneRow(title);
    this.box = box;
    this.plot = plot;
    this.values = values;
    this.what = what;
    this.title = title;
    /** @type {Stretch[]} */
    this.stretches = [];
    /** @type {(stretch: Stretch) => string} */
    this.told = () => "";
    /** @type {(stretch: Stretch) => void} */
    this.chosen = () => {};
    plot.classList.add("bands");
    const { board } = timeline;
    onWheel(plot, board, (event) => timeline.timeAt(event.clientX));
    plot.addEventListener("pointermove", (event) => board.say(timeline.timeAt(event.clientX)));
    plot.addEventListener("pointerleave", () => board.say());
  }

  draw() {
    const { board } = this.timeline;
    const { from, to } = board.view;
    const width = this.plot.clientWidth;
    const made = this.stretches.filter((one) => one.end_ns > from && one.begin_ns < to).map((one) => {
      const left = (Math.max(one.begin_ns, from) - from) / (to - from);
      const right = (Math.min(one.end_ns, to) - from) / (to - from);
      const named = (right - left) * width > one.name.length * LEAST_NAMED + 14;
      const button = element("button", { type: "button", class: "band", title: this.told(one), "aria-label": this.told(one),
        style: `left:${(100 * left).toFixed(4)}%;width:${(100 * (right - left)).toFixed(4)}%;--color:${one.color}` }, named ? one.name : "");
      button.addEventListener("click", () => {
        board.go(one.begin_ns, one.end_ns);
        this.chosen(one);
      });
      return button;
    });
    this.plot.replaceChildren(...made);
  }

  /** @param {number} [t] */
  read(t) {
    const found = t === undefined ? undefined : this.stretches.find((one) => one.begin_ns <= t && t < one.end_ns);
    this.values.textContent = t === undefined ? this.what : found ? found.name : "–";
  }
}

export class Timeline {
  /**
   * @param {HTMLElement} box
   * @param {Board} board
   * @param {Recording} data
   * @param {{ phases: Phase[], origin: number, exact: boolean }} request
   * @param {(phase: string) => void} chosen is told of the phase that was clicked
   */
  constructor(box, board, data, request, chosen) {
    this.chosen = chosen;
    this.box = box;
    this.board = board;
    this.data = data;
    this.request = request;
    const { described, shown } = data;
    const range = () => this.averaged();
    this.lanes = lanesOf(shown, described.interval_ns || 1e6).map((kind) => new Lane(board, kind, range));
    /** @type {Bands[]} */
    this.bands = [];
    this.single = true;
    this.makeBands();
    this.axis = laneRow("");
    this.axis.box.classList.add("axis");
    box.append(...this.bands.map((one) => one.box), ...this.lanes.map((lane) => lane.box), this.axis.box);
    box.addEventListener("keydown", (event) => board.onKey(event));
    this.names = [...new Set([...this.lanes.flatMap((lane) => lane.columns()), ...stateColumns(shown)])];
    this.constants = new Map(described.columns.filter((column) => column.idle).map((column) => [column.name, column.first]));
  }

  // Whether there is anything to draw.
  get empty() {
    return this.bands.length === 0 && this.lanes.length === 0;
  }

  makeBands() {
    const { phases } = this.request;
    if (phases.length > 0) {
      const whole = phases[phases.length - 1].end_ns - phases[0].begin_ns;
      const lane = new Bands(this, "Phase", `${duration(whole)} in all`);
      lane.stretches = phases.map((phase) => ({ ...phase, color: colorOfPhase(phase.name) }));
      lane.told = (one) => `${one.name}: ${duration(one.end_ns - one.begin_ns)}`;
      lane.chosen = (one) => this.chosen(one.name);
      this.bands.push(lane);
    }
    const frozen = statesOfPhases(phases);
    const states = stateColumns(this.data.shown);
    if (frozen.length === 0 && states.length === 0) return;
    const still = frozen.reduce((sum, one) => sum + one.end_ns - one.begin_ns, 0);
    const lane = new Bands(this, "Process", still > 0 ? `still for ${duration(still)}` : "");
    lane.stretches = frozen;
    lane.told = (one) => `${one.name}: ${duration(one.end_ns - one.begin_ns)}`;
    this.state = lane;
    this.bands.push(lane);
  }

  // The request, as far as it is shown.
  /** @returns {[number, number]} */
  averaged() {
    const { view } = this.board;
    const { phases } = this.request;
    if (phases.length === 0) return [view.from, view.to];
    const from = Math.max(phases[0].begin_ns, view.from);
    const to = Math.min(phases[phases.length - 1].end_ns, view.to);
    return from < to ? [from, to] : [view.from, view.to];
  }

  /** @param {number} x of the window */
  timeAt(x) {
    const { left, width } = this.axis.plot.getBoundingClientRect();
    const { from, to } = this.board.view;
    return from + ((x - left) / width) * (to - from);
  }

  make() {
    this.lanes.forEach((lane) => lane.make());
  }

  remake() {
    this.make();
  }

  resize() {
    this.lanes.forEach((lane) => lane.resize());
  }

  draw() {
    const { from, to } = this.board.view;
    const pixels = Math.max(this.axis.plot.clientWidth, 100);
    const points = pointsOf(this.data, this.names, from, to, (to - from) / pixels);
    if (this.state && stateColumns(this.data.shown).length > 0) this.state.stretches = statesOf(points, this.constants, this.held());
    this.bands.forEach((lane) => lane.draw());
    this.lanes.forEach((lane) => lane.draw(points));
    drawTicks(this.axis.plot, from, to, this.request.origin);
    this.read();
  }

  // While CRIU holds the target, the kernel may say that its threads run: they run CRIU's code then.
  /** @returns {[number, number]} */
  held() {
    const frozen = this.request.phases.filter((phase) => phase.frozen);
    if (frozen.length > 0) return [frozen[0].begin_ns, frozen[frozen.length - 1].end_ns];
    const points = pointsOf(this.data, ["target_traced"], this.data.described.first_ns, this.data.described.last_ns, 0);
    const traced = points.times.filter((_, i) => (points.value("target_traced", i) ?? 0) > 0);
    return traced.length > 0 ? [traced[0], traced[traced.length - 1]] : [NaN, NaN];
  }

  /** @param {number} [t] where the cursor is */
  read(t) {
    this.bands.forEach((lane) => lane.read(t));
    this.axis.values.textContent = t === undefined ? "of what is shown" : `at ${duration(t - this.request.origin)}`;
  }
}
