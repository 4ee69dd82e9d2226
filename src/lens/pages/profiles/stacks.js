// The stacks of the chosen profiles: a flame graph, or that of a comparison, and files of what is shown. All names are
// set as text or drawn, never as markup.
import { element, save } from "../dom.js";
import { compared } from "../flame_diff.js";
import { FlameGraph } from "../flame_graph.js";
import { flameParts, missingIn, summaryOf } from "../flame_parts.js";
import { speedscopeOf, svgOf } from "./files.js";
import { MINUTE_MS, localTime } from "./place.js";

/** @import { KeptProfile } from "../types.d.ts" */
/** @import { Place } from "./place.js" */

export class Stacks {
  /**
   * @param {HTMLElement} box
   * @param {() => void} changed the user has changed what is shown of the same stacks
   * @param {(format: string) => Promise<Blob>} fetched a file that kymod makes
   */
  constructor(box, changed, fetched) {
    const { parts, whole, box: graphBox } = flameParts("All stacks");
    this.changed = changed;
    this.fetched = fetched;
    /** @type {FlameGraph | null} */
    this.graph = null;
    /** @type {Place | null} */
    this.place = null;
    this.restoring = false;
    this.parts = { ...parts, changed: () => this.restoring || this.changed() };
    this.change = element("option", { value: "change" }, "change");
    this.said = element("p", { class: "said" });
    this.quality = element("ul", { class: "quality" });
    this.files = element("p", { class: "files" }, "Save: ", ...["pprof", "folded", "speedscope", "SVG"].map((format) =>
      element("button", { type: "button", onclick: () => this.save(format) }, format)));
    this.fault = element("p", { class: "fault", role: "alert" });
    this.drawn = element("div", { hidden: "" }, this.said, this.quality, graphBox, this.files);
    whole.addEventListener("click", () => this.graph?.whole());
    box.append(this.fault, this.drawn);
    new MutationObserver(() => this.graph?.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  /**
   * @param {KeptProfile} profile
   * @param {Place} place
   */
  show(profile, place) {
    this.fault.textContent = "";
    this.drawn.hidden = false;
    const { comparison } = profile;
    if (comparison !== undefined) {
      const { before_unix_ns: from, before_to_unix_ns: to } = profile;
      if (from !== undefined && to !== undefined) comparison.a.path = `${localTime(from / 1e6 / MINUTE_MS)} to ${localTime(to / 1e6 / MINUTE_MS)}`;
      comparison.b.path = `${localTime(place.from)} to ${localTime(place.to)}`;
      if (this.change.parentElement === null) this.parts.colour.prepend(this.change);
    } else {
      this.change.remove();
    }
    this.said.textContent = summaryOf(profile);
    this.quality.replaceChildren(...(comparison === undefined ? missingIn(profile).map((text) => element("li", { class: "warning" }, text)) :
      compared(comparison, profile).map((text) => element("li", { class: "said" }, text))));
    this.parts.hottest.setAttribute("aria-label", comparison === undefined ? "Hottest functions" : "Functions whose share changed");
    this.prepare(place);
    this.restoring = true;
    if (this.graph === null) this.graph = new FlameGraph(this.parts, profile, profile.sorted_by_total, comparison);
    else this.graph.show(profile, comparison);
    this.restoring = false;
    this.restore(place);
  }

  // The fields, before the graph reads them.
  /** @param {Place} place */
  prepare(place) {
    this.place = place;
    this.parts.search.value = place.search;
    const { colour } = this.parts;
    colour.value = place.colour;
    if (colour.selectedIndex < 0) colour.selectedIndex = 0;
  }

  /**
   * Shows the same stacks as the address says.
   * @param {Place} place
   */
  restore(place) {
    this.prepare(place);
    if (this.graph === null || this.drawn.hidden) return;
    this.restoring = true;
    this.graph.chooseColours();
    this.graph.open(place.zoom, place.inverted);
    if (place.around !== "") this.graph.openAround(place.around);
    this.graph.find();
    this.restoring = false;
  }

  // What of the address is about the graph.
  state() {
    const { search, colour } = this.parts;
    const inverted = this.graph?.zoom.inverted ?? false;
    return { search: search.value, colour: colour.selectedIndex === 0 ? "" : colour.value, inverted, zoom: this.graph?.path() ?? [], around: this.graph?.aroundMark() ?? "" };
  }

  /** @param {string} message */
  fail(message) {
    this.fault.textContent = message;
    this.drawn.hidden = true;
  }

  /** @param {string} format */
  async save(format) {
    const { graph, place } = this;
    if (graph === null || place === null) return;
    const name = `${place.service || "all"}-${localTime(place.from)}`.replace(/[^\w.-]+/g, "-");
    /** @type {Record<string, [string, () => Blob | Promise<Blob>]>} */
    const files = {
      pprof: ["pb.gz", () => this.fetched("pprof")], folded: ["folded", () => this.fetched("folded")],
      speedscope: ["speedscope.json", () => new Blob([JSON.stringify(speedscopeOf(graph, name))])],
      SVG: ["svg", () => new Blob([svgOf(graph)], { type: "image/svg+xml" })],
    };
    const [ending, made] = files[format];
    try {
      save(await made(), `${name}.${ending}`);
    } catch (error) {
      this.fault.textContent = `${format}: ${error instanceof Error ? error.message : error}`;
    }
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (this.graph !== null && !this.drawn.hidden && this.graph.pressed(event)) event.stopPropagation();
  }
}
