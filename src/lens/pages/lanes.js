// The lanes of a timeline: which columns each draws, and how its values are written. A lane whose columns are absent,
// or never changed, is left out.
import { bytes, cores, scaled } from "./format.js";
import { histogramLanes } from "./histograms.js";

/** @import { Heat } from "./heat.js" */
/** @import { Points } from "./points.js" */
/** @import { SummedColumn } from "./types.d.ts" */

/**
 * @typedef {object} Part a line or an area of a lane
 * @property {string} name
 * @property {string} color
 * @property {string[]} columns that it needs
 * @property {(points: Points, i: number) => number | null} value
 * @property {(points: Points, from: number, to: number) => number | null} [over] between two rows (default: the mean of `value` over the time)
 * @property {(value: number) => string} write
 * @property {"y" | "z"} [scale] z: its own scale
 * @property {boolean} [area]
 *
 * @typedef {object} LaneKind
 * @property {string} title
 * @property {string} [of] what the height of the lane is
 * @property {boolean} [stacked]
 * @property {number} [least] the least upper end of its scale
 * @property {number} height
 * @property {Heat} [heat] lies behind the lines, which stand where it places their values
 * @property {Part[]} parts
 */

const BLUE = "#3b82f6";
const ORANGE = "#e0862b";
const GREEN = "#2e9e6b";
const VIOLET = "#8b5cf6";
const TEAL = "#2a9db0";
const GREY = "#9aa3af";
const RED = "#e5484d";

/** @type {[string, number][]} */
const BYTE_RATES = [[" B/s", 1], [" kB/s", 1e3], [" MB/s", 1e6], [" GB/s", 1e9]];
/** @param {number} value */
const byteRate = (value) => scaled(value, BYTE_RATES);
/** @param {number} value */
const count = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(1));

// Some files of the kernel are read for every tenth row only.
const SLOW_ROWS = 20;

/**
 * The lanes that these columns make.
 * @param {SummedColumn[]} columns that changed
 * @param {number} interval of the rows, in nanoseconds
 * @returns {LaneKind[]}
 */
export function lanesOf(columns, interval) {
  const names = new Set(columns.map((column) => column.name));
  /** @param {string} name */
  const has = (name) => names.has(name);
  const slow = interval * SLOW_ROWS;
  /** @type {(name: string, column: string, color: string, more?: Partial<Part>, window?: number) => Part} */
  const rate = (name, column, color, more = {}, window = undefined) => ({ name, color, columns: [column], value: (points, i) => points.rate(column, i, window), write: byteRate, ...more });
  /** @type {(name: string, column: string, color: string, window?: number) => Part} */
  const time = (name, column, color, window = undefined) => rate(name, column, color, { area: true, write: cores,
    value: (points, i) => shareOf(points.rate(column, i, window)) }, window);
  /** @type {(name: string, column: string, color: string, more?: Partial<Part>) => Part} */
  const gauge = (name, column, color, more = {}) => ({ name, color, columns: [column], value: (points, i) => points.value(column, i), write: bytes, ...more });

  const running = has("criu_run_ns") ? "criu_run_ns" : "criu_cpu_ns";
  const waiting = has("criu_runnable_ns") ? "criu_runnable_ns" : "criu_cpu_wait_ns";
  const criu = [time("running", running, BLUE), time("waits for a CPU", waiting, RED), ...blocked(columns, has, time)].filter((part) => part.columns.some(has));
  /** @type {LaneKind[]} */
  const kinds = [
    { title: "CRIU’s time", of: "of one core’s time", stacked: true, least: 1, height: 64, parts: [...criu, ...restOf(criu, has)] },
    { title: "Bytes", of: "per second", height: 52, parts: [
      rate("pages moved", "memory_moved_bytes", ORANGE), rate("CRIU wrote", "criu_written_bytes", BLUE), rate("CRIU read", "criu_read_bytes", VIOLET),
      rate("images", "image_written_bytes", TEAL)] },
    { title: "Image disk", of: "per second, and requests in flight", height: 52, parts: [
      rate("written", "disk_written_bytes", TEAL, { area: true }, slow), rate("read", "disk_read_bytes", BLUE, { area: true }, slow),
      gauge("in flight", "disk_in_flight", VIOLET, { scale: "z", write: count })] },
    { title: "Dirty pages", of: "not yet on a disk", height: 42, parts: [gauge("dirty", "machine_dirty_bytes", VIOLET), gauge("being written", "machine_writeback_bytes", ORANGE)] },
    { title: "CPU of the machine", of: "in cores", stacked: true, least: 1, height: 46, parts: [
      time("CRIU", running, BLUE), time("target", "target_cpu_ns", GREEN), has("machine_other_cpu_ns") ? time("others", "machine_other_cpu_ns", GREY, slow) : others(running, slow), time("stolen", "machine_steal_ns", RED, slow)] },
    { title: "Memory", of: "resident, and free on the machine", height: 42, parts: [gauge("CRIU", "criu_resident_bytes", BLUE), gauge("target", "target_resident_bytes", GREEN),
      gauge("free", "machine_free_bytes", GREY, { scale: "z" })] },
  ];
  const made = kinds.map((kind) => ({ ...kind, parts: kind.parts.filter((part) => part.columns.every(has)).slice(0, 5) })).filter((kind) => kind.parts.length > 0);
  return [...made, ...histogramLanes(columns, slow)];
}

/** @param {number | null} rate nanoseconds per second */
function shareOf(rate) {
  return rate === null ? null : rate / 1e9;
}

/** @type {Record<string, string>} */
const WHY_OFF = { criu_off_disk_ns: "disk", criu_off_socket_ns: "target (socket)", criu_off_pipe_ns: "pipe", criu_off_process_ns: "process", criu_off_fault_ns: "page fault",
  criu_off_other_ns: "other call", criu_off_stopped_ns: "stopped" };

/**
 * The time for which CRIU was blocked: by reason if the columns tell it, else for the disk.
 * @param {SummedColumn[]} columns
 * @param {(name: string) => boolean} has
 * @param {(name: string, column: string, color: string) => Part} time
 */
function blocked(columns, has, time) {
  const reasons = columns.filter((column) => WHY_OFF[column.name] !== undefined);
  if (reasons.length === 0) return has("criu_disk_wait_ns") ? [time("disk", "criu_disk_wait_ns", ORANGE)] : [];
  const colors = [TEAL, VIOLET, GREEN, GREY];
  const longest = reasons.sort((a, b) => b.last - b.first - (a.last - a.first)).slice(0, 3);
  return longest.map((column, i) => {
    const reason = WHY_OFF[column.name];
    return time(reason, column.name, reason === "disk" ? ORANGE : colors[i % colors.length]);
  });
}

/**
 * What is left of one core's time while CRIU runs: it waited for something else.
 * @param {Part[]} parts
 * @param {(name: string) => boolean} has
 * @returns {Part[]}
 */
function restOf(parts, has) {
  if (!has("criu_tasks") || parts.length === 0) return [];
  return [{ name: "other", color: GREY, columns: ["criu_tasks"], area: true, write: cores, value(points, i) {
    if (!points.value("criu_tasks", i)) return 0;
    return Math.max(0, 1 - parts.reduce((sum, part) => sum + (part.value(points, i) ?? 0), 0));
  } }];
}

/**
 * The CPU time of the machine that neither CRIU nor the target used.
 * @param {string} criu the column of CRIU's CPU time
 * @param {number} window
 * @returns {Part}
 */
function others(criu, window) {
  return { name: "others", color: GREY, columns: ["machine_cpu_ns", criu], area: true, write: cores, value(points, i) {
    const all = points.rate("machine_cpu_ns", i, window);
    if (all === null) return null;
    return Math.max(0, all - (points.rate(criu, i, window) ?? 0) - (points.rate("target_cpu_ns", i, window) ?? 0)) / 1e9;
  } };
}

// The states of the target by name, from the column with the most tasks in it.
/** @type {[string, string, string][]} */
const STATES = [["target_running", "runs", GREEN], ["target_stopped", "stands still", RED], ["target_traced", "stands still", RED], ["target_gone", "is gone", GREY]];

/** @typedef {{ name: string, color: string, begin_ns: number, end_ns: number }} Stretch */

/** @param {SummedColumn[]} columns */
export const stateColumns = (columns) => STATES.map(([column]) => column).filter((name) => columns.some((one) => one.name === name));

/**
 * The target's states, each with its time.
 * @param {Points} points
 * @param {Map<string, number>} constants values of the columns that never changed
 * @param {[number, number]} held when CRIU held the target
 * @returns {Stretch[]}
 */
export function statesOf(points, constants, held) {
  /** @type {Stretch[]} */
  const stretches = [];
  points.times.forEach((t, i) => {
    let most = 0;
    let state = STATES[3];
    for (const one of STATES) {
      const tasks = points.value(one[0], i) ?? constants.get(one[0]) ?? 0;
      if (tasks > most) [most, state] = [tasks, one];
    }
    if (state === STATES[0] && t >= held[0] && t <= held[1]) state = STATES[2];
    const last = stretches[stretches.length - 1];
    if (last) last.end_ns = t;
    if (most > 0 && last?.name !== state[1]) stretches.push({ name: state[1], color: state[2], begin_ns: t, end_ns: t });
  });
  return stretches;
}

/**
 * The same from the phases, for a recording without these columns.
 * @param {import("./types.d.ts").Phase[]} phases
 * @returns {Stretch[]}
 */
export function statesOfPhases(phases) {
  if (!phases.some((phase) => phase.frozen)) return [];
  /** @type {Stretch[]} */
  const stretches = [];
  for (const phase of phases) {
    const [name, color] = phase.frozen ? ["stands still", RED] : ["", ""];
    const last = stretches[stretches.length - 1];
    if (last && last.name === name) last.end_ns = phase.end_ns;
    else stretches.push({ name, color, begin_ns: phase.begin_ns, end_ns: phase.end_ns });
  }
  return stretches.filter((stretch) => stretch.name !== "");
}
