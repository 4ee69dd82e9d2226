// The phases of a request on the clock of its recording, and the colour of each.

/** @import { Described, Phase } from "./types.d.ts" */

// A colour says what kind of work a phase is. The first pattern that matches decides.
/** @type {[RegExp, string][]} */
const KINDS = [
  [/^undivided/, "#86ac23"],
  [/memory.*writ|writing pages|reading pages/, "#e0862b"],
  [/shared memory/, "#b8541a"],
  [/memory/, "#3b82f6"],
  [/freez|freeze|seiz/, "#8b5cf6"],
  [/resume|unfreeze|end|finish/, "#2e9e6b"],
  [/collect|process|files|core|parasite/, "#2a9db0"],
  [/network|hook|wait|answer/, "#d6527d"],
  [/prepare|start|kernel|before|check/, "#9aa3af"],
];
const OTHER = "#86ac23";

/** @param {string} name */
export const colorOfPhase = (name) => (KINDS.find(([kind]) => kind.test(name)) ?? ["", OTHER])[1];

/** @param {unknown} value */
const isTime = (value) => typeof value === "number" && Number.isFinite(value) && value >= 0;

/**
 * The phases of a recording, and when its request began: 0 if this is unknown. Anybody may have
 * written the metadata, so entries of the wrong type are left out.
 * @param {Described} recording
 * @returns {{ phases: Phase[], origin: number, exact: boolean }} exact: they are a partition of the request's time
 */
export function phasesOf(recording) {
  const { about } = recording;
  const given = Array.isArray(about?.phases) ? about.phases.filter((phase) => phase && typeof phase.name === "string" && isTime(phase.begin_ns) && isTime(phase.end_ns)) : [];
  const began = about?.request_began_monotonic_ns;
  const start = recording.start_monotonic_ns;
  if (given.length === 0 || !isTime(began) || !isTime(start)) {
    // The mark "request ended" begins no phase.
    return { phases: recording.phases.filter((phase) => phase.name !== "request ended"), origin: 0, exact: false };
  }
  const origin = Number(began) - Number(start);
  return { phases: given.map((phase) => ({ ...phase, begin_ns: phase.begin_ns + origin, end_ns: phase.end_ns + origin })), origin, exact: true };
}

/**
 * The time of each name, in the order in which the names first come.
 * @param {Phase[]} phases
 */
export function sums(phases) {
  /** @type {Map<string, { name: string, duration_ns: number, times: number, first: Phase, frozen: boolean, evidence: string }>} */
  const all = new Map();
  for (const phase of phases) {
    const sum = all.get(phase.name) ?? { name: phase.name, duration_ns: 0, times: 0, first: phase, frozen: false, evidence: phase.evidence ?? "" };
    sum.duration_ns += phase.end_ns - phase.begin_ns;
    sum.times += 1;
    sum.frozen = sum.frozen || phase.frozen === true;
    all.set(phase.name, sum);
  }
  return [...all.values()];
}
