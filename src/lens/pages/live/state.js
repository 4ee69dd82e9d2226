// What the parts of the live page share.
import { takeToken } from "../dom.js";
import { Client } from "./client.js";
import { Store } from "./store.js";

/** @import { Column, Gap, Request, Status } from "../types.d.ts" */
/** @import { Past } from "./past.js" */
/** @typedef {Request & { box: HTMLElement }} ShownRequest */

export const kymod = new Client(takeToken());

export const state = {
  /** @type {Status | null} */
  status: null,
  /** @type {Column[]} */
  columns: [],
  /** @type {Column[]} those of the chosen columns that are recorded */
  shown: [],
  /** @type {Set<string>} */
  chosen: new Set(),
  store: new Store(0),
  /** @type {Gap[]} */
  gaps: [],
  now: 0, // of the recording, in nanoseconds
  first: 0, // the oldest time that kymod can give
  follow: true,
  /** @type {Past | null} rows that are older than those of the store */
  past: null,
  /** @type {Map<string, ShownRequest>} */
  requests: new Map(),
};
