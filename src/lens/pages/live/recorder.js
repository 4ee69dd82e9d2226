// The recorder's status and its controls: start, stop, settings, snapshot.
import { byId, element, fieldById } from "../dom.js";
import { duration, messageOf } from "../format.js";
import { kymod, state } from "./state.js";

/** @import { Recorder } from "../types.d.ts" */

// The fields that the user has edited and not sent yet. A new status does not overwrite them.
const edited = new Set();

// Shows the status, and enables the controls that are possible now. The others stay readable, with
// the reason.
export function showRecorder() {
  const { status } = state;
  if (status === null) return;
  const { recorder } = status;
  byId("recording").textContent = [recorder.running ? "recording" : "stopped", `a row every ${duration(recorder.interval_ns)}`,
    recorder.log_path || "in memory alone", recorder.start_unix_ns ? `${recorder.ticks_missed.toLocaleString("en")} ticks missed` : ""].filter(Boolean).join(" · ");
  const able = { start: !recorder.running, stop: recorder.running, set: true, snapshot: recorder.running };
  for (const [id, can] of Object.entries(able)) fieldById(id).disabled = !status.controls || !can;
  for (const id of ["rate", "wanted"]) fieldById(id).readOnly = !status.controls;
  if (!edited.has("rate")) fieldById("rate").value = String(recorder.interval_ns / 1000);
  if (!edited.has("wanted")) fieldById("wanted").value = recorder.metrics;
  byId("known").replaceChildren(...["all", ...new Set(state.columns.map((column) => column.metric))].map((name) => element("option", { value: name })));
  if (!status.controls) tell("The page only reads: start kymod with --http-controls, or use kymo recorder and kymo snapshot.");
}

/**
 * @param {string} text
 * @param {boolean} [bad]
 */
function tell(text, bad) {
  byId("controlled").className = bad ? "fault" : "";
  byId("controlled").textContent = text;
}

/**
 * @param {string} action
 * @param {Record<string, string>} parameters
 * @param {() => void} changed
 */
async function control(action, parameters, changed) {
  for (const id of ["start", "stop", "set"]) fieldById(id).disabled = true;
  tell("…");
  try {
    /** @type {Recorder} */
    const recorder = await kymod.post("/api/recorder", { action, ...parameters });
    if (action !== "stop") edited.clear();
    tell(recorder.running ? `recording ${recorder.metrics} every ${duration(recorder.interval_ns)}` + (recorder.log_path ? ` into ${recorder.log_path}` : "")
      : `stopped after ${recorder.rows_written.toLocaleString("en")} rows` + (recorder.log_path ? `, whole in ${recorder.log_path}` : ""));
    changed();
  } catch (error) {
    tell(messageOf(error), true);
    showRecorder();
  }
}

// The settings that the user has changed.
function chosenSettings() {
  /** @type {Record<string, string>} */
  const wish = {};
  const recorder = state.status?.recorder;
  const metrics = fieldById("wanted").value.replace(/\s/g, "");
  const rate = fieldById("rate").value;
  if (recorder && Number(rate) !== recorder.interval_ns / 1000) wish.interval_us = rate;
  if (recorder && metrics !== recorder.metrics) wish.metrics = metrics;
  return wish;
}

// Takes a snapshot: the recorder's last seconds as a recording.
async function snapshot() {
  const taken = byId("taken");
  fieldById("snapshot").disabled = true;
  taken.className = "";
  taken.replaceChildren("writing…");
  try {
    const { name } = await kymod.post("/api/snapshot");
    taken.replaceChildren(element("a", { href: `/recording?${new URLSearchParams({ snapshot: name, token: kymod.token })}`, target: "_blank" }, name));
  } catch (error) {
    taken.className = "fault";
    taken.replaceChildren(messageOf(error));
  }
  showRecorder();
}

/** @param {() => void} changed called when another recording has begun or the recording has ended */
export function wireRecorder(changed) {
  for (const id of ["rate", "wanted"]) byId(id).addEventListener("input", () => edited.add(id));
  byId("start").addEventListener("click", () => control("start", chosenSettings(), changed));
  byId("stop").addEventListener("click", () => control("stop", {}, changed));
  byId("set").addEventListener("click", () => control("set", chosenSettings(), changed));
  byId("snapshot").addEventListener("click", snapshot);
}
