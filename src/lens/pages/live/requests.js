// The dumps and restores of the live page: a box for each, which goes some time after its end.
import { byId, element } from "../dom.js";
import { bytes, duration } from "../format.js";
import { state } from "./state.js";
import { board } from "./view.js";

/** @import { Request } from "../types.d.ts" */
/** @import { ShownRequest } from "./state.js" */

const KEEP_MS = 20_000;

/** @param {Request} request as it is now */
export function showRequest(request) {
  const known = state.requests.get(request.request_id);
  // The request ended before this page was opened, so it is shown only as bands.
  const early = !known && request.state !== "running" && request.started_unix_ns + request.elapsed_ns < (state.status?.now_unix_ns ?? 0);
  const ended = request.state !== "running" && !early && (!known || known.state === "running");
  const box = known ? known.box : element("article");
  const shown = { ...request, box };
  state.requests.set(request.request_id, shown);
  if (!known && !early) byId("requests").append(box);
  draw(shown);
  if (ended) {
    document.dispatchEvent(new CustomEvent("kymo-ended", { detail: request }));
    setTimeout(() => box.remove(), KEEP_MS);
  }
  board.redraw();
}

// Removes the requests that have ended, when another recording begins with its own clock.
export function removeEnded() {
  for (const [id, request] of state.requests) {
    if (request.state === "running") continue;
    request.box.remove();
    state.requests.delete(id);
  }
}

/** @param {ShownRequest} request */
function draw(request) {
  const running = request.state === "running";
  const what = request.job || (request.pid ? `process ${request.pid}` : "");
  const share = request.bytes_total ? ` of ${bytes(request.bytes_total)}` : "";
  const facts = [
    `${request.kind} of ${what}`, running ? request.phase : request.state,
    request.bytes_done ? bytes(request.bytes_done) + share : "", request.bytes_per_second ? bytes(request.bytes_per_second) + "/s" : "",
    duration(request.elapsed_ns), running && request.remaining_ns !== null ? `${duration(request.remaining_ns)} left` : "",
  ].filter(Boolean);
  const bar = element("progress", { max: "1", "aria-label": "How far it is" });
  if (!running) bar.value = 1;
  else if (request.bytes_total) bar.value = Math.min(request.bytes_done / request.bytes_total, 1);
  const now = request.phases.length - 1;
  const phases = element("ol", {}, ...request.phases.map((phase, i) => element("li", running && i === now ? { "aria-current": "step" } : {},
    phase.name + (phase.end_ns ? ` ${duration(phase.end_ns - phase.begin_ns)}` : ""))));
  request.box.className = `request ${request.state}`;
  request.box.replaceChildren(element("div", {}, facts.join(" · ")), bar, phases, ...(request.error ? [element("p", { class: "fault" }, request.error)] : []));
}
