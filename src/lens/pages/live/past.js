// Rows that are older than the points of this page: they are requested when a range shows them.
import { duration, messageOf } from "../format.js";
import { kymod, state } from "./state.js";
import { Store } from "./store.js";

/** @import { Gap, Samples } from "../types.d.ts" */

/**
 * The rows of a range. `span`: how much time a point covers; 0: each row is a point.
 * @typedef {{ from: number, to: number, store: Store, gaps: Gap[], span: number, trouble: string }} Past
 */

const POINTS = 2000;
const MOST_VALUES = 400_000;
let seeking = false;

/**
 * Requests the rows of a range that this page does not have, thinned if the range is long. Only the
 * newest request counts.
 * @param {number} from
 * @param {number} to
 * @param {() => void} arrived
 */
export async function seek(from, to, arrived) {
  const { past, store: own } = state;
  const length = to - from;
  const shown = past && past.from <= from && past.to >= to && (past.span === 0 || past.to - past.from <= 3 * length);
  if (shown || seeking) return;
  const wanted = {
    from: Math.floor(Math.max(from - length / 2, state.first, 0)),
    to: Math.ceil(Math.min(to + length / 2, own.first(), state.now + 1)),
  };
  if (wanted.from >= wanted.to || state.shown.length === 0) return;
  if (past && past.from === wanted.from && past.to === wanted.to) return;
  seeking = true;
  /** @type {Past} */
  const made = { ...wanted, store: new Store(state.shown.length), gaps: [], span: 0, trouble: "" };
  try {
    /** @type {Samples} */
    const samples = await kymod.get("/api/past", { columns: state.shown.map((column) => column.name).join(","), from_ns: wanted.from, to_ns: wanted.to,
      points: Math.min(POINTS, Math.floor(MOST_VALUES / state.shown.length)) });
    made.store.append(samples);
    Object.assign(made, { gaps: samples.gaps, span: samples.span_ns, trouble: samples.left_out.join("; ") });
  } catch (error) {
    made.trouble = messageOf(error);
  }
  seeking = false;
  if (own === state.store) state.past = made; // otherwise the columns or the recording changed
  arrived();
}

/**
 * The message about the part of a range that is older than this page's points.
 * @param {number} from
 */
export function before(from) {
  const { past } = state;
  if (from >= state.store.first() || state.first >= state.store.first()) return "";
  if (!past) return " · looking for what was before";
  return past.trouble ? ` · before: ${past.trouble}` : past.span ? ` · before: lowest to highest of each ${duration(past.span)}` : "";
}
