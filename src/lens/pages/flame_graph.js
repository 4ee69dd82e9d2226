// A flame graph with its search, its colours and its table of functions. All names of a profile are set
// as text or drawn, never as markup.
import { css, element } from "./dom.js";
import { amount } from "./weights.js";
import { FlameDiff } from "./flame_diff.js";
import { FlameTree, packageOf, placed, sandwiched } from "./flame_tree.js";

/** @import { FlameComparison, FlameStacks } from "./types.d.ts" */
/** @import { Box, Frame } from "./flame_tree.js" */

/**
 * The elements that it fills.
 * @typedef {{ canvas: HTMLCanvasElement, search: HTMLInputElement, matched: HTMLElement, colour: HTMLInputElement | HTMLSelectElement, legend: HTMLElement,
 *   status: HTMLElement, hottest: HTMLElement, inverted: HTMLElement, changed?: () => void }} Parts `changed` is called when
 * the user has changed what is shown
 */

/** @typedef {{ frame: string, plain: string, match: string, ink: string, changes: ReturnType<FlameDiff["style"]> | null }} Style */

export const ROW = 18;
const MOST_PIXELS = 16000; // of a canvas, in each direction
const MOST_FUNCTIONS = 60; // in the table
const MOST_GROUPS = 10; // in the legend
const TEXT_FROM = 24; // narrower frames have no text

/** @param {string} path */
export const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

export class FlameGraph {
  /**
   * @param {Parts} parts
   * @param {FlameStacks} stacks
   * @param {boolean} byTotal order of the table
   * @param {FlameComparison} [comparison] if the stacks are those of two profiles
   */
  constructor(parts, stacks, byTotal, comparison) {
    this.parts = parts;
    this.byTotal = byTotal;
    /** @type {Map<string, number>} the hue of each module or package */
    this.hues = new Map();
    /** @type {string[]} for each function, its module or package */
    this.groups = [];
    /** @type {Box[][]} */
    this.rows = [];
    /** @type {number | null} a function that is between its callers and what it calls */
    this.around = null;
    this.middle = 0; // its row
    this.width = 0; // for which the rows are placed
    /** @type {Box | null} under the mouse, or chosen by keys */
    this.chosen = null;
    /** @type {Uint8Array | null} for each function, whether the search finds it */
    this.found = null;
    this.scale = stacks.scale;
    this.unit = stacks.unit;
    this.tree = new FlameTree(stacks);
    this.hot = this.tree.hottest();
    this.diff = comparison === undefined ? null : new FlameDiff(stacks, comparison, this.tree);
    this.zoom = this.tree.root(false);
    this.wire();
    this.begin();
  }

  /**
   * Shows other stacks in the same place.
   * @param {FlameStacks} stacks
   * @param {FlameComparison} [comparison]
   */
  show(stacks, comparison) {
    this.scale = stacks.scale;
    this.unit = stacks.unit;
    this.tree = new FlameTree(stacks);
    this.hot = this.tree.hottest();
    this.diff = comparison === undefined ? null : new FlameDiff(stacks, comparison, this.tree);
    this.zoom = this.tree.root(this.zoom.inverted);
    this.chosen = null;
    this.begin();
  }

  begin() {
    this.chooseColours();
    this.showHottest();
    this.around = null;
    this.lay();
    this.find();
    this.say();
  }

  /** @param {number} value */
  amount(value) {
    return amount(value * this.scale, this.unit);
  }

  /** @param {number} value */
  share(value) {
    const { sum } = this.tree;
    return (sum > 0 ? ((value / sum) * 100).toFixed(value < sum / 10 ? 2 : 1) : "0") + " %";
  }

  /** @param {Frame} frame */
  nameOf(frame) {
    return frame.fn < 0 ? "all" : this.tree.functions[frame.fn].name;
  }

  // --- colours --------------------------------------------------------------------------------

  // The groups with most time come first, so that their hues are furthest apart.
  chooseColours() {
    const byPackage = this.parts.colour.value === "package";
    this.groups = this.tree.functions.map((one) => (one.module === "" ? "" : byPackage ? packageOf(one) : one.module));
    /** @type {Map<string, number>} */
    const sums = new Map();
    this.groups.forEach((group, fn) => group !== "" && sums.set(group, (sums.get(group) ?? 0) + this.hot.self[fn]));
    const sorted = [...sums].sort((a, b) => b[1] - a[1]);
    this.hues.clear();
    sorted.forEach(([group], rank) => this.hues.set(group, Math.round(210 + rank * 137.5) % 360));
    if (this.showsChange()) {
      this.parts.legend.replaceChildren(...(this.diff?.legend() ?? []));
      return;
    }
    const shown = sorted.filter(([, sum]) => sum > 0).slice(0, MOST_GROUPS);
    this.parts.legend.replaceChildren(...shown.map(([group, sum]) =>
      element("li", { title: group }, element("span", { class: "swatch", style: `background:hsl(${this.hues.get(group)} var(--frame))` }), baseName(group),
        element("span", { class: "value" }, this.share(sum)))));
  }

  showsChange() {
    return this.diff !== null && this.parts.colour.value === "change";
  }

  /** @type {(box: Box, style: Style) => string} */
  colourOf(box, style) {
    if (this.found !== null && box.frame.fn >= 0 && this.found[box.frame.fn]) return style.match;
    if (style.changes !== null) return (this.found === null && this.diff?.colourOf(box.frame, style.changes)) || style.plain;
    const hue = box.frame.fn < 0 ? undefined : this.hues.get(this.groups[box.frame.fn]);
    return hue === undefined || this.found !== null ? style.plain : `hsl(${hue} ${style.frame})`;
  }

  /** @returns {Style} */
  style() {
    return { frame: css("--frame"), plain: css("--plain"), match: css("--match"), ink: css("--frame-ink"), changes: this.showsChange() && this.diff !== null ? this.diff.style() : null };
  }

  /** @param {Box} box */
  labelOf(box) {
    return box.merged > 0 ? `${box.merged} more` : (this.diff?.sign(box.frame) ?? "") + this.nameOf(box.frame);
  }

  // --- the graph ------------------------------------------------------------------------------

  // Its place has another width.
  place() {
    if (this.parts.canvas.clientWidth === this.width) return; // only its height has changed: the choice stays
    this.chosen = null;
    this.lay();
    this.draw();
  }

  lay() {
    const width = this.parts.canvas.clientWidth;
    this.width = width;
    const laid = this.around === null ? { rows: placed(this.tree, this.zoom, width), middle: 0 } : sandwiched(this.tree, this.around, width);
    this.rows = laid.rows;
    this.middle = laid.middle;
  }

  /** @param {Box} box */
  rowOf(box) {
    let depth = 0;
    for (let caller = box.caller; caller !== null; caller = caller.caller) ++depth;
    return this.around !== null && box.frame.inverted ? this.middle - depth : this.middle + depth;
  }

  draw() {
    const { canvas } = this.parts;
    const width = canvas.clientWidth;
    const height = this.rows.length * ROW;
    const scale = Math.min(devicePixelRatio, MOST_PIXELS / Math.max(width, height, 1));
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(scale, scale);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const style = this.style();
    const depth = this.rows.findIndex(([box]) => box.frame === this.zoom);
    this.rows.forEach((row, at) => {
      context.globalAlpha = at < depth ? 0.6 : 1; // callers of the frame that fills the graph
      for (const box of row) this.drawBox(context, box, at, style);
    });
    context.globalAlpha = 1;
    if (this.chosen !== null) outline(context, this.chosen, this.rowOf(this.chosen), style.ink);
  }

  /** @type {(context: CanvasRenderingContext2D, box: Box, row: number, style: Style) => void} */
  drawBox(context, box, row, style) {
    context.fillStyle = this.colourOf(box, style);
    context.fillRect(box.x, row * ROW, Math.max(box.width - (box.width > 3 ? 1 : 0), 0.5), ROW - 1);
    if (box.width < TEXT_FROM) return;
    context.fillStyle = style.ink;
    context.fillText(shortened(context, this.labelOf(box), box.width - 6), box.x + 3, row * ROW + ROW / 2);
  }

  /** @param {MouseEvent} event */
  under(event) {
    return boxAt(this.rows[Math.floor(event.offsetY / ROW)], event.offsetX);
  }

  /** @param {Box | null} box */
  choose(box) {
    if (box === this.chosen) return;
    this.chosen = box;
    this.draw();
    this.say();
  }

  /** @param {Frame} frame */
  zoomTo(frame) {
    this.zoom = frame;
    this.around = null;
    this.lay();
    this.chosen = this.rows.flat().find((box) => box.frame === frame) ?? null;
    this.draw();
    this.say();
    this.parts.changed?.();
  }

  /**
   * Shows a function between its callers and what it calls.
   * @param {number} fn
   */
  showAround(fn) {
    if (this.diff !== null || fn < 0) return; // how callers changed is not tested
    this.zoom = this.tree.root(false);
    this.parts.inverted.setAttribute("aria-pressed", "false");
    this.around = fn;
    this.lay();
    this.chosen = this.rows[this.middle][0];
    this.draw();
    this.say();
    this.parts.changed?.();
  }

  // The mark of the function that is shown with its callers and callees. Empty: no function is.
  aroundMark() {
    return this.around === null ? "" : markOf(this.tree.functions[this.around]);
  }

  /** @param {string} mark */
  openAround(mark) {
    this.showAround(this.tree.functions.findIndex((one) => markOf(one) === mark));
  }

  // The frame that fills the graph, as the marks of its functions from the outermost one on.
  path() {
    /** @type {string[]} */
    const marks = [];
    for (let at = this.zoom; at.caller !== null; at = at.caller) marks.unshift(markOf(this.tree.functions[at.fn]));
    return marks;
  }

  /**
   * Zooms as far along such a path as there are frames.
   * @param {string[]} marks
   * @param {boolean} inverted
   */
  open(marks, inverted) {
    let frame = this.tree.root(inverted);
    for (const mark of marks) {
      const next = this.tree.below(frame).find((one) => markOf(this.tree.functions[one.fn]) === mark);
      if (next === undefined) break;
      frame = next;
    }
    this.parts.inverted.setAttribute("aria-pressed", String(inverted));
    this.zoomTo(frame);
  }

  whole() {
    this.zoomTo(this.tree.root(this.zoom.inverted));
  }

  invert() {
    const inverted = !this.zoom.inverted;
    this.parts.inverted.setAttribute("aria-pressed", String(inverted));
    this.zoomTo(this.tree.root(inverted));
  }

  // Says what the chosen frame is, or what can be done.
  say() {
    const box = this.chosen;
    const { status } = this.parts;
    if (box === null) {
      const around = this.diff === null ? ", s shows what calls a function and what it calls" : ""; // see showAround()
      status.textContent = `Click a frame, or press Enter, to zoom; Escape goes back. Arrow keys move, / searches, i inverts${around}.`;
      return;
    }
    const { frame } = box;
    const total = `${this.amount(frame.value)} (${this.share(frame.value)})`;
    if (box.merged > 0) {
      status.textContent = `${box.merged} functions, each narrower than a pixel: ${total}. Zoom into the frame above them to see them.`;
      return;
    }
    const name = element("b", {}, this.nameOf(frame));
    const module = frame.fn < 0 || this.tree.functions[frame.fn].module === "" ? "" : ` · ${this.tree.functions[frame.fn].module}`;
    if (this.diff !== null) {
      status.replaceChildren(name, module, element("br", {}), this.diff.described(frame));
      return;
    }
    const self = this.tree.selfOf(frame);
    const values = frame.fn < 0 ? total : !frame.inverted ? `total ${total}, self ${this.amount(self)} (${this.share(self)})` :
      frame.caller?.fn === -1 ? `self ${total}` : `${total} of ${this.nameOf(innermost(frame))} is called from here`;
    status.replaceChildren(name, module, element("br", {}), values);
  }

  // --- keys -----------------------------------------------------------------------------------

  /** @param {number} step */
  aside(step) {
    const from = this.chosen ?? this.rows[this.middle][0];
    const row = this.rows[this.rowOf(from)];
    this.choose(row[row.indexOf(from) + step] ?? from);
  }

  // Up or down: to the widest frame further out, or back to its caller.
  /** @param {1 | -1} step */
  along(step) {
    const from = this.chosen;
    if (from === null) return this.choose(this.rows[this.middle][0]);
    const at = this.rowOf(from);
    const outwards = this.around === null ? step > 0 : at === this.middle || Math.sign(at - this.middle) === step;
    if (!outwards) return this.choose(from.caller ?? from);
    const next = (this.rows[at + step] ?? []).filter((box) => box.caller === from);
    if (next.length > 0) this.choose(next.reduce((widest, box) => (box.width > widest.width ? box : widest)));
  }

  back() {
    const { search, canvas } = this.parts;
    if (search.value !== "" && document.activeElement === search) {
      this.searchFor("");
    } else if (this.around !== null) {
      this.whole();
    } else if (this.zoom.caller !== null) {
      this.zoomTo(this.zoom.caller);
    }
    canvas.focus();
  }

  enter() {
    if (this.chosen === null || this.chosen.merged > 0) return;
    if (this.around === null) this.zoomTo(this.chosen.frame);
    else this.showAround(this.chosen.frame.fn);
  }

  /**
   * Does what a key means. Keys that mean something only on the graph need it as the target.
   * @param {KeyboardEvent} event
   * @returns {boolean} whether it means something
   */
  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const writing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (writing && event.key !== "Escape") return false;
    /** @type {Record<string, () => unknown>} */
    const anywhere = { "/": () => this.parts.search.focus(), i: () => this.invert(), 0: () => this.whole(), Escape: () => this.back(),
      s: () => this.chosen !== null && this.chosen.merged === 0 && this.showAround(this.chosen.frame.fn) };
    /** @type {Record<string, () => unknown>} */
    const onGraph = {
      ArrowLeft: () => this.aside(-1), ArrowRight: () => this.aside(1), ArrowUp: () => this.along(-1), ArrowDown: () => this.along(1),
      Home: () => this.whole(), Enter: () => this.enter(), " ": () => this.enter(),
    };
    const act = (event.target === this.parts.canvas ? onGraph[event.key] : undefined) ?? anywhere[event.key];
    if (act === undefined) return false;
    event.preventDefault();
    act();
    return true;
  }

  // --- search and table -----------------------------------------------------------------------

  find() {
    const wanted = this.parts.search.value.toLowerCase();
    this.found = wanted === "" ? null : Uint8Array.from(this.tree.functions, ({ name }) => Number(name.toLowerCase().includes(wanted)));
    const { found } = this;
    const value = found === null ? 0 : this.tree.matched((fn) => found[fn] === 1);
    this.parts.matched.textContent = found === null ? "" : `${this.share(value)} matched (${this.amount(value)})`;
    this.draw();
  }

  /** @param {string} name */
  searchFor(name) {
    this.parts.search.value = name;
    this.find();
    this.parts.changed?.();
  }

  /** @type {(title: string, total: boolean) => HTMLElement} */
  sorter(title, total) {
    return element("button", {
      type: "button", "aria-pressed": String(this.byTotal === total), title: `Sort by ${title.toLowerCase()}`,
      onclick: () => {
        this.byTotal = total;
        this.showHottest();
      },
    }, title);
  }

  showHottest() {
    if (this.diff !== null) {
      const sorters = [this.sorter("Self", false), this.sorter("Total", true)];
      this.parts.hottest.replaceChildren(...this.diff.table(this.byTotal, sorters, (name) => this.searchFor(name)));
      return;
    }
    const { self, total } = this.hot;
    const { functions } = this.tree;
    const [first, second] = this.byTotal ? [total, self] : [self, total];
    const order = functions.map((_, fn) => fn).filter((fn) => functions[fn].module !== "")
      .sort((a, b) => first[b] - first[a] || second[b] - second[a]);
    const rows = order.slice(0, MOST_FUNCTIONS).map((fn) => element("tr", {}, ...[self, total].map((of) => element("td", { title: this.amount(of[fn]) }, this.share(of[fn]))),
      element("td", {}, element("button", { type: "button", class: "plain", title: "Search for it", onclick: () => this.searchFor(functions[fn].name) }, functions[fn].name),
        element("button", { type: "button", class: "plain around", "aria-label": `Callers of ${functions[fn].name}, and what it calls`, title: "What calls it, and what it calls (s)", onclick: () => this.showAround(fn) }),
        element("span", { class: "quiet" }, baseName(functions[fn].module)))));
    const left = order.length - rows.length;
    this.parts.hottest.replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, element("th", {}, this.sorter("Self", false)), element("th", {}, this.sorter("Total", true)), element("th", {}, "Function"))), element("tbody", {}, ...rows)),
    ...(left > 0 ? [element("p", {}, `${left.toLocaleString("en")} more functions`)] : []));
  }

  wire() {
    const { canvas, search, colour, inverted } = this.parts;
    canvas.addEventListener("mousemove", (event) => this.choose(this.under(event)));
    canvas.addEventListener("mouseleave", () => this.choose(null));
    canvas.addEventListener("click", (event) => {
      this.choose(this.under(event));
      this.enter();
    });
    canvas.addEventListener("focus", () => this.chosen === null && canvas.matches(":focus-visible") && this.choose(this.rows[this.middle][0]));
    search.addEventListener("input", () => this.searchFor(search.value));
    colour.addEventListener("change", () => {
      this.chooseColours();
      this.draw();
      this.parts.changed?.();
    });
    inverted.addEventListener("click", () => this.invert());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.place()).observe(/** @type {HTMLElement} */ (canvas.parentElement));
  }
}

/** @param {CanvasRenderingContext2D} context */
function shortened(context, /** @type {string} */ text, /** @type {number} */ width) {
  if (context.measureText(text).width <= width) return text;
  let fits = 0;
  for (let above = Math.min(text.length, Math.ceil(width)); fits < above;) {
    const middle = (fits + above + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) fits = middle;
    else above = middle - 1;
  }
  return fits > 1 ? text.slice(0, fits) + "…" : "";
}

/** @type {(context: CanvasRenderingContext2D, box: Box, row: number, ink: string) => void} */
function outline(context, box, row, ink) {
  context.strokeStyle = ink;
  context.lineWidth = 2;
  context.strokeRect(box.x + 1, row * ROW + 1, Math.max(box.width - 3, 1), ROW - 3);
}

/** @type {(row: Box[] | undefined, x: number) => Box | null} */
const boxAt = (row, x) => row?.find((box) => x >= box.x && x < box.x + Math.max(box.width, 1)) ?? null;

/**
 * A few letters for a function, which are the same when the stacks are loaded again.
 * @param {{ name: string, module: string }} of
 */
function markOf({ name, module }) {
  let hash = 0x811c9dc5; // FNV-1a
  for (const letter of `${module}\n${name}`) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193);
  return (hash >>> 0).toString(36);
}

/** @param {Frame} frame */
function innermost(frame) {
  let at = frame;
  while (at.caller !== null && at.caller.fn >= 0) at = at.caller;
  return at;
}
