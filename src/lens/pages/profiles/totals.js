// The time of a service over time, as a chart on which a range is chosen.
import { Board } from "../board.js";
import { byId } from "../dom.js";
import { MINUTE_MS } from "./place.js";
import { gapsOf, linesOf } from "./steps.js";

/** @import { Column, DrawnLines, Gap, KeptProfiles, ProfileTotals, Source } from "../types.d.ts" */
/** @import { Place } from "./place.js" */

const WRITTEN_MS = 3 * MINUTE_MS; // so long after its beginning, a minute is written
const QUIET_MS = 300; // so long after the last turn of the wheel, the range is taken
const HOUR_MS = 60 * MINUTE_MS;
const STEPS = [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE_MS).concat([1, 2, 3, 6, 12, 24, 48, 168].map((n) => n * HOUR_MS));

const UNITS = { ns: "nanoseconds", bytes: "bytes", count: "" }; // as the charts name them

/** @param {number} ms */
const clock = (ms) => new Date(ms).toLocaleTimeString("sv").slice(0, 5);
/** @param {number} ms */
const day = (ms) => new Date(ms).toLocaleDateString("sv");

export class Totals {
  /**
   * @param {HTMLElement} box
   * @param {(from: number, to: number) => void} choose a range, in minutes since 1970
   */
  constructor(box, choose) {
    this.choose = choose;
    this.title = "";
    /** @type {Column} */
    this.column = { name: "each second", metric: "", kind: "counter", unit: UNITS.ns, help: "" };
    this.note = ""; // how long a step is
    /** @type {DrawnLines} */
    this.lines = { times: [], values: [[]] };
    /** @type {Gap[]} */
    this.gaps = [];
    this.bounds = [0, HOUR_MS];
    this.kept = [0, HOUR_MS];
    /** @type {Place | null} that is in the address */
    this.place = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.board = new Board(box, this.source());
    addEventListener("resize", () => this.board.resize());
    new MutationObserver(() => this.board.remake()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  /** @returns {Source} */
  source() {
    return {
      columns: [this.column],
      groups: () => [{ title: this.title, indices: [0], note: this.note }],
      labelWidth: 64, steps: STEPS, fromZero: true,
      lines: () => this.lines,
      gaps: () => this.gaps,
      bounds: () => /** @type {[number, number]} */ (this.bounds),
      home: () => /** @type {[number, number]} */ (this.kept),
      instants: (ticks, step) => ticks.map((ms) => (step >= 24 * HOUR_MS ? day(ms) : clock(ms))),
      name: () => "kymod",
      say: (cursor) => this.say(cursor),
      // Both are of other charts of this page.
      keys: { r: () => {}, t: () => byId("theme").click() },
    };
  }

  // Takes the range that is shown, once it stands still.
  /** @param {number} [cursor] */
  say(cursor) {
    byId("profiles-at").textContent = cursor === undefined ? "" : `${day(cursor)} ${clock(cursor)}`;
    if (this.place === null) return;
    const from = Math.floor(this.board.view.from / MINUTE_MS);
    const to = Math.max(Math.ceil(this.board.view.to / MINUTE_MS), from + 1);
    clearTimeout(this.timer);
    if (from === this.place.from && to === this.place.to) return;
    this.timer = setTimeout(() => this.choose(from, to), QUIET_MS);
  }

  /**
   * Shows the range of the address, before its data are there. What the user has chosen on the chart before, and is not in the
   * address yet, is dropped.
   * @param {Place} place
   */
  go(place) {
    this.place = place;
    clearTimeout(this.timer);
    this.bound(place);
    this.board.show(place.from * MINUTE_MS, place.to * MINUTE_MS);
  }

  /** @param {Place} place */
  bound({ from, to }) {
    this.bounds = [Math.min(this.kept[0], from * MINUTE_MS), Math.max(this.kept[1], to * MINUTE_MS)];
  }

  /**
   * Takes the data of a range. The chart stays where it is: the user may have moved it while the data were on their way.
   * @param {ProfileTotals} totals
   * @param {KeptProfiles} kept
   * @param {Place} place
   * @param {string} title
   */
  show(totals, kept, place, title) {
    this.lines = linesOf(totals);
    this.column.unit = UNITS[totals.unit];
    this.column.name = totals.level ? "at a time" : "each second";
    const some = kept.kept.minutes > 0;
    this.kept = some ? [kept.kept.oldest_unix_ns / 1e6, kept.kept.newest_unix_ns / 1e6 + MINUTE_MS] : [place.from * MINUTE_MS, place.to * MINUTE_MS];
    this.gaps = gapsOf(totals, some ? this.kept[0] : Infinity, Math.max(this.kept[1], Date.now() - WRITTEN_MS));
    this.bound(place);
    const minutes = totals.step_ns / 1e6 / MINUTE_MS;
    const note = `mean of each ${minutes === 1 ? "minute" : `${minutes} minutes`}`;
    if (title !== this.title || note !== this.note || this.board.charts.length === 0) {
      [this.title, this.note] = [title, note];
      this.board.make();
    }
    this.board.show(this.board.view.from, this.board.view.to);
  }

  /**
   * Moves or widens the range.
   * @param {"earlier" | "later" | "wider"} how
   */
  move(how) {
    if (how === "wider") this.board.zoom(2);
    else this.board.move(how === "earlier" ? -0.5 : 0.5);
  }
}
