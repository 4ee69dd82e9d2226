// A small bar of the phases of a request.
import { element } from "./dom.js";
import { duration } from "./format.js";
import { colorOfPhase, sums } from "./phases.js";

/** @import { Phase } from "./types.d.ts" */

/**
 * Anybody may have written the phases, so those of the wrong type are left out.
 * @param {Phase[] | undefined} phases
 * @param {boolean} failed
 */
export function phaseBar(phases, failed) {
  const all = sums((Array.isArray(phases) ? phases : []).filter((one) => one && typeof one.name === "string" && one.end_ns > one.begin_ns));
  const whole = all.reduce((sum, one) => sum + one.duration_ns, 0);
  if (whole === 0) return element("span", { class: failed ? "phases failed" : "" });
  const text = all.map((one) => `${one.name} ${duration(one.duration_ns)}`).join(", ");
  return element("span", { class: "phases", role: "img", "aria-label": text, title: text }, ...all.map((one) =>
    element("span", { style: `width:${((100 * one.duration_ns) / whole).toFixed(2)}%;background:${colorOfPhase(one.name)}` })));
}
