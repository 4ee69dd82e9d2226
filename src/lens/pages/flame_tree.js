// The stacks of a profile as a tree, and the frames of a flame graph, which are made when they are
// first looked at: a profile may have a hundred thousand stacks, of which a screen shows few.

/** @import { FlameStacks } from "./types.d.ts" */

/**
 * A frame of the graph: all places in the tree that it stands for. Inverted, `weights` is how much
 * of the innermost function's time each place has.
 * @typedef {{ fn: number, value: number, nodes: number[], weights: number[], caller: Frame | null, inverted: boolean }} Frame
 */

export class FlameTree {
  /** @param {FlameStacks} profile */
  constructor(profile) {
    const { depths, functions, self } = profile.tree;
    const n = depths.length;
    this.functions = profile.functions.map(([name, module]) => ({ name, module: profile.modules[module] }));
    this.fn = new Int32Array(functions);
    this.self = new Float64Array(self);
    this.total = new Float64Array(self);
    this.parent = new Int32Array(n);
    /** behind the last descendant of a node */
    this.end = new Int32Array(n).fill(n);
    const path = new Int32Array(n); // the node at each depth
    let length = 0;
    for (let i = 0; i < n; ++i) {
      const depth = depths[i];
      while (length > depth) this.end[path[--length]] = i;
      this.parent[i] = depth > 0 ? path[depth - 1] : -1;
      path[length++] = i;
    }
    this.sum = 0;
    for (let i = n - 1; i >= 0; --i) {
      if (this.parent[i] < 0) this.sum += this.total[i];
      else this.total[this.parent[i]] += this.total[i];
    }
  }

  /**
   * The frame that is as wide as the graph.
   * @param {boolean} inverted
   * @returns {Frame}
   */
  root(inverted) {
    return { fn: -1, value: this.sum, nodes: [], weights: [], caller: null, inverted };
  }

  /**
   * A function with all its places. One that calls itself counts once.
   * @type {(fn: number, inverted: boolean) => Frame}
   */
  around(fn, inverted) {
    /** @type {number[]} */
    const nodes = [];
    for (let i = 0; i < this.fn.length; i = this.fn[i] === fn ? this.end[i] : i + 1) if (this.fn[i] === fn) nodes.push(i);
    const weights = nodes.map((node) => this.total[node]);
    return { fn, value: weights.reduce((sum, one) => sum + one, 0), nodes, weights: inverted ? weights : [], caller: null, inverted };
  }

  /**
   * What the frame calls; inverted: what calls it.
   * @param {Frame} frame
   */
  below(frame) {
    /** @type {Map<number, Frame>} */
    const groups = new Map();
    /** @type {(node: number, weight: number) => void} */
    const put = (node, weight) => {
      const fn = this.fn[node];
      let group = groups.get(fn);
      if (group === undefined) groups.set(fn, (group = { fn, value: 0, nodes: [], weights: [], caller: frame, inverted: frame.inverted }));
      group.value += weight;
      group.nodes.push(node);
      if (frame.inverted) group.weights.push(weight);
    };
    if (frame.inverted) this.putCallers(frame, put);
    else this.putCalled(frame, put);
    const frames = [...groups.values()].filter((each) => each.value > 0);
    return frame.inverted ? frames.sort((a, b) => b.value - a.value) : frames;
  }

  /** @type {(frame: Frame, put: (node: number, weight: number) => void) => void} */
  putCalled(frame, put) {
    /** @type {(from: number, to: number) => void} */
    const siblings = (from, to) => {
      for (let i = from; i < to; i = this.end[i]) put(i, this.total[i]);
    };
    if (frame.fn < 0) siblings(0, this.fn.length);
    for (const node of frame.nodes) siblings(node + 1, this.end[node]);
  }

  /** @type {(frame: Frame, put: (node: number, weight: number) => void) => void} */
  putCallers(frame, put) {
    if (frame.fn < 0) {
      for (let i = 0; i < this.fn.length; ++i) if (this.self[i] > 0) put(i, this.self[i]);
    }
    frame.nodes.forEach((node, i) => this.parent[node] >= 0 && put(this.parent[node], frame.weights[i]));
  }

  /**
   * The time in which the frame's own code ran.
   * @param {Frame} frame
   */
  selfOf(frame) {
    return frame.nodes.reduce((sum, node) => sum + this.self[node], 0);
  }

  /** For each function, its own time, and that with what it calls; a stack that has it twice counts once. */
  hottest() {
    const self = new Float64Array(this.functions.length);
    const total = new Float64Array(this.functions.length);
    const open = new Int32Array(this.functions.length); // how often it is in `path`
    const path = new Int32Array(this.fn.length);
    let length = 0;
    for (let i = 0; i < this.fn.length; ++i) {
      while (length > 0 && this.end[path[length - 1]] <= i) --open[this.fn[path[--length]]];
      const fn = this.fn[i];
      self[fn] += this.self[i];
      if (open[fn]++ === 0) total[fn] += this.total[i];
      path[length++] = i;
    }
    return { self, total };
  }

  /**
   * The time of all stacks that have one of these functions.
   * @param {(fn: number) => boolean} matches
   */
  matched(matches) {
    let value = 0;
    for (let i = 0; i < this.fn.length;) {
      if (!matches(this.fn[i])) {
        ++i;
        continue;
      }
      value += this.total[i];
      i = this.end[i];
    }
    return value;
  }
}

/**
 * The package of a Go function, or the namespace or class of a C++ or Rust function; else the module.
 * @param {{ name: string, module: string }} of
 */
export function packageOf({ name, module }) {
  const bare = name.replaceAll("(anonymous namespace)", "{anonymous}").replace(/^(non-virtual )?thunk to /, "");
  const slash = bare.lastIndexOf("/");
  const go = bare.slice(slash + 1).match(/^([\w-]+)\./);
  if (go && !bare.includes("::")) return bare.slice(0, slash + 1) + go[1];
  const scope = bare.split(/[(<]/)[0].split(" ").pop() ?? "";
  const colons = scope.lastIndexOf("::");
  return colons > 0 ? scope.slice(0, colons) : module;
}

/**
 * @typedef {{ frame: Frame, x: number, width: number, merged: number, caller: Box | null }} Box `merged`: the number of
 * frames that it stands for, each narrower than `least`; 0: one
 */

/**
 * Places the frames of a graph: for each row, its boxes from left to right. First come the callers of
 * `zoom`, as wide as the graph. Frames that are too narrow to see are one box behind their siblings.
 * @param {FlameTree} tree
 * @param {Frame} zoom
 * @param {number} width
 * @param {number} least
 */
export function placed(tree, zoom, width, least = 1) {
  /** @type {Box[][]} */
  const rows = [];
  /** @type {Frame[]} */
  const chain = [];
  for (let frame = /** @type {Frame | null} */ (zoom); frame !== null; frame = frame.caller) chain.unshift(frame);
  for (const frame of chain) rows.push([{ frame, x: 0, width, merged: 0, caller: rows.length > 0 ? rows[rows.length - 1][0] : null }]);
  const scale = zoom.value > 0 ? width / zoom.value : 0;
  for (let row = rows[rows.length - 1]; row.length > 0;) {
    row = row.flatMap((box) => (box.merged > 0 ? [] : boxesBelow(tree, box, scale, least)));
    if (row.length > 0) rows.push(row);
  }
  return rows;
}

/**
 * Places a function with what calls it above, and what it calls below. `middle`: its row.
 * @type {(tree: FlameTree, fn: number, width: number) => { rows: Box[][], middle: number }}
 */
export function sandwiched(tree, fn, width) {
  const below = placed(tree, tree.around(fn, false), width);
  const above = placed(tree, tree.around(fn, true), width).slice(1);
  for (const box of above[0] ?? []) box.caller = below[0][0];
  return { rows: [...above.reverse(), ...below], middle: above.length };
}

/** @type {(tree: FlameTree, caller: Box, scale: number, least: number) => Box[]} */
function boxesBelow(tree, caller, scale, least) {
  /** @type {Box[]} */
  const boxes = [];
  let x = caller.x;
  const small = { value: 0, count: 0 };
  for (const frame of tree.below(caller.frame)) {
    const width = frame.value * scale;
    if (width < least) {
      small.value += frame.value;
      ++small.count;
      continue;
    }
    boxes.push({ frame, x, width, merged: 0, caller });
    x += width;
  }
  if (small.value * scale >= least) {
    const frame = { fn: -1, value: small.value, nodes: [], weights: [], caller: caller.frame, inverted: caller.frame.inverted };
    boxes.push({ frame, x, width: small.value * scale, merged: small.count, caller });
  }
  return boxes;
}
