// The steps of /api/profile_totals as a chart draws them.

/** @import { DrawnLines, Gap, ProfileTotals } from "../types.d.ts" */

const NS = 1e6; // of a millisecond

/**
 * The steps as lines: each has one height, and a gap none. Times are milliseconds since 1970.
 * @param {ProfileTotals} totals
 * @returns {DrawnLines}
 */
export function linesOf(totals) {
  /** @type {number[]} */
  const times = [];
  /** @type {(number | null)[]} */
  const values = [];
  (totals[totals.unit] ?? []).forEach((sum, i) => {
    const begin = (totals.from_unix_ns + i * totals.step_ns) / NS;
    const end = Math.min(totals.from_unix_ns + (i + 1) * totals.step_ns, totals.to_unix_ns) / NS;
    const covered = totals.covered_ns[i];
    const value = covered > 0 ? (sum / covered) * (totals.level ? 60e9 : 1e9) : null; // of a minute, or for each second
    times.push(begin, end - 1);
    values.push(value, value);
  });
  return { times, values: [values] };
}

/**
 * The gaps: steps in which nothing was taken. Adjacent steps are one gap.
 * @param {ProfileTotals} totals
 * @param {number} first nothing is kept from before this time
 * @param {number} last what was taken after this time may not be written yet
 */
export function gapsOf(totals, first, last) {
  /** @type {Gap[]} */
  const gaps = [];
  totals.covered_ns.forEach((covered, i) => {
    const begin = (totals.from_unix_ns + i * totals.step_ns) / NS;
    const end = Math.min(begin + totals.step_ns / NS, totals.to_unix_ns / NS);
    if (covered > 0 || begin < first || begin >= last) return;
    const before = gaps[gaps.length - 1];
    if (before !== undefined && before.end_ns === begin) before.end_ns = end;
    else gaps.push({ start_ns: begin, end_ns: end, ticks: 0, cause: "" });
  });
  return gaps;
}
