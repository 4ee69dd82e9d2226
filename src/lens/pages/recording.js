// A recording in a page: unpacks the data that the C++ code packed (docs/web.md), or requests
// it from `kymo view`, and gives the lines of charts.
import { byId } from "./dom.js";
import { ageColumnOf, Lines, ratePerSecond, shortestWindow } from "./lines.js";
import { messageOf } from "./format.js";

/** @import { Described } from "./types.d.ts" */
/** @typedef {{ token: string, arrived: () => void, waiting: boolean }} Served */

const LEFT_OUT = 255;
const BASE64_PIECE = 4 << 20; // must be a multiple of four
const MOST_ASKED = 256; // the largest number of blocks in a request

/**
 * Decodes base64 piece by piece, so that the page stays responsive. The browser would read a
 * data: URL of the whole text several times.
 * @param {string} text
 */
function bytesOf(text) {
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      if (at >= text.length) return controller.close();
      if (at > 0) await new Promise((go) => setTimeout(go));
      const piece = atob(text.slice(at, (at += BASE64_PIECE)));
      const bytes = new Uint8Array(piece.length);
      for (let i = 0; i < bytes.length; ++i) bytes[i] = piece.charCodeAt(i);
      controller.enqueue(bytes);
    },
  });
}

/** @param {string} text */
const unpack = (text) =>
  new Response(bytesOf(text).pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();

/**
 * The text of an element, which is removed from the page.
 * @param {string} id
 */
function takeText(id) {
  const element = byId(id);
  element.remove();
  return element.textContent ?? "";
}

// A column: its outline with seven values for each block, and its samples when they are unpacked.
class Column {
  /**
   * @param {ArrayBuffer} outline
   * @param {Described} described
   */
  constructor(outline, described) {
    this.described = described;
    // A block has 4 doubles, 2 floats and a byte.
    const n = (this.blocks = outline.byteLength / 41);
    let at = 0;
    /**
     * @template T
     * @param {{ new (buffer: ArrayBuffer, from: number, length: number): T, BYTES_PER_ELEMENT: number }} Type
     */
    const take = (Type) => new Type(outline, (at += n * Type.BYTES_PER_ELEMENT) - n * Type.BYTES_PER_ELEMENT, n);
    this.first = take(Float64Array);
    this.low = take(Float64Array);
    this.high = take(Float64Array);
    this.last = take(Float64Array);
    this.rateLow = take(Float32Array);
    this.rateHigh = take(Float32Array);
    this.width = take(Uint8Array);
    /** @type {Uint8Array[] | null} the lowest bytes of the differences of all blocks, the next, and so on */
    this.planes = null;
    /** @type {Float64Array[]} for each plane, the offsets of the blocks */
    this.offsets = [];
    /** @type {Map<number, Uint8Array>} for a recording that is served: the bytes of each block */
    this.fetched = new Map();
    /** @type {Map<number, Float64Array>} */
    this.unpacked = new Map();
  }

  /** @param {number} block */
  rows(block) {
    return block + 1 < this.blocks ? this.described.block_rows : this.described.rows - block * this.described.block_rows;
  }

  // The number of planes in this page.
  get widest() {
    return this.width.reduce((widest, width) => (width === LEFT_OUT ? widest : Math.max(widest, width)), 0);
  }

  /** @param {ArrayBuffer[]} planes */
  setSamples(planes) {
    this.offsets = planes.map((_, k) => {
      const offsets = new Float64Array(this.blocks);
      for (let block = 0, at = 0; block < this.blocks; ++block) {
        offsets[block] = at;
        if (this.width[block] !== LEFT_OUT && this.width[block] > k) at += this.rows(block);
      }
      return offsets;
    });
    this.planes = planes.map((plane) => new Uint8Array(plane));
  }

  /**
   * The bytes of a block's differences, plane by plane.
   * @param {number} block
   */
  planesOf(block) {
    const n = this.rows(block);
    const fetched = this.fetched.get(block);
    return Array.from({ length: this.width[block] }, (_, k) => {
      if (this.planes === null) return /** @type {Uint8Array} */ (fetched).subarray(k * n, (k + 1) * n);
      const at = this.offsets[k][block];
      return this.planes[k].subarray(at, at + n);
    });
  }

  /**
   * The values of a block. Null if they are not in this page, or not yet.
   * @param {number} block
   */
  values(block) {
    if (this.width[block] === LEFT_OUT || (this.planes === null && !this.fetched.has(block))) return null;
    let values = this.unpacked.get(block);
    if (values === undefined) {
      if (this.unpacked.size > 4096) this.unpacked.clear();
      this.unpacked.set(block, (values = this.decode(block)));
    }
    return values;
  }

  /** @param {number} block */
  decode(block) {
    const n = this.rows(block);
    const planes = this.planesOf(block);
    const width = planes.length;
    const values = new Float64Array(n);
    let value = (values[0] = this.first[block]);
    for (let i = 1; i < n; ++i) {
      let low = 0;
      let high = 0;
      for (let byte = Math.min(width, 4) - 1; byte >= 0; --byte) low = low * 256 + planes[byte][i];
      for (let byte = width - 1; byte >= 4; --byte) high = high * 256 + planes[byte][i];
      // Zigzag coding: the lowest bit is the sign.
      const odd = low % 2;
      const half = high * 2147483648 + (low - odd) / 2;
      values[i] = value += odd === 0 ? half : -half - 1;
    }
    return values;
  }
}

// A recording: its description and its columns, of which the time is the first.
export class Recording {
  /**
   * @param {Described} described
   * @param {string} [prefix] the prefix of the ids of its elements
   * @param {(id: string) => string} [textOf] gives the text of an element
   */
  constructor(described, prefix = "", textOf = takeText) {
    this.described = described;
    /** @param {string} id */
    this.unpack = (id) => unpack(textOf(prefix + id));
    /** @type {Served | null} */
    this.served = null;
    this.trouble = "";
    this.shown = described.columns.filter((column) => !column.idle);
    this.gaps = described.gaps.slice().sort((a, b) => a.start_ns - b.start_ns);
    /** @type {Column[]} */
    this.columns = [];
  }

  async readOutlines() {
    const ids = Array.from({ length: this.shown.length + 1 }, (_, i) => `outline${i}`);
    const outlines = await Promise.all(ids.map(this.unpack));
    this.columns = outlines.map((outline) => new Column(outline, this.described));
  }

  async readSamples() {
    await Promise.all(this.columns.map(async (column, i) => {
      const planes = Array.from({ length: column.widest }, (_, k) => this.unpack(`samples${i}-${k}`));
      column.setSamples(await Promise.all(planes));
    }));
  }

  /**
   * For a recording that is served: samples are requested when a range shows them.
   * @param {string} token
   * @param {() => void} arrived
   */
  serve(token, arrived) {
    this.served = { token, arrived, waiting: false };
  }

  /**
   * @param {Served} served
   * @param {number} first
   * @param {number} last
   */
  async ask(served, first, last) {
    const { columns } = this;
    while (first <= last && this.time.fetched.has(first)) ++first;
    while (first <= last && this.time.fetched.has(last)) --last;
    if (first > last || served.waiting) return;
    served.waiting = true;
    try {
      const reply = await fetch(`/samples?first=${first}&last=${last}`, { headers: { Authorization: "Bearer " + served.token } });
      if (!reply.ok) throw new Error((await reply.json()).error.message);
      const bytes = new Uint8Array(await reply.arrayBuffer());
      if (this.time.fetched.size > 4 * MOST_ASKED) columns.forEach((column) => column.fetched.clear());
      let at = 0;
      for (let block = first; block <= last; ++block) {
        for (const column of columns) {
          const size = column.width[block] * column.rows(block);
          column.fetched.set(block, bytes.subarray(at, at + size));
          at += size;
        }
      }
      this.trouble = "";
    } catch (error) {
      this.trouble = messageOf(error) === "Failed to fetch" ? "kymo view has ended" : messageOf(error);
    }
    served.waiting = false;
    served.arrived();
  }

  get time() {
    return this.columns[0];
  }

  /**
   * The first block that ends at or after `t`.
   * @param {number} t
   */
  blockAt(t) {
    const last = this.time.last;
    let low = 0;
    let high = last.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (last[middle] < t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * The lines of a chart for a range, with single samples if there is room.
   * @param {number[]} indices columns
   * @param {number} from
   * @param {number} to
   * @param {number} pixels
   * @param {(index: number) => boolean} asRate
   */
  linesOf(indices, from, to, pixels, asRate) {
    const { columns, time, gaps } = this;
    const firstBlock = Math.max(this.blockAt(from) - 1, 0);
    const lastBlock = Math.min(this.blockAt(to) + 1, time.blocks - 1);
    const ready = indices.every((i) => columns[i].planes !== null) && time.planes !== null;
    const few = lastBlock - firstBlock <= MOST_ASKED;
    const fine = this.served ? few : ready && (lastBlock - firstBlock) * this.described.block_rows <= 2_000_000;
    if (this.served && few && !this.trouble) this.ask(this.served, firstBlock, lastBlock);
    const lines = new Lines(indices.length, (to - from) / pixels, gaps);
    lines.single = fine;
    const lows = indices.map(() => 0);
    const highs = indices.map(() => 0);
    for (let block = firstBlock; block <= lastBlock; ++block) {
      const times = fine ? time.values(block) : null;
      if (times !== null) this.putRows(block, times, indices, lows, highs, asRate, (t) => (lines.breakAtGap(t), lines.put(t, lows, highs)));
      else {
        indices.forEach((i, k) => {
          const rate = asRate(i);
          lows[k] = rate ? columns[i].rateLow[block] : columns[i].low[block];
          highs[k] = rate ? columns[i].rateHigh[block] : columns[i].high[block];
        });
        lines.single = false;
        lines.breakAtGap(time.first[block]);
        lines.put(time.first[block], lows, highs);
        lines.lastTime = time.last[block];
        lines.put(time.last[block], lows, highs);
      }
    }
    lines.close();
    return lines;
  }

  /**
   * The times at which the values of a column were read, in a block and at the last row before it.
   * @param {number} index
   * @param {number} block
   * @param {Float64Array} times of the rows
   */
  clockOf(index, block, times) {
    const name = ageColumnOf(this.shown[index - 1].name);
    const found = this.shown.findIndex((column) => column.name === name);
    const age = found < 0 ? null : this.columns[found + 1];
    const ages = age && age.values(block);
    const before = block > 0 ? this.time.last[block - 1] - (age ? age.last[block - 1] : 0) : NaN;
    let latest = block > 0 ? before : -Infinity;
    return { read: ages ? times.map((t, row) => (latest = Math.max(latest, t - ages[row]))) : times, before };
  }

  /**
   * @param {number} block
   * @param {Float64Array} times
   * @param {number[]} indices
   * @param {number[]} lows
   * @param {number[]} highs
   * @param {(index: number) => boolean} asRate
   * @param {(t: number) => void} put
   */
  putRows(block, times, indices, lows, highs, asRate, put) {
    const { columns } = this;
    const values = indices.map((i) => /** @type {Float64Array} */ (columns[i].values(block)));
    const rates = indices.map(asRate);
    const clocks = indices.map((i) => this.clockOf(i, block, times));
    const window = shortestWindow(this.described.interval_ns);
    // The first row has no rate.
    for (let row = block === 0 && rates[0] ? 1 : 0; row < times.length; ++row) {
      for (let k = 0; k < indices.length; ++k) {
        let value = values[k][row];
        if (rates[k]) {
          const { read, before: last } = clocks[k];
          let begin = row - 1;
          while (begin >= 0 && read[row] - read[begin] < window) --begin;
          const passed = read[row] - (begin >= 0 ? read[begin] : last);
          if (passed < window) continue; // it is next to the block before: the rate there still holds
          const before = begin >= 0 ? values[k][begin] : block > 0 ? columns[indices[k]].last[block - 1] : NaN;
          const rate = ratePerSecond(value - before, passed);
          value = Number.isFinite(rate) ? rate : 0;
        }
        lows[k] = highs[k] = value;
      }
      put(times[row]);
    }
  }
}
