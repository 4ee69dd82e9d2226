// What stands around a flame graph, and what is said of a profile. All names are set as text, never as markup.
import { element } from "./dom.js";
import { count, sumText } from "./weights.js";

/** @import { FlameProfile } from "./types.d.ts" */

/**
 * A flame graph's place within a page: its elements, and a button that shows the whole profile.
 * @param {string} whole what that shows
 */
export function flameParts(whole) {
  const parts = {
    canvas: element("canvas", { class: "flame", tabindex: 0, role: "application", "aria-label": "Flame graph: arrow keys move, Enter zooms, Escape goes back" }),
    search: element("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "name of a function" }),
    matched: element("output", {}),
    colour: element("select", {}, element("option", {}, "module"), element("option", {}, "package")),
    legend: element("ul", { class: "legend" }),
    status: element("p", { class: "frame-said", role: "status" }),
    hottest: element("section", { class: "hottest", "aria-label": "Hottest functions" }),
    inverted: element("button", { type: "button", "aria-pressed": "false", title: "Innermost functions first, with their callers below (i)" }, "inverted"),
  };
  const button = element("button", { type: "button", title: `${whole} (0)` }, "whole");
  const box = element("div", { class: "stack-graph" },
    element("div", { class: "find" }, element("label", {}, "Search ", parts.search), parts.matched, element("label", {}, "Colour by ", parts.colour), parts.inverted, button),
    parts.legend, element("div", { class: "beside" }, element("section", { "aria-label": "Flame graph" }, parts.status, parts.canvas), parts.hottest));
  return { parts, whole: button, box };
}

/**
 * The sums of a profile.
 * @param {FlameProfile} profile
 */
export function summaryOf(profile) {
  return sumText(profile, { ...profile, value: profile[profile.unit] ?? 0 });
}

/**
 * What is missing in a profile, as lines.
 * @param {FlameProfile} profile
 */
export function missingIn(profile) {
  /** @type {[boolean, string][]} */
  const missing = [
    [profile.samples === 0, "no stack was taken"],
    [profile.lost > 0, `${count(profile.lost)} ${profile.counted} lost`],
    [profile.lost_mappings > 0, `${count(profile.lost_mappings)} records of mappings lost: names may be missing`],
    [profile.unknown_frames > profile.frames / 100, `${count(profile.unknown_frames)} of ${count(profile.frames)} frames have no name`],
    [profile.truncated > profile.samples / 100, `${count(profile.truncated)} stacks are truncated`],
  ];
  return missing.filter(([is]) => is).map(([, text]) => text);
}
