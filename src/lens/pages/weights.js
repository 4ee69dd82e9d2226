// What the values of stacks are, as text.

import { BYTES, TIMES, scaled } from "./format.js";

/** @import { FlameKind } from "./types.d.ts" */

/** @param {number} n */
export const count = (n) => n.toLocaleString("en");

/**
 * A value of a stack, in its unit.
 * @param {number} value
 * @param {FlameKind["unit"]} unit
 */
export const amount = (value, unit) => (unit === "count" ? count(value) : scaled(value, unit === "bytes" ? BYTES : TIMES));

/**
 * The sum of a profile, as a sentence.
 * @param {FlameKind} kind
 * @param {{ value: number, samples: number, duration_ns: number }} of
 */
export function sumText(kind, { value, samples, duration_ns }) {
  const number = `${count(samples)} ${kind.counted}`;
  // A file of folded stacks has numbers of samples alone.
  const all = kind.unit === "count" || (value === 0 && samples > 0) ? number : `${amount(value, kind.unit)} of ${kind.what} in ${number}`;
  return duration_ns > 0 ? `${all} of ${scaled(duration_ns, TIMES)}` : all;
}
