// What kymod stores: jobs and checkpoints, one checkpoint, a comparison of two, the history of a
// job. All data from kymod is set as text, never as markup.
import { COLORS } from "./charts.js";
import { byId, element, fold, table } from "./dom.js";
import { bytes, cores, duration, messageOf, percent, written } from "./format.js";
import { ratePerSecond } from "./lines.js";
import { kymod } from "./live/state.js";
import { phaseBar } from "./phase_bar.js";
import { verdictBox } from "./verdict.js";

/** @import { Checkpoint, Comparison, History, Job, LogPhases, Now, Recorded, Scope, WholeCheckpoint } from "./types.d.ts" */

const box = byId("stored");
/** @type {Set<string>} */
const ticked = new Set(); // ids of checkpoints, in the order in which the user ticked them

/** @type {(text: string, hash: string) => HTMLElement} */
const link = (text, hash) => element("a", { href: "#" + hash }, text);
/** @param {number} unix_ns */
const when = (unix_ns) => new Date(unix_ns / 1e6).toLocaleString("sv");
/** @param {number} us */
const micros = (us) => duration(us * 1000);
/** @type {(name: string, value: string) => string} */
const part = (name, value) => `${name}=${encodeURIComponent(value)}`;

/** @type {(title: string, ...children: (Node | string)[]) => HTMLElement} */
const section = (title, ...children) => element("section", {}, element("h2", {}, title), ...children);

// --- jobs and checkpoints ---------------------------------------------------------------------

/** @param {Job} job */
function ending(job) {
  if (job.exit_code !== null) return `exited with status ${job.exit_code}`;
  return job.exit_signal === null ? "" : `was ended by signal ${job.exit_signal}`;
}

/** @param {string} state */
const stateMark = (state) => element("span", { class: `state ${state}` }, state);

const NOW_EVERY_MS = 2000;

/**
 * How many cores were used: nanoseconds of CPU time per second. null: not known yet.
 * @type {(after: number, before: number | undefined, passedNs: number) => number | null}
 */
const coresOf = (after, before, passedNs) => (before === undefined || passedNs <= 0 ? null : ratePerSecond(Math.max(0, after - before), passedNs) / 1e9);
/** @param {number | null} used */
const coresText = (used) => (used === null ? "…" : cores(used) + (used > 1.005 ? "" : " of a core"));

/**
 * Shows what the machine and the running jobs do, again and again, as long as `line` is on the page.
 * @param {HTMLElement} line
 * @param {Map<string, HTMLElement>} cells of jobs, by name
 */
async function showNow(line, cells) {
  /** @type {Now | null} */
  let before = null;
  for (let first = true; first || line.isConnected; first = false) {
    /** @type {Now} */
    let now;
    try {
      now = await kymod.get("/api/now");
    } catch {
      return; // what answers the page says so elsewhere
    }
    const passedNs = before ? now.time_ns - before.time_ns : 0;
    const was = before;
    const of = (/** @type {string} */ name) => coresOf(now.machine[name], was?.machine[name], passedNs);
    const stolen = of("machine_steal_ns") ?? 0;
    line.textContent = `This machine now: ${of("machine_cpu_ns")?.toFixed(1) ?? "…"} of ${now.cpus} cores in use` + (stolen < 0.05 ? "" : `, ${stolen.toFixed(1)} stolen by the hypervisor`) +
      `; ${bytes(now.machine.machine_free_bytes)} of memory free; ${bytes(now.machine.machine_dirty_bytes + now.machine.machine_writeback_bytes)} not yet on a disk`;
    for (const [name, cell] of cells) {
      const job = now.jobs[name];
      cell.textContent = !job ? "–" : `${job.stopped > 0 ? "stands still" : coresText(coresOf(job.cpu_ns, was?.jobs[name]?.cpu_ns, passedNs))}, ${bytes(job.resident_bytes)}`;
    }
    before = now;
    await new Promise((done) => setTimeout(done, was ? NOW_EVERY_MS : 500));
  }
}

/**
 * @param {Job[]} jobs
 * @param {Checkpoint[]} checkpoints oldest first
 * @param {Map<string, HTMLElement>} cells is filled with those that show what a job does now
 */
function jobsTable(jobs, checkpoints, cells) {
  if (jobs.length === 0) return element("p", {}, "There is no job: kymo run starts one.");
  return table(["job", "state:", "pid", "now:", "begun:", "last dump:", "stood still", "where the time went:", "in words:", "command:"], jobs.map((job) => {
    const own = checkpoints.filter((one) => one.job === job.name);
    const last = own[own.length - 1];
    const now = element("span", { class: "now" }, job.state === "running" ? "…" : "–");
    if (job.state === "running") cells.set(job.name, now);
    const words = [job.held, job.pending, ending(job), job.reason && `its newest dump failed: ${job.reason}`].filter(Boolean).join("; ") || (last && last.verdict) || "";
    return [link(job.name, part("history", job.name)), stateMark(job.held && (!job.frozen || job.held.startsWith("held by")) ? "held" : job.frozen ? "frozen" : job.state), job.state === "running" ? String(job.pid) : "–", now, when(job.created_unix_ns),
      last ? link(when(last.created_unix_ns), part("checkpoint", last.id)) : "–", last && last.stood_still_ns ? duration(last.stood_still_ns) : "–",
      last ? phaseBar(last.phases, last.state === "failed") : "", element("span", { class: job.reason ? "why fault" : "why" }, words), element("span", { class: "why" }, job.command.join(" "))];
  }), { id: "jobs" });
}

/** @param {Checkpoint[]} checkpoints */
function checkpointsTable(checkpoints) {
  if (checkpoints.length === 0) return element("p", {}, "There is no checkpoint: kymo dump makes one.");
  const compare = element("button", { type: "button", id: "compare", disabled: "" }, "compare the two that are ticked");
  compare.addEventListener("click", () => (location.hash = part("comparison", [...ticked].join(","))));
  const rows = checkpoints.slice().reverse().map((one) => {
    const tick = element("input", { type: "checkbox", "aria-label": `Compare ${one.id}`, ...(ticked.has(one.id) ? { checked: "" } : {}) });
    tick.addEventListener("change", () => {
      if (tick.checked) ticked.add(one.id);
      else ticked.delete(one.id);
      compare.disabled = ticked.size !== 2;
    });
    return [tick, link(one.id, part("checkpoint", one.id)), one.job || `process ${one.pid}`, when(one.created_unix_ns), one.state,
      one.image_bytes ? bytes(one.image_bytes) : "–", one.duration_ns ? duration(one.duration_ns) : "–",
      one.stood_still_ns ? duration(one.stood_still_ns) : "–", phaseBar(one.phases, one.state === "failed"),
      element("span", { class: one.reason ? "why fault" : "why" }, one.reason || one.verdict || "")];
  });
  compare.disabled = ticked.size !== 2;
  return element("div", {}, compare, table(["", "checkpoint:", "of:", "begun:", "state:", "images", "took", "stood still", "where the time went:", "in words:"], rows, { id: "checkpoints" }));
}

async function overview() {
  /** @type {[Job[], Checkpoint[]]} */
  const [jobs, checkpoints] = await Promise.all([kymod.get("/api/jobs"), kymod.get("/api/checkpoints")]);
  for (const id of ticked) if (!checkpoints.some((one) => one.id === id)) ticked.delete(id);
  /** @type {Map<string, HTMLElement>} */
  const cells = new Map();
  const line = element("p", { id: "now" }, "…");
  const listed = jobsTable(jobs, checkpoints, cells);
  void showNow(line, cells);
  return [line, section("Jobs", listed), section("Checkpoints", checkpointsTable(checkpoints))];
}

// --- one checkpoint ---------------------------------------------------------------------------

/**
 * Draws a timing tree from top to bottom. The width of a part is its duration; its own parts are
 * below it.
 * @param {Scope} tree
 */
function icicle(tree) {
  const whole = tree.duration_ns || 1;
  const inner = element("div", { class: "icicle", role: "img", "aria-label": "Timing tree" });
  let depths = 1;
  /** @type {(node: Scope, depth: number, at: number) => number} */
  const place = (node, depth, at) => {
    const parts = node.components || [];
    const took = node.duration_ns || parts.reduce((sum, one) => sum + (one.duration_ns || 0), 0);
    depths = Math.max(depths, depth + 1);
    const text = `${node.name} ${duration(took)}${node.parallel ? " (parallel)" : ""}${node.redundant ? " (said elsewhere)" : ""}`;
    inner.append(element("div", { class: "scope" + (node.error ? " failed" : ""), title: text + (node.error ? `: ${node.error}` : ""), tabindex: "0",
      style: `left:${(100 * at) / whole}%;width:${(100 * took) / whole}%;top:${depth * 1.5}rem;border-color:${COLORS[depth % COLORS.length]}` }, text));
    let next = at;
    for (const one of parts) {
      const begun = one.start_ns !== undefined && tree.start_ns !== undefined ? one.start_ns - tree.start_ns : next;
      next = begun + place(one, depth + 1, begun);
    }
    return took;
  };
  place(tree, 0, 0);
  inner.style.height = `${depths * 1.5}rem`;
  return inner;
}

/** @param {LogPhases} phases */
function phasesTable(phases) {
  /** @param {number} us */
  const share = (us) => percent(us / (phases.total_us || 1));
  /** @param {number} us */
  const bar = (us) => element("span", { class: "track" }, element("span", { class: "bar", style: `width:${(12 * us) / (phases.total_us || 1)}rem` }));
  return table(["phase", "took", "share", ":", "evidence:"], phases.phases.map((one) => [
    one.name, micros(one.duration_us), share(one.duration_us), bar(one.duration_us), one.evidence]));
}

/** @param {Record<string, number>} stats */
function figures(stats) {
  return table(["CRIU says", ""], Object.entries(stats).map(([name, value]) => [
    name, name.endsWith("_us") || name.endsWith("_time") ? micros(value) : value.toLocaleString("en")]));
}

/**
 * @param {string} id of the checkpoint
 * @param {Recorded} recording
 */
function recordingBox(id, recording) {
  const frame = element("iframe", { title: `Recording ${recording.name}`, loading: "lazy",
    src: `/recording?${new URLSearchParams({ checkpoint: id, name: recording.name, token: kymod.token })}` });
  // The frame gets the height of its content.
  frame.addEventListener("load", () => {
    const inner = /** @type {Document} */ (frame.contentDocument);
    const fit = () => (frame.style.height = `${inner.documentElement.scrollHeight + 8}px`);
    new ResizeObserver(fit).observe(inner.body);
    fit();
  });
  return frame;
}

/** @param {string} id */
async function checkpoint(id) {
  /** @type {WholeCheckpoint} */
  const all = await kymod.get("/api/checkpoint", { id });
  const one = all.checkpoint;
  /** @type {HTMLElement[]} */
  const parts = [element("h2", {}, `Checkpoint ${one.id} of ${one.job || `process ${one.pid}`}`),
    element("p", {}, [one.state, when(one.created_unix_ns), one.image_bytes ? bytes(one.image_bytes) : "", one.duration_ns ? duration(one.duration_ns) : "",
      one.directory].filter(Boolean).join(" · "))];
  if (one.error) parts.push(element("p", { class: "fault" }, one.error));
  if (all.stats_error) parts.push(element("p", { class: "fault" }, all.stats_error));
  for (const recording of all.recordings) {
    parts.push(section(`The ${recording.name}`, recording.error ? element("p", { class: "fault" }, recording.error) : recordingBox(one.id, recording)));
  }
  parts.push(...memoryOf(all.stats), ...foldedParts(all));
  return parts;
}

const MOST_MAPPINGS = 5;

/** @param {WholeCheckpoint["stats"]} stats */
function memoryOf(stats) {
  const mappings = ((stats && stats.processes) || []).flatMap((process) => process.mappings.map((mapping) => ({ ...mapping, pid: process.pid })));
  if (mappings.length === 0) return [];
  mappings.sort((a, b) => b.pages - a.pages);
  const whole = mappings.reduce((sum, mapping) => sum + mapping.pages, 0) || 1;
  /** @type {(name: string, pages: number) => (Node | string)[]} */
  const row = (name, pages) => [element("span", { class: "why" }, name), pages.toLocaleString("en"), percent(pages / whole),
    element("span", { class: "track" }, element("span", { class: "bar", style: `width:${(12 * pages) / whole}rem` }))];
  const rest = mappings.slice(MOST_MAPPINGS);
  const rows = mappings.slice(0, MOST_MAPPINGS).map((mapping) => row(`${mapping.name || "no name"}, process ${mapping.pid}`, mapping.pages));
  if (rest.length > 0) rows.push(row(`${rest.length} more`, rest.reduce((sum, mapping) => sum + mapping.pages, 0)));
  return [section("Whose memory", table(["mapping", "pages", "share", ":"], rows))];
}

/** @param {WholeCheckpoint} all */
function foldedParts(all) {
  /** @type {HTMLElement[]} */
  const parts = [];
  for (const recording of all.recordings) {
    const { request, timing } = recording.about || {};
    if (timing) parts.push(fold(`Where the ${request || recording.name}’s time went`, duration(timing.duration_ns || 0), icicle(timing)));
  }
  const stats = all.stats || {};
  for (const kind of /** @type {const} */ (["dump", "restore"])) {
    const phases = stats[`${kind}_phases`];
    const sums = stats[kind];
    if (phases) parts.push(fold(`Phases of the ${kind}, from CRIU’s log`, micros(phases.total_us), phasesTable(phases)));
    if (sums) parts.push(fold(`Statistics of the ${kind}`, `${Object.keys(sums).length} figures`, figures(sums)));
  }
  const processes = stats.processes || [];
  if (processes.length > 0) {
    parts.push(fold("Pages of each process", `${processes.length} processes`, table(["process", "command:", "pages", "largest mapping:", "pages"], processes.map((process) => {
      const [largest] = process.mappings.slice().sort((a, b) => b.pages - a.pages);
      return [String(process.pid), process.command, process.pages.toLocaleString("en"), largest ? largest.name : "", largest ? largest.pages.toLocaleString("en") : ""];
    }))));
  }
  for (const note of stats.notes || []) parts.push(element("p", {}, note));
  return parts;
}

// --- two checkpoints, and a job's history -----------------------------------------------------

/** @param {string} ids */
async function comparison(ids) {
  const [before, after] = ids.split(",");
  /** @type {Comparison} */
  const { lines, differences, notes } = await kymod.get("/api/comparison", { before, after });
  /** @type {(one: Comparison["differences"][number], at: "a" | "b") => string} */
  const value = (one, at) => (one[at] === null ? "–" : written(one[at], one.unit, one.per_second));
  const rows = differences.map((one) => {
    if (one.a === null || one.b === null) return [`${one.group}: ${one.name}`, value(one, "a"), value(one, "b"), one.a === null ? "only in B" : "only in A"];
    const change = element("span", {}, (one.change > 0 ? "+" : "") + (one.share === null ? written(one.change, one.unit, one.per_second) : percent(one.share)));
    return [`${one.group}: ${one.name}`, value(one, "a"), value(one, "b"), change];
  });
  return [section("Comparison, what changed most first", element("p", {}, "A ", link(before, part("checkpoint", before)), " · B ", link(after || "", part("checkpoint", after || ""))), verdictBox({ lines }) ?? "", ...notes.map((note) => element("p", {}, note)),
    rows.length === 0 ? element("p", {}, "There is no difference.") : table(["what", "A", "B", "change"], rows, { id: "differences" }))];
}

/** @type {Record<string, ["duration_ns" | "stood_still_ns" | "image_bytes", string]>} */
const METRICS = { duration: ["duration_ns", "nanoseconds"], frozen: ["stood_still_ns", "nanoseconds"], bytes: ["image_bytes", "bytes"] };

/**
 * A bar for each run, the newest at the right, and a line at each lasting change.
 * @param {History} history
 * @param {"duration_ns" | "stood_still_ns" | "image_bytes"} field
 * @param {string} unit
 */
function trend(history, field, unit) {
  const runs = history.runs.filter((run) => !run.error);
  const most = Math.max(...runs.map((run) => run[field] || 0), 1);
  const bars = element("div", { class: "trend", role: "img", "aria-label": "Runs, oldest first" });
  runs.forEach((run) => {
    const change = history.changes.find((one) => one.checkpoint === run.checkpoint);
    bars.append(element("a", { href: "#" + part("checkpoint", run.checkpoint), class: (change ? (change.worse ? "worse " : "better ") : "") + (run.cold ? "cold" : ""),
      title: `${when(run.created_unix_ns)}: ${written(run[field], unit)}${run.warmth ? ", " + run.warmth : ""}`, style: `height:${(100 * (run[field] || 0)) / most}%` }));
  });
  return bars;
}

/** @param {number | null} time_ns null: not known */
const still = (time_ns) => (time_ns === null ? "–" : duration(time_ns));

/**
 * @param {string} job
 * @param {URLSearchParams} options
 */
async function history(job, options) {
  const kind = options.get("kind") || "dumps";
  const asked = options.get("metric") ?? "";
  const metric = asked in METRICS ? asked : "duration";
  /** @type {History} */
  const all = await kymod.get("/api/history", { job, kind, metric });
  const [field, unit] = METRICS[metric];
  /** @type {(name: "kind" | "metric", values: string[], chosen: string) => HTMLElement} */
  const choice = (name, values, chosen) => element("span", { class: "choice" }, ...values.map((value) => {
    const made = link(value, [part("history", job), part("kind", name === "kind" ? value : kind), part("metric", name === "metric" ? value : metric)].join("&"));
    if (value === chosen) made.setAttribute("aria-current", "true");
    return made;
  }));
  /** @type {HTMLElement[]} */
  const parts = [element("h2", {}, `History of ${all.job}`), element("p", {}, choice("kind", ["dumps", "restores"], kind), choice("metric", Object.keys(METRICS), metric))];
  if (all.runs.length === 0) return [...parts, element("p", {}, `There are no ${kind} yet.`)];
  parts.push(trend(all, field, unit));
  for (const change of all.changes) {
    const because = change.because ?? [];
    parts.push(element("p", { class: change.worse ? "fault" : "" }, `${change.worse ? "Worse" : "Better"} from `, link(change.checkpoint, part("checkpoint", change.checkpoint)),
      ` on (${when(change.created_unix_ns)}): ${change.ratio.toFixed(2)} times, p = ${change.p.toPrecision(2)} by ${change.test}'s test.`),
      ...because.map((line) => element("p", {}, line)));
  }
  if (all.compared.length < all.runs_needed) {
    parts.push(element("p", { id: "no-change" }, `Too few runs to tell a change: ${all.compared.length} of the ${all.runs_needed} that it takes.`));
  } else if (all.changes.length === 0) {
    parts.push(element("p", { id: "no-change" }, "No lasting change is found."));
  }
  parts.push(table(["checkpoint", "begun:", "took", kind === "dumps" ? "stood still" : "away", "images", ":", ":"], all.runs.slice().reverse().map((run) => [
    run.checkpoint ? link(run.checkpoint, part("checkpoint", run.checkpoint)) : "–", when(run.created_unix_ns), duration(run.duration_ns),
    still(kind === "dumps" ? run.stood_still_ns : run.away_ns), bytes(run.image_bytes), run.warmth, run.reason])));
  return parts;
}

// --- choosing the view ------------------------------------------------------------------------

let shown = 0;
async function route() {
  const options = new URLSearchParams(location.hash.slice(1));
  const [[name, value] = ["jobs", ""]] = options;
  /** @type {Record<string, () => Promise<HTMLElement[]>>} */
  const views = { jobs: overview, checkpoint: () => checkpoint(value), comparison: () => comparison(value), history: () => history(value, options) };
  const stored = name in views;
  const shownBox = stored ? "stored" : name === "profiles" ? "profiles" : "live";
  for (const id of ["live", "stored", "profiles"]) byId(id).hidden = id !== shownBox;
  for (const one of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("nav a"))) {
    if (one.hash === (stored ? "#jobs" : `#${shownBox}`)) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  const own = ++shown;
  if (!stored) {
    dispatchEvent(new Event("resize"));
    return;
  }
  /** @type {HTMLElement[]} */
  let parts;
  try {
    parts = await views[name]();
  } catch (error) {
    parts = [element("p", { class: "fault" }, messageOf(error))];
  }
  if (own !== shown) return;
  box.replaceChildren(...parts);
  box.dataset.shown = location.hash;
}

export function wireStored() {
  addEventListener("hashchange", route);
  // A request that has ended appears in the list at once.
  document.addEventListener("kymo-ended", () => ["", "#jobs"].includes(location.hash) && route());
  route();
}
