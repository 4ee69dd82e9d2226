"use strict";
// What the pages of recordings share: unpacking what the C++ side packed (docs/report-page.md), thinning it to what a
// chart can show, writing figures.
const kymo = (() => {
  const byId = (id) => document.getElementById(id);
  const LEFT_OUT = 255;
  const COLORS = ["#0090ff", "#f76b15", "#30a46c", "#8e4ec6", "#e54666", "#00a2c7", "#ad7f58", "#86ac23"];

  async function unpack(id) {
    const element = byId(id);
    const packed = await fetch("data:;base64," + element.textContent);
    element.remove();
    return new Response(packed.body.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  }

  // A column: its outline, a value or six a block, and its samples once they are unpacked.
  class Column {
    constructor(outline, described) {
      this.described = described;
      // 4 doubles, 2 floats and a byte a block.
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
      this.offset = new Float64Array(n);
      this.samples = null;
      this.unpacked = new Map();
    }

    rows(block) {
      return block + 1 < this.blocks ? this.described.block_rows : this.described.rows - block * this.described.block_rows;
    }

    setSamples(bytes) {
      let at = 0;
      for (let block = 0; block < this.blocks; ++block) {
        this.offset[block] = at;
        if (this.width[block] !== LEFT_OUT) at += this.width[block] * this.rows(block);
      }
      this.samples = new Uint8Array(bytes);
    }

    // The values of a block; null where they are not in this page, or not yet.
    values(block) {
      if (this.samples === null || this.width[block] === LEFT_OUT) return null;
      let values = this.unpacked.get(block);
      if (values === undefined) {
        if (this.unpacked.size > 4096) this.unpacked.clear();
        this.unpacked.set(block, (values = this.decode(block)));
      }
      return values;
    }

    decode(block) {
      const n = this.rows(block);
      const width = this.width[block];
      const bytes = this.samples;
      const at = this.offset[block];
      const values = new Float64Array(n);
      let value = (values[0] = this.first[block]);
      for (let i = 1; i < n; ++i) {
        let low = 0;
        let high = 0;
        for (let byte = Math.min(width, 4) - 1; byte >= 0; --byte) low = low * 256 + bytes[at + byte * n + i];
        for (let byte = width - 1; byte >= 4; --byte) high = high * 256 + bytes[at + byte * n + i];
        // zigzag: the lowest bit is the sign
        const odd = low % 2;
        const half = high * 2147483648 + (low - odd) / 2;
        values[i] = value += odd === 0 ? half : -half - 1;
      }
      return values;
    }
  }

  // A recording: what is said of it, and its columns, the time first.
  class Recording {
    // `prefix`: of the ids of its elements.
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
      await Promise.all(this.columns.map(async (column, i) => column.setSamples(await unpack(`${this.prefix}samples${i}`))));
    }

    get time() {
      return this.columns[0];
    }

    // The first block that ends at or behind `t`.
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

    // The lines of a chart: one time axis, and of each piece of it the lowest and the highest value, so that no
    // spike is lost; single samples where there is room for them.
    linesOf(indices, from, to, pixels, asRate) {
      const { columns, time, gaps } = this;
      const firstBlock = Math.max(this.blockAt(from) - 1, 0);
      const lastBlock = Math.min(this.blockAt(to) + 1, time.blocks - 1);
      const ready = indices.every((i) => columns[i].samples !== null) && time.samples !== null;
      const fine = ready && (lastBlock - firstBlock) * this.described.block_rows <= 2_000_000;
      const lines = { times: [], values: indices.map(() => []), single: fine };
      const bucket = (to - from) / pixels;
      const open = { end: -Infinity, time: 0, low: indices.map(() => Infinity), high: indices.map(() => -Infinity), rows: 0 };
      const close = () => {
        if (open.rows === 0) return;
        lines.times.push(open.first, open.rows === 1 ? open.first : open.last);
        indices.forEach((_, k) => lines.values[k].push(open.low[k], open.high[k]));
        if (open.rows === 1) {
          lines.times.pop();
          lines.values.forEach((values) => values.pop());
        }
        open.rows = 0;
        open.low.fill(Infinity);
        open.high.fill(-Infinity);
      };
      const put = (t, lows, highs) => {
        if (t >= open.end) {
          close();
          open.end = t + bucket;
          open.first = t;
        }
        open.last = t;
        ++open.rows;
        for (let k = 0; k < indices.length; ++k) {
          if (lows[k] < open.low[k]) open.low[k] = lows[k];
          if (highs[k] > open.high[k]) open.high[k] = highs[k];
        }
      };
      let gap = 0;
      const breakAtGap = (t) => {
        let broken = false;
        while (gap < gaps.length && gaps[gap].end_ns <= t) {
          broken = broken || gaps[gap].end_ns > lines.lastTime;
          ++gap;
        }
        if (broken && lines.lastTime > -Infinity) {
          close();
          open.end = -Infinity;
          lines.times.push(lines.lastTime + (t - lines.lastTime) / 2);
          lines.values.forEach((values) => values.push(null));
        }
        lines.lastTime = t;
      };
      lines.lastTime = -Infinity;
      const lows = indices.map(() => 0);
      const highs = indices.map(() => 0);
      for (let block = firstBlock; block <= lastBlock; ++block) {
        const times = fine ? time.values(block) : null;
        if (times !== null) this.putRows(block, times, indices, lows, highs, asRate, (t) => (breakAtGap(t), put(t, lows, highs)));
        else {
          indices.forEach((i, k) => {
            const rate = asRate(i);
            lows[k] = rate ? columns[i].rateLow[block] : columns[i].low[block];
            highs[k] = rate ? columns[i].rateHigh[block] : columns[i].high[block];
          });
          lines.single = false;
          breakAtGap(time.first[block]);
          put(time.first[block], lows, highs);
          lines.lastTime = time.last[block];
          put(time.last[block], lows, highs);
        }
      }
      close();
      return lines;
    }

    putRows(block, times, indices, lows, highs, asRate, put) {
      const { columns, time } = this;
      const values = indices.map((i) => columns[i].values(block));
      const rates = indices.map(asRate);
      // The very first row has no rate.
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
      // Time per time is a share of it.
      if (!rate) return scaled(ns, TIMES);
      const share = (ns / 1e9) * 100;
      return share >= 1000 ? Math.round(share).toLocaleString("en") + " %" : share.toFixed(1) + " %";
    }
    return scaled(value, COUNTS) + (unit === "pages" ? " pages" : "") + per;
  }
  // The labels of a time axis: one unit, and digits enough to tell two ticks apart.
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

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  return { byId, COLORS, TIMES, Recording, scaled, written, instants, instant, element, css };
})();
