// The elements of a page: finding and making them, tables, colours of the style, and the token of a
// page that is served.

/**
 * An element that the page has.
 * @param {string} id
 */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * A field or button that the page has.
 * @param {string} id
 */
export const fieldById = (id) => /** @type {HTMLInputElement} */ (byId(id));

/**
 * Makes an element. Text is set as text, never as markup.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, string | number | EventListener>} [attributes] with `on...`: a listener
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (key === "style") made.style.cssText = String(value);
    else made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

/**
 * If a name in `head` ends with a colon, its column contains text and is aligned to the left.
 * @param {string[]} head
 * @param {(Node | string)[][]} rows
 * @param {Record<string, string>} [attributes]
 */
export function table(head, rows, attributes = {}) {
  const text = head.map((name, i) => i === 0 || name.endsWith(":"));
  /** @type {(kind: "td" | "th", row: (Node | string)[]) => HTMLElement[]} */
  const cells = (kind, row) => row.map((cell, i) => element(kind, { ...(text[i] ? { class: "text" } : {}), ...(kind === "td" ? { "data-label": head[i].replace(/:$/, "") } : {}) }, cell));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, element("table", attributes,
    element("thead", {}, element("tr", {}, ...cells("th", head.map((name) => name.replace(/:$/, ""))))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
}

/**
 * Content that is folded away behind its title.
 * @param {string} title
 * @param {string} note beside the title
 * @param {...(Node | string)} content
 */
export const fold = (title, note, ...content) =>
  element("details", { class: "fold" }, element("summary", {}, title, ...(note ? [element("span", { class: "quiet" }, ` ${note}`)] : [])), ...content);

/**
 * A variable of the style sheet.
 * @param {string} name
 */
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Gives the user a file.
 * @param {Blob} blob
 * @param {string} name
 */
export function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/**
 * For a page that is served: moves the token from the address to the storage of this tab, where a
 * reload finds it.
 */
export function takeToken() {
  const asked = new URLSearchParams(location.search);
  const given = asked.get("token");
  if (given !== null) {
    sessionStorage.setItem("kymo-token", given);
    asked.delete("token");
    history.replaceState(null, "", location.pathname + ([...asked].length ? "?" + asked : "") + location.hash);
  }
  return sessionStorage.getItem("kymo-token") || "";
}
