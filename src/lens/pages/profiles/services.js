// The services of a range, the hottest first. Their names are set as text, never as markup.
import { element } from "../dom.js";
import { amount } from "../weights.js";

/** @import { FlameKind, KeptProfiles } from "../types.d.ts" */

const SEARCHED_FROM = 8; // fewer services need no search

export class Services {
  /**
   * @param {HTMLElement} box
   * @param {(service: string) => void} choose
   */
  constructor(box, choose) {
    this.choose = choose;
    /** @type {FlameKind["unit"]} */
    this.unit = "ns";
    this.search = element("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "part of a service’s name", "aria-label": "Part of a service’s name" });
    this.list = element("div", { class: "services", role: "group", "aria-label": "Services" });
    this.left = element("p", {});
    this.search.addEventListener("input", () => this.filter());
    this.list.addEventListener("keydown", (event) => this.pressed(event));
    box.append(this.search, this.list, this.left);
  }

  /**
   * @param {KeptProfiles} kept
   * @param {string} type
   * @param {string} chosen
   */
  show(kept, type, chosen) {
    const services = kept.services.filter((one) => one.type === type);
    this.unit = kept.types.find((one) => one.type === type)?.unit ?? "ns";
    const values = services.map((one) => one[this.unit] ?? 0);
    const sum = values.reduce((all, one) => all + one, 0);
    const entries = services.map((one, i) => this.entry(one.service, one.service, values[i], sum));
    if (chosen !== "" && !services.some((one) => one.service === chosen)) entries.unshift(this.entry(chosen, chosen, 0, sum));
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(this.entry("", "all services", sum, sum), ...entries);
    for (const button of this.list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.service === chosen));
      if (focused && button.dataset.service === chosen) button.focus();
    }
    this.search.hidden = services.length < SEARCHED_FROM;
    this.left.textContent = kept.left_out > 0 ? `${kept.left_out.toLocaleString("en")} more with less` : "";
    this.filter();
  }

  /** @type {(service: string, name: string, value: number, sum: number) => HTMLElement} */
  entry(service, name, value, sum) {
    const share = sum > 0 ? (100 * value) / sum : 0;
    return element("button", { type: "button", "data-service": service, title: name, onclick: () => this.choose(service), style: `--share:${share}%` },
      element("span", {}, name), element("span", { class: "quiet" }, amount(value, this.unit)), element("span", { class: "share" }, `${share.toFixed(share < 10 ? 1 : 0)} %`));
  }

  filter() {
    const wanted = this.search.hidden ? "" : this.search.value.toLowerCase();
    for (const button of this.list.querySelectorAll("button")) {
      button.hidden = wanted !== "" && button.dataset.service !== "" && !(button.dataset.service ?? "").toLowerCase().includes(wanted);
    }
  }

  // The arrow keys move from one to the next.
  /** @param {KeyboardEvent} event */
  pressed(event) {
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1 });
    if (!(event.key in steps)) return;
    event.preventDefault();
    const shown = [...this.list.querySelectorAll("button")].filter((button) => !button.hidden);
    const at = shown.findIndex((button) => button === document.activeElement);
    shown[Math.min(Math.max(at + steps[event.key], 0), shown.length - 1)]?.focus();
  }
}
