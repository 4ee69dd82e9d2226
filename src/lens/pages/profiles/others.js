// With what the page compares beside other times: stack profiles of dumps and restores, and files. Their names are set as text.
import { byId, element } from "../dom.js";
import { MINUTE_MS, localTime, otherIn } from "./place.js";

/** @import { ProfileOthers } from "../types.d.ts" */

/** @type {(value: string, text: string) => HTMLElement} */
const option = (value, text) => element("option", { value }, text);

/**
 * Fills the groups of the field. What the address names and the list lacks is listed, too.
 * @param {ProfileOthers} others
 * @param {string} compared
 * @param {string} service
 */
export function showOthers({ checkpoints, files }, compared, service) {
  // The checkpoints of the job that is shown come first.
  const own = checkpoints.filter((one) => service === `job:${one.job}`);
  const sorted = [...own, ...checkpoints.filter((one) => !own.includes(one))];
  const options = {
    "profiles-checkpoints": sorted.map((one) => option(`checkpoint:${one.checkpoint}/${one.recording}`,
      `${one.job || "no job"}: ${one.recording} of ${localTime(one.created_unix_ns / 1e6 / MINUTE_MS)}`)),
    "profiles-files": files.map((name) => option(`file:${name}`, name)),
  };
  const named = otherIn(compared);
  if (named !== null) {
    const [group, text] = "file" in named ? ["profiles-files", named.file] : ["profiles-checkpoints", `${named.checkpoint}: ${named.recording}`];
    const list = options[/** @type {keyof options} */ (group)];
    if (!list.some((one) => one.getAttribute("value") === compared)) list.unshift(option(compared, text));
  }
  for (const [group, list] of Object.entries(options)) {
    byId(group).replaceChildren(...list);
    byId(group).hidden = list.length === 0;
  }
}
