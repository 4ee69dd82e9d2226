// The stacks of a dump or restore on the page of its recording: for each phase a flame graph, or, of few
// samples, a table. All names are set as text or drawn, never as markup.
import { byId, element, table } from "./dom.js";
import { FlameGraph, baseName } from "./flame_graph.js";
import { flameParts } from "./flame_parts.js";
import { FlameTree } from "./flame_tree.js";
import { TIMES, scaled } from "./format.js";
import { colorOfPhase } from "./phases.js";

/** @import { PhaseStacks, RequestStacks } from "./types.d.ts" */

const FEW = 30; // fewer samples say little: their shares are a matter of chance
const MOST_ROWS = 30;

/** @param {number} samples */
const counted = (samples) => `${samples.toLocaleString("en")} ${samples === 1 ? "sample" : "samples"}`;

/** @param {PhaseStacks} phase */
function tableOf(phase) {
  const tree = new FlameTree(phase);
  const { self, total } = tree.hottest();
  const order = tree.functions.map((_, fn) => fn).filter((fn) => tree.functions[fn].module !== "").sort((a, b) => self[b] - self[a] || total[b] - total[a]);
  return table(["function", "module:", "self", "total"], order.slice(0, MOST_ROWS).map((fn) => [
    tree.functions[fn].name, baseName(tree.functions[fn].module), self[fn].toLocaleString("en"), total[fn].toLocaleString("en")]), { class: "lines" });
}

export class Stacks {
  /**
   * @param {HTMLElement} box
   * @param {RequestStacks} stacks
   */
  constructor(box, stacks) {
    this.stacks = stacks;
    /** @type {FlameGraph | null} */
    this.graph = null;
    const sum = stacks.phases.reduce((all, phase) => all + phase.samples, 0);
    const lost = stacks.lost > 0 ? `; ${counted(stacks.lost)} lost` : "";
    this.choices = element("div", { class: "choices", role: "group", "aria-label": "Phase" }, ...stacks.phases.map((phase) => element("button", {
      type: "button", "data-phase": phase.name, onclick: () => this.choose(phase.name),
    }, element("span", { class: "swatch", style: `background:${colorOfPhase(phase.name)}` }), phase.name || "no phase", element("span", { class: "quiet" }, ` ${phase.samples.toLocaleString("en")}`))));
    this.said = element("p", { class: "said", role: "status" });
    this.few = element("div", {});
    this.drawn = element("div", { hidden: "" });
    box.append(element("h2", {}, "Stacks"), element("p", { class: "quiet" },
      `${counted(sum)} of CRIU and of the target, one each ${scaled(stacks.period_ns, TIMES)} of CPU time${lost}. Choose a phase here or above.`),
    this.choices, this.said, this.few, this.drawn);
    box.hidden = false;
    const most = stacks.phases.reduce((first, phase) => (phase.samples > first.samples ? phase : first), stacks.phases[0]);
    this.choose(most?.name ?? "");
  }

  /** @param {string} name of a phase */
  choose(name) {
    const phase = this.stacks.phases.find((one) => one.name === name);
    for (const button of this.choices.querySelectorAll("button")) button.setAttribute("aria-pressed", String(phase !== undefined && button.dataset.phase === name));
    this.drawn.hidden = phase === undefined || phase.samples < FEW;
    this.few.replaceChildren(...(phase !== undefined && phase.samples < FEW ? [tableOf(phase)] : []));
    this.said.textContent = phase === undefined ? `${name}: no samples. Neither CRIU nor the target used a CPU for long.` :
      phase.samples < FEW ? `${name}: ${counted(phase.samples)}, too few for a graph. The shares are a matter of chance.` : `${name}: ${counted(phase.samples)}`;
    if (phase === undefined || phase.samples < FEW) return;
    if (this.graph === null) this.graph = this.makeGraph(phase);
    else this.graph.show(phase);
  }

  /** @param {PhaseStacks} phase */
  makeGraph(phase) {
    const { parts, whole, box } = flameParts("All of the phase");
    this.drawn.append(box);
    const graph = new FlameGraph(parts, phase, false);
    whole.addEventListener("click", () => graph.whole());
    this.drawn.addEventListener("keydown", (event) => graph.pressed(event) && event.stopPropagation());
    return graph;
  }
}

/**
 * The stacks that the page has. Null if it has none.
 * @returns {Stacks | null}
 */
export function stacksOfPage() {
  const data = document.getElementById("stacks-data");
  if (data === null) return null;
  /** @type {RequestStacks} */
  const stacks = JSON.parse(data.textContent ?? "");
  data.remove();
  if (stacks.error) {
    byId("stacks").append(element("h2", {}, "Stacks"), element("p", { class: "warning" }, stacks.error));
    byId("stacks").hidden = false;
    return null;
  }
  return new Stacks(byId("stacks"), stacks);
}
