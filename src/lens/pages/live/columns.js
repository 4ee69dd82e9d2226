// The list of metrics, of which the user chooses those that are shown. The browser keeps the choice.
import { byId, element, fieldById } from "../dom.js";
import { state } from "./state.js";

const KEPT = "kymo-metrics";
const FIRST = ["image_written_bytes", "request_done_bytes", "request_remaining_bytes", "processes_managed",
  "profiler_rows", "profiler_missed_ticks", "frozen_time_us"];

// Takes the choice of an earlier visit.
export function loadChoice() {
  if (state.chosen.size > 0) return;
  state.chosen = new Set(JSON.parse(localStorage.getItem(KEPT) ?? "null") || FIRST);
}

export function choose() {
  // The number of a state says nothing: the bands have the phases' names.
  state.shown = state.columns.filter((column) => state.chosen.has(column.name) && column.name !== "phase");
  byId("chosen").textContent = `${state.shown.length} of ${state.columns.length}`;
  localStorage.setItem(KEPT, JSON.stringify([...state.chosen]));
}

/**
 * Lists the columns whose name has the text of the filter.
 * @param {() => void} changed called when the user changes the choice
 */
export function list(changed) {
  const part = fieldById("filter").value.toLowerCase();
  const columns = state.columns.filter((column) => column.name.toLowerCase().includes(part));
  byId("columns").replaceChildren(...columns.map((column) => {
    const box = element("input", { type: "checkbox", ...(state.chosen.has(column.name) ? { checked: "" } : {}) });
    box.addEventListener("change", () => {
      if (box.checked) state.chosen.add(column.name);
      else state.chosen.delete(column.name);
      choose();
      changed();
    });
    return element("li", {}, element("label", { title: column.help }, box, " " + column.name));
  }));
}
