// The labels of a timeline's axis.
import { element } from "./dom.js";
import { instants } from "./format.js";

const LABEL_WIDTH = 84; // pixels

/**
 * Steps of 1, 2 or 5 times a power of ten.
 * @param {number} least
 */
export function stepOf(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10);
}

/**
 * Keeps the labels within the box: one that does not fit behind its tick stands before it, or is left out if
 * that is taken.
 * @param {HTMLElement} box
 */
function fitLabels(box) {
  let free = 0;
  for (const tick of box.querySelectorAll("span")) {
    const [begin, width] = [tick.offsetLeft, tick.offsetWidth];
    if (begin + width <= box.clientWidth) {
      free = begin + width;
    } else if (begin - width >= free) {
      tick.classList.add("before");
    } else {
      tick.textContent = "";
    }
  }
}

/**
 * @param {HTMLElement} box
 * @param {number} from
 * @param {number} to
 * @param {number} origin which is 0 on the axis
 */
export function drawTicks(box, from, to, origin) {
  const step = stepOf(Math.max(((to - from) * LABEL_WIDTH) / Math.max(box.clientWidth, LABEL_WIDTH), 1));
  /** @type {number[]} */
  const ticks = [];
  for (let k = Math.ceil((from - origin) / step); k * step + origin <= to; ++k) ticks.push(k * step);
  const labels = instants(ticks, step);
  box.replaceChildren(...ticks.map((tick, i) => element("span", { class: "tick", style: `left:${((100 * (tick + origin - from)) / (to - from)).toFixed(3)}%` }, labels[i])));
  fitLabels(box);
}
