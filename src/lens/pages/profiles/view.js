// The view of the stack profiles that kymod keeps: which service, what kind and when; its time over time; its stacks.
import { byId, element, fieldById } from "../dom.js";
import { bytes, messageOf } from "../format.js";
import { kymod } from "../live/state.js";
import { showOthers } from "./others.js";
import { MINUTE_MS, comparedWith, comparisonOf, hashOf, localTime, otherFrom, otherIn, placeIn, queryOf, rangeOf, sameData, sameRange } from "./place.js";
import { Services } from "./services.js";
import { Stacks } from "./stacks.js";
import { Totals } from "./totals.js";

/** @import { KeptProfile, KeptProfiles, ProfileOthers, ProfileTotals } from "../types.d.ts" */
/** @import { Place } from "./place.js" */

const MOST_POINTS = 300;
/** @type {[string, number][]} in minutes */
const LAST = [["15 min", 15], ["hour", 60], ["6 h", 360], ["day", 1440]];

/** @param {number} minute */
const fieldTime = (minute) => localTime(minute).replace(" ", "T");

/** @param {HTMLInputElement} field */
const labelOf = (field) => /** @type {HTMLElement} */ (field.parentElement);

class View {
  constructor() {
    /** @type {Place | null} that is in the address */
    this.place = null;
    /** @type {Place | null} whose data are shown */
    this.loaded = null;
    /** @type {KeptProfiles | null} of the range of `loaded` */
    this.kept = null;
    this.loads = 0;
    /** @type {Promise<unknown>} ends when kymod has answered all that was asked for a range */
    this.reading = Promise.resolve();
    /** @type {ProfileOthers} */
    this.others = { checkpoints: [], files: [] };
    this.services = new Services(byId("profiles-services"), (service) => this.go({ service, zoom: [], around: "" }));
    this.totals = new Totals(byId("profiles-chart"), (from, to) => this.go({ from, to }));
    this.stacks = new Stacks(byId("profiles-stacks"), () => this.graphChanged(), (format) => this.file(format));
    this.wire();
  }

  wire() {
    byId("profiles-last").append(...LAST.map(([name, minutes]) => element("button", { type: "button", "data-minutes": minutes, onclick: () => {
      const now = Math.ceil(Date.now() / MINUTE_MS);
      this.go({ from: now - minutes, to: now });
    } }, name)));
    for (const how of /** @type {const} */ (["earlier", "later", "wider"])) byId(`profiles-${how}`).addEventListener("click", () => this.totals.move(how));
    for (const id of ["profiles-from", "profiles-to"]) fieldById(id).addEventListener("change", () => this.typed());
    fieldById("profiles-compare").addEventListener("change", () => this.compare(fieldById("profiles-compare").value));
    fieldById("profiles-other").addEventListener("change", () => this.compare("other"));
    document.addEventListener("keydown", (event) => this.pressed(event), { capture: true });
  }

  // A key is the graph's, unless another element has the focus.
  /** @param {KeyboardEvent} event */
  pressed(event) {
    const own = event.target === document.body || (event.target instanceof Node && byId("profiles-stacks").contains(event.target));
    if (own && !byId("profiles").hidden) this.stacks.pressed(event);
  }

  // The address says what to show. If it leaves something out, it is completed.
  async route() {
    const place = placeIn(location.hash, Date.now());
    if (hashOf(place) !== location.hash) history.replaceState(null, "", hashOf(place));
    this.place = place;
    await this.show();
  }

  /**
   * Shows something else, which Back undoes.
   * @param {Partial<Place>} changes
   */
  go(changes) {
    if (this.place === null) return;
    this.place = { ...this.place, ...changes };
    history.pushState(null, "", hashOf(this.place));
    this.show();
  }

  // The user has zoomed or searched in the graph.
  graphChanged() {
    if (this.place === null || !sameData(this.place, this.loaded)) return;
    const before = this.place;
    this.place = { ...before, ...this.stacks.state() };
    const moved = before.inverted !== this.place.inverted || before.zoom.join() !== this.place.zoom.join() || before.around !== this.place.around;
    if (moved) history.pushState(null, "", hashOf(this.place));
    else history.replaceState(null, "", hashOf(this.place));
    byId("profiles").dataset.shown = hashOf(this.place);
  }

  // A range was typed.
  typed() {
    const [from, to] = ["profiles-from", "profiles-to"].map((id) => Math.floor(new Date(fieldById(id).value).getTime() / MINUTE_MS));
    if (!Number.isFinite(from) || !Number.isFinite(to)) return;
    const good = from >= 0 && from < to;
    byId("profiles-fault").textContent = good ? "" : "The range ends before it begins.";
    if (good) this.go({ from, to });
  }

  /** @param {string} how */
  compare(how) {
    if (this.place === null) return;
    const other = fieldById("profiles-other");
    // Another time begins as that of the comparison until now, until a time is typed.
    if (how === "other" && labelOf(other).hidden) other.value = fieldTime(otherFrom(this.place));
    const minute = Math.floor(new Date(other.value).getTime() / MINUTE_MS);
    if (how === "other" && !(minute >= 0)) return;
    this.go({ compared: how === "other" ? comparedWith(minute) : how, colour: "" });
  }

  async show() {
    const place = /** @type {Place} */ (this.place);
    this.showControls(place);
    if (!sameRange(place, this.totals.place)) this.totals.go(place);
    if (sameData(place, this.loaded)) {
      ++this.loads; // what is under way is not wanted any more
      byId("profiles").removeAttribute("aria-busy");
      this.stacks.restore(place);
      this.done(place);
    } else {
      await this.load(place);
    }
  }

  /** @param {Place} place */
  showControls(place) {
    byId("profiles-fault").textContent = "";
    fieldById("profiles-from").value = fieldTime(place.from);
    fieldById("profiles-to").value = fieldTime(place.to);
    this.showCompared(place);
    for (const button of /** @type {NodeListOf<HTMLElement>} */ (byId("profiles-last").querySelectorAll("button"))) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.minutes) === place.to - place.from && Math.abs(place.to - Date.now() / MINUTE_MS) < 2));
    }
  }

  /** @param {Place} place */
  showCompared(place) {
    const named = ["", "before", "day", "week"].includes(place.compared) || otherIn(place.compared) !== null;
    const other = fieldById("profiles-other");
    showOthers(this.others, place.compared, place.service);
    fieldById("profiles-compare").value = named ? place.compared : "other";
    labelOf(other).hidden = named;
    other.value = fieldTime(otherFrom(place));
  }

  /**
   * Asks kymod for all that is shown of a place.
   * @param {Place} place
   * @returns {Promise<[PromiseSettledResult<KeptProfiles>, PromiseSettledResult<ProfileTotals>, PromiseSettledResult<KeptProfile>, PromiseSettledResult<ProfileOthers>]>}
   */
  read(place) {
    const known = sameRange(place, this.loaded) ? this.kept : null;
    const query = queryOf(place);
    return Promise.allSettled([known ?? kymod.get("/api/profiles", rangeOf(place)),
      kymod.get("/api/profile_totals", { ...query, points: MOST_POINTS }), place.compared ? kymod.get("/api/profile_comparison", comparisonOf(place)) : kymod.get("/api/profile", query),
      kymod.get("/api/profile_others")]);
  }

  /** @param {Place} place */
  async load(place) {
    const own = ++this.loads;
    byId("profiles").setAttribute("aria-busy", "true");
    // kymod lets eight reads work or wait, refuses one that waits for ten seconds, and carries out what a page has given
    // up. So a move waits for the reads of the one before, and of those that wait only the last is asked for.
    await this.reading;
    if (own !== this.loads) return;
    const reading = this.read(place);
    this.reading = reading;
    const [kept, totals, profile, others] = await reading;
    if (own !== this.loads) return;
    if (others.status === "fulfilled") this.others = others.value;
    byId("profiles").removeAttribute("aria-busy");
    const fault = [kept, totals].find((one) => one.status === "rejected");
    byId("profiles-shown").hidden = fault !== undefined;
    this.loaded = fault === undefined ? place : null;
    if (fault !== undefined) byId("profiles-fault").textContent = messageOf(/** @type {PromiseRejectedResult} */ (fault).reason);
    this.showCompared(place);
    if (kept.status === "fulfilled" && totals.status === "fulfilled") this.showData(place, kept.value, totals.value, profile);
    this.done(place);
  }

  /** @type {(place: Place, kept: KeptProfiles, totals: ProfileTotals, profile: PromiseSettledResult<KeptProfile>) => void} */
  showData(place, kept, totals, profile) {
    this.kept = kept;
    this.showKinds(kept, place);
    this.services.show(kept, place.type, place.service);
    const title = kept.types.find((one) => one.type === place.type)?.title ?? place.type;
    this.totals.show(totals, kept, place, `${place.service || "All services"}: ${title}`);
    const { minutes, newest_unix_ns, oldest_unix_ns, bytes: size } = kept.kept;
    byId("profiles-kept").textContent = minutes === 0 ? "No minute is kept yet: the first one is written a minute after kymod has started." :
      `${minutes.toLocaleString("en")} ${minutes === 1 ? "minute is" : "minutes are"} kept, from ${localTime(oldest_unix_ns / 1e6 / MINUTE_MS)} to ${localTime(newest_unix_ns / 1e6 / MINUTE_MS + 1)}, in ${bytes(size)}.`;
    if (profile.status === "fulfilled") this.stacks.show(profile.value, place);
    else this.stacks.fail(messageOf(profile.reason));
  }

  /** @type {(kept: KeptProfiles, place: Place) => void} */
  showKinds(kept, place) {
    const box = byId("profiles-kinds");
    const focused = box.contains(document.activeElement);
    // The types of profiles in this range, and the type that kymod always takes.
    const seen = kept.types.filter(({ type }) => type === "cpu" || type === place.type || kept.services.some((one) => one.type === type));
    box.replaceChildren(...seen.map(({ type, title }) =>
      element("button", { type: "button", "aria-pressed": String(type === place.type), onclick: () => this.go({ type, zoom: [], around: "" }) }, title)));
    if (focused) /** @type {HTMLElement | null} */ (box.querySelector("[aria-pressed=true]"))?.focus();
  }

  // For tests, and for whoever waits.
  /** @param {Place} place */
  done(place) {
    byId("profiles").dataset.shown = hashOf(place);
  }

  /** @param {string} format */
  async file(format) {
    const reply = await kymod.call("/api/profile", { ...queryOf(/** @type {Place} */ (this.place)), format });
    return reply.blob();
  }
}

/** @type {View | null} */
let view = null;

function route() {
  if (!/^#profiles(=|&|$)/.test(location.hash)) return;
  if (view === null) view = new View();
  view.route();
}

export function wireProfiles() {
  addEventListener("hashchange", route);
  route();
}
