// What a flame graph of two profiles says beside that of one: how the share of each frame changed. The verdicts are those
// of src/profiler/stacks/comparison.h; nothing is tested here. All names are set as text or drawn, never as markup.
import { css, element } from "./dom.js";
import { amount, count, sumText } from "./weights.js";

/** @import { FlameComparison, FlameKind, FlameStacks, ShareChanges } from "./types.d.ts" */
/** @import { FlameTree, Frame } from "./flame_tree.js" */

const WORDS = ["within noise", "share grew", "share shrank", "new", "vanished", "not tested"];
const NOT_TESTED = 5;
const STRONG = 0.05; // changes of the share from here on have the stronger colour
const MOST_ROWS = 100;

/** @param {number} share */
const percent = (share) => `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 2 : 1)} %`;
/** @param {number} difference */
export const points = (difference) => `${difference < 0 ? "−" : difference > 0 ? "+" : "±"}${Math.abs(difference * 100).toFixed(2)}`;
/** @param {number} verdict */
const directionOf = (verdict) => (verdict === 1 || verdict === 3 ? 1 : verdict === 2 || verdict === 4 ? -1 : 0);
/** @param {string} path */
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

export class FlameDiff {
  /**
   * @param {FlameStacks} stacks
   * @param {FlameComparison} comparison
   * @param {FlameTree} tree
   */
  constructor(stacks, comparison, tree) {
    const { before, verdicts } = stacks.tree;
    if (before === undefined || verdicts === undefined) throw new Error("the page has no values of A");
    this.comparison = comparison;
    this.tree = tree;
    this.verdicts = verdicts;
    this.unit = stacks.unit;
    this.selfBefore = before;
    this.totalBefore = Float64Array.from(before);
    this.sumBefore = 0;
    for (let i = before.length - 1; i >= 0; --i) {
      if (tree.parent[i] < 0) this.sumBefore += this.totalBefore[i];
      else this.totalBefore[tree.parent[i]] += this.totalBefore[i];
    }
  }

  /**
   * The value that the frame has in A.
   * @param {Frame} frame
   */
  before(frame) {
    if (frame.fn < 0) return this.sumBefore;
    if (!frame.inverted) return frame.nodes.reduce((sum, node) => sum + this.totalBefore[node], 0);
    /** @type {number[]} from the frame to the innermost function */
    const chain = [];
    for (let at = /** @type {Frame | null} */ (frame); at !== null && at.fn >= 0; at = at.caller) chain.push(at.fn);
    chain.reverse();
    let sum = 0;
    for (let i = 0; i < this.selfBefore.length; ++i) {
      if (this.selfBefore[i] > 0 && this.isCalledBy(i, chain)) sum += this.selfBefore[i];
    }
    return sum;
  }

  /** @type {(node: number, chain: number[]) => boolean} */
  isCalledBy(node, chain) {
    let at = node;
    for (const fn of chain) {
      if (at < 0 || this.tree.fn[at] !== fn) return false;
      at = this.tree.parent[at];
    }
    return true;
  }

  /** @param {Frame} frame */
  difference(frame) {
    return frame.value / this.tree.sum - this.before(frame) / this.sumBefore;
  }

  // Inverted, only the innermost functions are tested: their own shares.
  /** @param {Frame} frame */
  verdict(frame) {
    if (frame.fn < 0) return 0;
    if (!frame.inverted) return this.verdicts[frame.nodes[0]];
    const { verdicts } = this.comparison.self;
    return frame.caller?.fn === -1 && frame.fn < verdicts.length ? verdicts[frame.fn] : NOT_TESTED;
  }

  /**
   * 1: red, -1: green, 0: grey. Where nothing is tested, every difference has its colour.
   * @param {Frame} frame
   */
  direction(frame) {
    const tested = directionOf(this.verdict(frame));
    if (this.comparison.tested || frame.fn < 0 || (frame.inverted && frame.caller?.fn !== -1)) return tested;
    return Math.sign(this.difference(frame));
  }

  style() {
    return { grew: [css("--grew"), css("--grew-strong")], shrank: [css("--shrank"), css("--shrank-strong")] };
  }

  /** @type {(frame: Frame, style: { grew: string[], shrank: string[] }) => string | null} null: neither grew nor shrank */
  colourOf(frame, style) {
    const direction = this.direction(frame);
    if (direction === 0) return null;
    return (direction > 0 ? style.grew : style.shrank)[Math.abs(this.difference(frame)) >= STRONG ? 1 : 0];
  }

  /**
   * Stands before the name of a frame, so that the colour is not the only sign.
   * @param {Frame} frame
   */
  sign(frame) {
    return ["− ", "", "+ "][this.direction(frame) + 1];
  }

  /** @type {(value: number, sum: number, one: number) => string} */
  shareAndAmount(value, sum, scale) {
    return scale === 0 ? percent(value / sum) : `${percent(value / sum)} (${amount(value * scale, this.unit)})`;
  }

  /**
   * Both values of a frame, and what became of it.
   * @param {Frame} frame
   */
  described(frame) {
    const { a, b } = this.comparison;
    const both = `A ${this.shareAndAmount(this.before(frame), this.sumBefore, a.scale)}, B ${this.shareAndAmount(frame.value, this.tree.sum, b.scale)}`;
    return frame.fn < 0 ? both : `${both}: ${points(this.difference(frame))} points, ${WORDS[this.verdict(frame)]}`;
  }

  legend() {
    const rest = this.comparison.tested ? "within noise, or too few samples" : "the same";
    const entries = [["--grew-strong", "+ share grew"], ["--shrank-strong", "− share shrank"], ["--plain", rest]];
    return entries.map(([color, text]) => element("li", {}, element("span", { class: "swatch", style: `background:var(${color})` }), text));
  }

  /**
   * The functions, those beyond noise first, and the largest change first. Those that did not change are left out.
   * @param {boolean} byTotal
   */
  rows(byTotal) {
    /** @type {ShareChanges} */
    const { before, after, verdicts } = byTotal ? this.comparison.total : this.comparison.self;
    return before.map((value, fn) => ({ fn, before: value / this.sumBefore, after: after[fn] / this.tree.sum, verdict: verdicts[fn] }))
      .filter((row) => row.before !== row.after)
      .sort((x, y) => Math.abs(directionOf(y.verdict)) - Math.abs(directionOf(x.verdict)) || Math.abs(y.after - y.before) - Math.abs(x.after - x.before));
  }

  /**
   * @param {boolean} byTotal
   * @param {HTMLElement[]} sorters the headings that choose between own and total shares
   * @param {(name: string) => void} search
   */
  table(byTotal, sorters, search) {
    const all = this.rows(byTotal);
    const { a, b } = this.comparison;
    const known = a.scale !== 0 && b.scale !== 0;
    const rows = all.slice(0, MOST_ROWS).map(({ fn, before, after, verdict }) => {
      const { name, module } = this.tree.functions[fn];
      const direction = this.comparison.tested ? directionOf(verdict) : Math.sign(after - before);
      // A share may shrink while the value grows.
      const values = known ? ` · ${amount(before * this.sumBefore * a.scale, this.unit)} → ${amount(after * this.tree.sum * b.scale, this.unit)}` : "";
      const only = verdict === 3 || verdict === 4 ? "" : before === 0 ? " · only in B" : after === 0 ? " · only in A" : "";
      return element("tr", { class: direction > 0 ? "grew" : direction < 0 ? "shrank" : "quiet" },
        ...[percent(before), percent(after), points(after - before)].map((text) => element("td", {}, text)),
        element("td", {}, element("button", { type: "button", class: "plain", title: "Search for it", onclick: () => search(name) }, name),
          element("span", { class: "quiet" }, `${WORDS[verdict]}${only}${values} · ${baseName(module)}`)));
    });
    const titles = ["A", "B", "Points", "Function"].map((title) => element("th", {}, title));
    return [element("p", { class: "sorters" }, "Share: ", ...sorters),
      element("table", {}, element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...rows)),
      ...(all.length > rows.length ? [element("p", {}, `${(all.length - rows.length).toLocaleString("en")} more functions`)] : [])];
  }
}

/**
 * What was compared and how, as lines.
 * @param {FlameComparison} comparison
 * @param {FlameKind} kind
 */
export function compared({ a, b, tested, frame_tests, function_tests }, kind) {
  return [
    ...Object.entries({ A: a, B: b }).map(([side, of]) =>
      `${side}: ${of.path}: ${sumText(kind, of)}${of.lost > 0 ? `; ${count(of.lost)} lost` : ""}`),
    tested ? `Test: Fisher's, on numbers of samples; p corrected (Holm) for ${count(frame_tests)} frames of the graph, and for ${count(function_tests)} shares of functions in the table` :
      `Nothing was tested: ${kind.kind === "cpu" ? "a profile does not say how many samples it has" : `of ${kind.counted} only the sum is known`}. The colours show all differences.`,
    "Colours and words are of the share of all, which may shrink while the value grows: both stand beside it.",
    "A frame is as wide as its share of B. Frames that only A has are in the table.",
  ];
}
