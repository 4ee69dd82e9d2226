// Files that the page makes of a flame graph.
import { css } from "../dom.js";
import { ROW } from "../flame_graph.js";

/** @import { FlameGraph } from "../flame_graph.js" */

/**
 * The stacks in the format of speedscope (https://www.speedscope.app/file-format-schema.json).
 * @param {FlameGraph} graph
 * @param {string} name
 */
export function speedscopeOf({ tree, scale, unit }, name) {
  /** @type {number[][]} */
  const samples = [];
  /** @type {number[]} */
  const weights = [];
  tree.self.forEach((self, node) => {
    if (self === 0) return;
    const stack = [];
    for (let at = node; at >= 0; at = tree.parent[at]) stack.unshift(tree.fn[at]);
    samples.push(stack);
    weights.push(self * scale);
  });
  return {
    $schema: "https://www.speedscope.app/file-format-schema.json", exporter: "kymograph", name,
    shared: { frames: tree.functions.map(({ name: fn, module }) => (module === "" ? { name: fn } : { name: fn, file: module })) },
    profiles: [{ type: "sampled", name, unit: { ns: "nanoseconds", bytes: "bytes", count: "none" }[unit], startValue: 0, endValue: weights.reduce((sum, one) => sum + one, 0), samples, weights }],
  };
}

/** @type {(parent: Element, name: string, attributes: Record<string, string | number>, text?: string) => Element} */
function add(parent, name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

/**
 * The graph as it is drawn now. A frame says its name and its time when the mouse is over it.
 * @param {FlameGraph} graph
 */
export function svgOf(graph) {
  const width = graph.parts.canvas.clientWidth;
  const height = graph.rows.length * ROW;
  const style = graph.style();
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif", "font-size": 12 })) svg.setAttribute(key, String(value));
  add(svg, "rect", { width, height, fill: css("--paper") });
  graph.rows.forEach((row, at) => {
    for (const box of row) {
      const name = graph.labelOf(box);
      // A frame of its own: its text ends where the frame ends.
      const frame = add(svg, "svg", { x: box.x, y: at * ROW, width: Math.max(box.width - 1, 0.5), height: ROW - 1 });
      add(frame, "title", {}, `${name}: ${graph.amount(box.frame.value)} (${graph.share(box.frame.value)})`);
      add(frame, "rect", { width: "100%", height: "100%", fill: graph.colourOf(box, style) });
      if (box.width > ROW) add(frame, "text", { x: 3, y: ROW - 5, fill: style.ink }, name);
    }
  });
  return new XMLSerializer().serializeToString(svg);
}
