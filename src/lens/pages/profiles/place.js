// Which profiles the page shows, as a part of its address: a link shows the same again.

/**
 * @typedef {{ service: string, type: string, from: number, to: number, compared: string, search: string, inverted: boolean, colour: string,
 *   zoom: string[], around: string }} Place `service` is empty: all. `from` and `to`: minutes since 1970. `compared`: what
 *   the profile is compared with: "before" (the time of the same length before), "day" or "week" (the same time a day or a week earlier), the instant at
 *   which another time begins, "checkpoint:ID/RECORDING", "file:NAME", or empty (nothing). `colour` is empty: the usual one for this profile
 */

export const MINUTE_MS = 60_000;
const HOUR = 60;

/** @param {number} minute */
const textOf = (minute) => new Date(minute * MINUTE_MS).toISOString().slice(0, 16) + "Z";

/**
 * @param {string | null} text
 * @returns {number | null}
 */
function minuteIn(text) {
  const ms = Date.parse(text ?? "");
  return Number.isFinite(ms) && ms >= 0 ? Math.floor(ms / MINUTE_MS) : null;
}

/** @type {Record<string, number>} how many minutes earlier */
const EARLIER = { day: 24 * HOUR, week: 7 * 24 * HOUR };

/**
 * What `compared` names that is no time.
 * @param {string} compared
 * @returns {{ checkpoint: string, recording: string } | { file: string } | null}
 */
export function otherIn(compared) {
  const [, checkpoint, recording] = /^checkpoint:([^/]+)\/(.+)$/.exec(compared) ?? [];
  if (recording !== undefined) return { checkpoint, recording };
  return /^file:./.test(compared) ? { file: compared.slice("file:".length) } : null;
}

/** @param {string} text */
function comparedIn(text) {
  if (text === "before" || text in EARLIER || otherIn(text) !== null) return text;
  const minute = minuteIn(text);
  return minute === null ? "" : textOf(minute);
}

/**
 * The minute at which the other range of a comparison begins.
 * @param {Place} place
 */
export function otherFrom({ compared, from, to }) {
  if (compared in EARLIER) return from - EARLIER[compared];
  return minuteIn(compared) ?? from - (to - from);
}

/**
 * Such a range, for `compared`.
 * @param {number} minute
 */
export const comparedWith = (minute) => textOf(minute);

/**
 * What an address says. What it leaves out, or says wrongly, is the last hour of CPU time.
 * @param {string} hash
 * @param {number} now_ms
 * @returns {Place}
 */
export function placeIn(hash, now_ms) {
  const words = new URLSearchParams(hash.slice(1));
  const to = minuteIn(words.get("to")) ?? Math.ceil(now_ms / MINUTE_MS);
  const from = minuteIn(words.get("from")) ?? to - HOUR;
  return {
    service: words.get("profiles") ?? "", type: words.get("type") || "cpu", from: from < to ? from : to - HOUR, to, compared: comparedIn(words.get("compare") ?? ""),
    search: words.get("search") ?? "", inverted: words.has("inverted"), colour: words.get("colour") ?? "", zoom: (words.get("zoom") ?? "").split(".").filter(Boolean), around: words.get("around") ?? "",
  };
}

/** @param {Place} place */
export function hashOf(place) {
  /** @type {[string, string][]} */
  const words = [["profiles", place.service], ["type", place.type], ["from", textOf(place.from)], ["to", textOf(place.to)]];
  if (place.compared) words.push(["compare", place.compared]);
  if (place.search) words.push(["search", place.search]);
  if (place.inverted) words.push(["inverted", "1"]);
  if (place.colour) words.push(["colour", place.colour]);
  if (place.zoom.length > 0) words.push(["zoom", place.zoom.join(".")]);
  if (place.around) words.push(["around", place.around]);
  return "#" + words.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%3A", ":")}`).join("&");
}

/**
 * Whether two places have the same data.
 * @type {(a: Place | null, b: Place | null) => boolean}
 */
export const sameData = (a, b) => a !== null && b !== null && sameRange(a, b) && a.service === b.service && a.type === b.type && a.compared === b.compared;

/** @type {(a: Place | null, b: Place | null) => boolean} */
export const sameRange = (a, b) => a !== null && b !== null && a.from === b.from && a.to === b.to;

/**
 * The parameters of kymod's API for a place. The instants are text, because they are too large for exact numbers.
 * @param {Place} place
 */
export const rangeOf = ({ from, to }) => ({ from_unix_ns: `${from * MINUTE_MS}000000`, to_unix_ns: `${to * MINUTE_MS}000000` });

/** @param {Place} place */
export const queryOf = (place) => ({ ...rangeOf(place), type: place.type, service: place.service });

/**
 * @param {Place} place
 * @returns {Record<string, string>}
 */
export const comparisonOf = (place) => ({ ...queryOf(place), ...(otherIn(place.compared) ?? { before_unix_ns: `${Math.max(otherFrom(place), 0) * MINUTE_MS}000000` }) });

/** @param {number} minute */
export const localTime = (minute) => new Date(minute * MINUTE_MS).toLocaleString("sv").slice(0, 16);
