"use strict";
// What the pages of recordings share: unpacking the data that the C++ code packed
// (docs/report-page.md), thinning it for charts, and formatting values.
const kymo = (() => {
  const byId = (id) => document.getElementById(id);
  const LEFT_OUT = 255;
  const BASE64_PIECE = 4 << 20; // must be a multiple of four
  const MOST_ASKED = 256; // the largest number of blocks in a request
  const COLORS = ["#0090ff", "#f76b15", "#30a46c", "#8e4ec6", "#e54666", "#00a2c7", "#ad7f58", "#86ac23"];

  // Decodes base64 piece by piece, so that the page stays responsive. The browser would read a
  // data: URL of the whole text several times.
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

  async function unpack(id) {
    const element = byId(id);
    const text = element.textContent;
    element.remove();
    return new Response(bytesOf(text).pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  }

  // The lines of a chart on one time axis. Each piece of the axis has its lowest and highest value,
  // so that no spike is lost, or single samples if there is room. The lines break at `gaps`, which
  // are sorted by time.
  class Lines {
    constructor(count, bucket, gaps) {
      this.count = count;
      this.bucket = bucket;
      this.gaps = gaps;
      this.times = [];
      this.values = Array.from({ length: count }, () => []);
      this.end = -Infinity;
      this.rows = 0;
      this.low = new Float64Array(count).fill(Infinity);
      this.high = new Float64Array(count).fill(-Infinity);
      this.gap = 0;
      this.lastTime = -Infinity;
    }

    put(t, lows, highs) {
      if (t >= this.end) {
        this.close();
        this.end = t + this.bucket;
        this.first = t;
      }
      this.last = t;
      ++this.rows;
      for (let k = 0; k < this.count; ++k) {
        if (lows[k] < this.low[k]) this.low[k] = lows[k];
        if (highs[k] > this.high[k]) this.high[k] = highs[k];
      }
    }

    // Adds the points from index `at` up to `end`, with an array for each column in `lows` and
    // `highs`. Each point costs only comparisons, so a frame can redraw a hundred thousand points.
    putAll(times, lows, highs, at, end) {
      while (at < end) {
        this.breakAtGap(times[at]);
        if (times[at] >= this.end) {
          this.close();
          this.end = times[at] + this.bucket;
          this.first = times[at];
        }
        const stop = this.gap < this.gaps.length ? Math.min(this.end, this.gaps[this.gap].end_ns) : this.end;
        let to = at + 1;
        while (to < end && times[to] < stop) ++to;
        for (let k = 0; k < this.count; ++k) {
          let least = this.low[k];
          let most = this.high[k];
          for (let i = at; i < to; ++i) {
            if (lows[k][i] < least) least = lows[k][i];
            if (highs[k][i] > most) most = highs[k][i];
          }
          this.low[k] = least;
          this.high[k] = most;
        }
        this.rows += to - at;
        this.last = this.lastTime = times[to - 1];
        at = to;
      }
    }

    close() {
      if (this.rows === 0) return;
      let two = this.rows > 1;
      for (let k = 0; k < this.count; ++k) two = two || this.high[k] > this.low[k];
      this.times.push(this.first);
      if (two) this.times.push(this.last);
      for (let k = 0; k < this.count; ++k) {
        // There may be no value: the first row of a counter has no rate.
        const empty = this.low[k] === Infinity;
        this.values[k].push(empty ? null : this.low[k]);
        if (two) this.values[k].push(empty ? null : this.high[k]);
      }
      this.rows = 0;
      this.low.fill(Infinity);
      this.high.fill(-Infinity);
    }

    breakAtGap(t) {
      let broken = false;
      while (this.gap < this.gaps.length && this.gaps[this.gap].end_ns <= t) {
        broken = broken || this.gaps[this.gap].end_ns > this.lastTime;
        ++this.gap;
      }
      // A gap that is shorter than a pixel does not break the line.
      if (broken && this.lastTime > -Infinity && t - this.lastTime >= this.bucket) {
        this.close();
        this.end = -Infinity;
        this.times.push(this.lastTime + (t - this.lastTime) / 2);
        this.values.forEach((values) => values.push(null));
      }
      this.lastTime = t;
    }
  }

  // A column: its outline with seven values for each block, and its samples when they are unpacked.
  class Column {
    constructor(outline, described) {
      this.described = described;
      // A block has 4 doubles, 2 floats and a byte.
      const n = (this.blocks = outline.byteLength / 41);
      let at = 0;
      const take = (Type) => new Type(outline, (at += n * Type.BYTES_PER_ELEMENT) - n * Type.BYTES_PER_ELEMENT, n);
      this.first = take(Float64Array);
      this.low = take(Float64Array);
      this.high = take(Float64Array);
      this.last = take(Float64Array);
      this.rateLow = take(Float32Array);
      this.rateHigh = take(Float32Array);
      this.width = take(Uint8Array);
      this.planes = null; // the lowest bytes of the differences of all blocks, the next, and so on
      this.offsets = []; // for each plane, the offsets of the blocks
      this.fetched = new Map(); // for a recording that is served: the bytes of each block
      this.unpacked = new Map();
    }

    rows(block) {
      return block + 1 < this.blocks ? this.described.block_rows : this.described.rows - block * this.described.block_rows;
    }

    // The number of planes in this page.
    get widest() {
      return this.width.reduce((widest, width) => (width === LEFT_OUT ? widest : Math.max(widest, width)), 0);
    }

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

    // The bytes of a block's differences, plane by plane.
    planesOf(block) {
      const n = this.rows(block);
      const fetched = this.fetched.get(block);
      return Array.from({ length: this.width[block] }, (_, k) => {
        const [plane, at] = this.planes ? [this.planes[k], this.offsets[k][block]] : [fetched, k * n];
        return plane.subarray(at, at + n);
      });
    }

    // The values of a block. Null if they are not in this page, or not yet.
    values(block) {
      if (this.width[block] === LEFT_OUT || (this.planes === null && !this.fetched.has(block))) return null;
      let values = this.unpacked.get(block);
      if (values === undefined) {
        if (this.unpacked.size > 4096) this.unpacked.clear();
        this.unpacked.set(block, (values = this.decode(block)));
      }
      return values;
    }

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
  class Recording {
    // `prefix`: the prefix of the ids of its elements.
    constructor(described, prefix = "") {
      this.described = described;
      this.prefix = prefix;
      this.shown = described.columns.filter((column) => !column.idle);
      this.gaps = described.gaps.slice().sort((a, b) => a.start_ns - b.start_ns);
      this.columns = [];
    }

    async readOutlines() {
      const ids = Array.from({ length: this.shown.length + 1 }, (_, i) => `${this.prefix}outline${i}`);
      const outlines = await Promise.all(ids.map(unpack));
      this.columns = outlines.map((outline) => new Column(outline, this.described));
    }

    async readSamples() {
      await Promise.all(this.columns.map(async (column, i) => {
        const planes = Array.from({ length: column.widest }, (_, k) => unpack(`${this.prefix}samples${i}-${k}`));
        column.setSamples(await Promise.all(planes));
      }));
    }

    // For a recording that is served: samples are requested when a range shows them.
    serve(token, arrived) {
      this.served = { token, arrived, waiting: false };
      this.trouble = "";
    }

    async ask(first, last) {
      const { served, columns } = this;
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
        this.trouble = error.message === "Failed to fetch" ? "kymo view has ended" : error.message;
      }
      served.waiting = false;
      served.arrived();
    }

    get time() {
      return this.columns[0];
    }

    // The first block that ends at or after `t`.
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

    // The lines of a chart for a range, with single samples if there is room.
    linesOf(indices, from, to, pixels, asRate) {
      const { columns, time, gaps } = this;
      const firstBlock = Math.max(this.blockAt(from) - 1, 0);
      const lastBlock = Math.min(this.blockAt(to) + 1, time.blocks - 1);
      const ready = indices.every((i) => columns[i].planes !== null) && time.planes !== null;
      const few = lastBlock - firstBlock <= MOST_ASKED;
      const fine = this.served ? few : ready && (lastBlock - firstBlock) * this.described.block_rows <= 2_000_000;
      if (this.served && few && !this.trouble) this.ask(firstBlock, lastBlock);
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

    putRows(block, times, indices, lows, highs, asRate, put) {
      const { columns, time } = this;
      const values = indices.map((i) => columns[i].values(block));
      const rates = indices.map(asRate);
      // The first row has no rate.
      for (let row = block === 0 && rates[0] ? 1 : 0; row < times.length; ++row) {
        const before = row > 0 ? times[row - 1] : block > 0 ? time.last[block - 1] : NaN;
        for (let k = 0; k < indices.length; ++k) {
          let value = values[k][row];
          if (rates[k]) {
            const valueBefore = row > 0 ? values[k][row - 1] : block > 0 ? columns[indices[k]].last[block - 1] : NaN;
            const rate = ((value - valueBefore) * 1e9) / (times[row] - before);
            value = Number.isFinite(rate) ? rate : 0;
          }
          lows[k] = highs[k] = value;
        }
        put(times[row]);
      }
    }
  }

  function scaled(value, steps) {
    let [name, factor] = steps[0];
    for (const [next, above] of steps) if (Math.abs(value) >= above) [name, factor] = [next, above];
    const number = value / factor;
    const digits = Math.abs(number) >= 100 || Number.isInteger(number) ? 0 : Math.abs(number) >= 10 ? 1 : 2;
    return number.toFixed(digits) + name;
  }
  const TIMES = [[" ns", 1], [" µs", 1e3], [" ms", 1e6], [" s", 1e9]];
  const COUNTS = [["", 1], [" k", 1e3], [" M", 1e6], [" G", 1e9]];
  const BYTES = [[" B", 1], [" KiB", 1024], [" MiB", 1048576], [" GiB", 1073741824]];

  function written(value, unit, rate) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const per = rate ? "/s" : "";
    if (unit === "bytes") return scaled(value, BYTES) + per;
    if (unit === "nanoseconds" || unit === "microseconds") {
      const ns = unit === "nanoseconds" ? value : value * 1000;
      // Time per second is shown as a share, in percent.
      if (!rate) return scaled(ns, TIMES);
      const share = (ns / 1e9) * 100;
      if (Math.abs(share) < 1) return Number(share.toPrecision(2)) + " %";
      return share >= 1000 ? Math.round(share).toLocaleString("en") + " %" : share.toFixed(1) + " %";
    }
    return scaled(value, COUNTS) + (unit === "pages" ? " pages" : "") + per;
  }
  // The labels of a time axis, in one unit, with enough digits to distinguish neighbouring ticks.
  function instants(ticks, step) {
    const largest = Math.max(...ticks.map(Math.abs), 1);
    const [name, factor] = TIMES.filter(([, above]) => largest >= above).pop();
    let digits = 0;
    while (digits < 9 && Math.abs(((step / factor) * 10 ** digits) % 1) > 1e-6) ++digits;
    return ticks.map((t) => (t / factor).toFixed(digits) + name);
  }
  const instant = (ns) => (ns / 1e9).toFixed(ns < 1e11 ? 6 : 3) + " s";

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key === "style") made.style.cssText = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  // If a name in `head` ends with a colon, its column contains text and is aligned to the left.
  function table(head, rows, attributes = {}) {
    const text = head.map((name, i) => i === 0 || name.endsWith(":"));
    const cells = (kind, row) => row.map((cell, i) => element(kind, text[i] ? { class: "text" } : {}, cell));
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, element("table", attributes,
      element("thead", {}, element("tr", {}, ...cells("th", head.map((name) => name.replace(/:$/, ""))))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
  }

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  return { byId, COLORS, TIMES, BYTES, Lines, Recording, scaled, written, instants, instant, element, table, css };
})();
