// The connection to kymod: one event stream with the chosen columns, opened again when kymod has
// restarted or another recording has begun.
import { byId } from "../dom.js";
import { duration, messageOf } from "../format.js";
import { choose, list, loadChoice } from "./columns.js";
import { showRecorder } from "./recorder.js";
import { removeEnded, showRequest } from "./requests.js";
import { kymod, state } from "./state.js";
import { Store } from "./store.js";
import { advance, board, foldIdle, showWhole } from "./view.js";

/** @import { Column, Samples, Status } from "../types.d.ts" */

const BACK_NS = "600000000000"; // how far back a stream begins
const RETRY_MS = 1000;
/** @type {AbortController | null} */
let stop = null;

// Opens a stream with the columns that are chosen now, in place of the one before.
export async function connect() {
  if (stop) stop.abort();
  const { signal } = (stop = new AbortController());
  for (;;) {
    try {
      if (await follow(signal)) {
        removeEnded();
        continue;
      }
      if (!signal.aborted) say("the connection to kymod ended: connecting again");
    } catch (error) {
      if (signal.aborted) return;
      const message = messageOf(error);
      say(message === "Failed to fetch" || message === "network error" ? "kymod does not answer: trying again" : message);
    }
    if (signal.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/**
 * Takes the events of one stream, until it ends. True if another recording has begun or the
 * recording has ended.
 * @param {AbortSignal} signal
 */
async function follow(signal) {
  const { recorder } = await begin();
  state.store = new Store(state.shown.length);
  state.past = null;
  board.make();
  byId("idle").children[1].replaceChildren();
  foldIdle();
  if (!recorder.running) showWhole();
  say("");
  let changed = false;
  const parameters = { columns: state.shown.map((column) => column.name).join(","), per_second: /** @type {HTMLSelectElement} */ (byId("detail")).value, back_ns: BACK_NS };
  await kymod.listen("/api/live", parameters, signal, (event, data) => {
    // The status was requested earlier. It is outdated if a recording has ended since then and the
    // next one has begun.
    changed = event === "changed" || (event === "samples" && (data.running !== recorder.running || data.start_unix_ns !== recorder.start_unix_ns));
    if (changed) return false;
    if (event === "samples") take(data);
    else data.forEach(showRequest);
    return true;
  });
  return changed;
}

// Asks what is recorded, and shows it.
async function begin() {
  const first = state.status === null;
  /** @type {[Status, Column[]]} */
  const [status, columns] = await Promise.all([kymod.get("/api/status"), kymod.get("/api/columns")]);
  state.status = status;
  state.columns = columns;
  state.now = status.recorder.now_ns || 0;
  state.first = status.recorder.first_ns || 0;
  byId("to-profiles").hidden = !status.profiles;
  showRecorder();
  loadChoice();
  choose();
  list(connect);
  if (first) showWhole();
  return status;
}

/** @param {Samples} samples */
function take(samples) {
  state.gaps = samples.gaps;
  state.now = Math.max(state.now, samples.now_ns);
  state.store.append(samples);
  foldIdle();
  document.documentElement.dataset.state = "live";
  advance();
}

/** @param {string} trouble shown in place of the status */
function say(trouble) {
  const { status } = state;
  byId("subtitle").className = trouble ? "fault" : "";
  byId("subtitle").textContent = trouble || !status ? trouble
    : `kymod ${status.version} on ${status.host} · ` + (status.recorder.running ? `a row every ${duration(status.recorder.interval_ns)}` : "the recorder is stopped: nothing is recorded");
}
