// The verdict on a request: why it took so long, and what would make it shorter. All text is set as
// text, never as markup, and figures of the wrong type are left out.
import { element } from "./dom.js";
import { duration } from "./format.js";

/** @import { Finding, Verdict } from "./types.d.ts" */

/** @type {(value: unknown) => value is number} */
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/**
 * "400 ms", or "400 to 600 ms".
 * @param {[number, number]} range
 */
function rangeText([low, high]) {
  if (duration(low) === duration(high)) return duration(low);
  const [first, unit] = duration(low).split(" ");
  return duration(high).endsWith(" " + unit) ? `${first} to ${duration(high)}` : `${duration(low)} to ${duration(high)}`;
}

/**
 * A bar from 0 to `high`, paler from `low`, of `most`.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 * @param {string} kind
 */
function bar(low, high, most, kind) {
  const share = (/** @type {number} */ value) => `${Math.min(100, (100 * value) / most).toFixed(2)}%`;
  return element("span", { class: "estimate" },
    element("span", { class: `${kind} range`, style: `width:${share(high)}` }), element("span", { class: kind, style: `width:${share(low)}` }));
}

/**
 * What each advice would give, and how it was, as bars on one scale.
 * @param {Finding[]} findings
 * @param {number} was
 */
function advices(findings, was) {
  const advised = findings.filter((finding) => typeof finding.advice === "string" && finding.advice !== "");
  if (advised.length === 0) return [];
  const rows = advised.flatMap((finding) => {
    const range = finding.estimate_ns;
    const known = Array.isArray(range) && range.length === 2 && range.every(isNumber) && was > 0;
    const also = typeof finding.also === "string" && finding.also !== ""
      ? [element("span", {}, finding.also), element("span", { class: "figure" }, ""), element("span", { class: "no-estimate" })] : [];
    return [element("span", {}, String(finding.advice)), element("span", { class: "figure" }, known ? `≈ ${rangeText(range)}` : ""),
      known ? bar(range[0], range[1], Math.max(was, range[1]), "better") : element("span", { class: "no-estimate" }), ...also];
  });
  if (was > 0) rows.push(element("span", { class: "quiet" }, "As it was"), element("span", { class: "figure quiet" }, duration(was)), bar(was, was, was, "was"));
  return [element("div", { class: "advices" }, ...rows)];
}

/**
 * @param {Finding[]} findings
 * @param {string} base what the shares are of
 */
function reasons(findings, base) {
  if (findings.length === 0) return [];
  const items = findings.map((finding) => element("li", {},
    element("b", {}, String(finding.rule ?? "")), isNumber(finding.share) ? ` (${(100 * finding.share).toFixed(0)} % of ${base})` : "",
    finding.evidence ? `: ${finding.evidence}` : "", finding.threshold ? element("span", { class: "quiet" }, ` Named from: ${finding.threshold}`) : ""));
  return [element("details", { class: "why-so" }, element("summary", {}, "Why we say so"), element("ul", {}, ...items))];
}

/**
 * The box of a verdict. Null if there is none.
 * @param {Verdict | undefined} verdict
 * @returns {HTMLElement | null}
 */
export function verdictBox(verdict) {
  const lines = Array.isArray(verdict?.lines) ? verdict.lines.filter((line) => typeof line === "string" && line !== "") : [];
  if (!verdict || lines.length === 0) return null;
  // What took none of the time that is explained is named only where the lines name it.
  const named = (/** @type {Finding} */ finding) => finding.share !== 0 || (typeof finding.evidence === "string" && lines.some((line) => line.startsWith(String(finding.evidence))));
  const findings = Array.isArray(verdict.findings) ? verdict.findings.filter((finding) => finding !== null && typeof finding === "object" && named(finding)) : [];
  const was = [verdict.frozen_ns, verdict.downtime_ns, verdict.duration_ns].find((value) => isNumber(value) && value > 0) ?? 0;
  const bars = advices(findings, was);
  // The bars say what the lines of advice say.
  const advised = findings.map((finding) => String(finding.advice ?? "").replace(/\.$/, "")).filter((advice) => advice !== "");
  const isAdvice = (/** @type {string} */ line) => /^to stand still/i.test(line) || advised.some((advice) => line.startsWith(advice));
  const [first, ...rest] = bars.length === 0 ? lines : lines.filter((line, index) => index === 0 || !isAdvice(line));
  return element("section", { id: "verdict", "aria-label": "Verdict" }, element("p", { class: "first" }, first),
    ...rest.map((line) => element("p", {}, line)), ...bars, ...reasons(findings, isNumber(verdict.frozen_ns) && verdict.frozen_ns > 0 ? "the standstill" : "the whole time"));
}
