"use strict";
// Charts over one range of time, for the page of a report (a file) and the live page (served by
// kymod). The page provides the lines. Names are set as text, never as markup.
(() => {
  const { COLORS, TIMES, BYTES, scaled, written, element, css } = kymo;
  const HEIGHT = 190;
  // The steps between ticks of an axis of bytes: powers of two, as for KiB, MiB and GiB.
  const BINARY_STEPS = Array.from({ length: 64 }, (_, i) => 2 ** i);

  // For a page that is served: moves the token from the address to the storage of this tab, where a
  // reload finds it.
  function takeToken() {
    const asked = new URLSearchParams(location.search);
    if (asked.has("token")) {
      sessionStorage.setItem("kymo-token", asked.get("token"));
      asked.delete("token");
      history.replaceState(null, "", location.pathname + ([...asked].length ? "?" + asked : "") + location.hash);
    }
    return sessionStorage.getItem("kymo-token") || "";
  }

  // --- charts -----------------------------------------------------------------------------------

  // Groups columns into charts: the columns of one metric, and the other ones by unit and kind.
  function groups(columns) {
    const all = new Map();
    columns.forEach((column, i) => {
      const several = columns.filter((other) => other.metric && other.metric === column.metric).length > 1;
      const key = several ? column.metric : `${column.kind} ${column.unit}`;
      const title = several ? column.metric
        : `${column.kind === "counter" ? "Counters" : "Gauges"}${column.unit ? ", " + column.unit : ""}`;
      if (!all.has(key)) all.set(key, { title, indices: [] });
      all.get(key).indices.push(i);
    });
    return [...all.values()];
  }

  // `group`: {title, indices}. If several lines share one entry of the legend, also
  // `entries`: [{name, color, lines}], with the indices of lines within the chart. `alpha`: of the
  // lines. `note`: the text beside the title.
  class Chart {
    constructor(board, group) {
      this.board = board;
      this.group = group;
      this.indices = group.indices;
      this.columns = group.indices.map((i) => board.source.columns[i]);
      this.entries = group.entries || this.columns.map((column, k) => ({ name: column.name, color: COLORS[k % COLORS.length], lines: [k] }));
      this.colors = [];
      this.entries.forEach((entry) => entry.lines.forEach((k) => (this.colors[k] = entry.color)));
      this.on = this.entries.map(() => true);
      this.box = element("div", { class: "chart", tabindex: "0", "aria-label": group.title });
      this.plotBox = element("div");
      this.legend = element("ul", { class: "legend" });
      const save = element("button", { type: "button", title: "Save this chart as a picture" }, "PNG");
      save.addEventListener("click", () => this.save(group.title));
      const note = group.note ? [element("span", { class: "change" }, group.note)] : [];
      this.box.append(element("div", { class: "head" }, element("h2", {}, group.title), ...note, save), this.legend, this.plotBox);
      this.box.addEventListener("keydown", (event) => board.steer(event));
      board.box.append(this.box);
      this.makeLegend();
      this.make();
    }

    makeLegend() {
      this.values = this.entries.map((entry, n) => {
        const value = element("span", { class: "value" });
        const button = element("button", { type: "button", "aria-pressed": "true", title: "Hide or show; with Shift: this one alone" },
          element("span", { class: "swatch", style: `background:${entry.color}` }), entry.name, value);
        button.addEventListener("click", (event) => this.toggle(n, event.shiftKey));
        this.legend.append(element("li", {}, button));
        return value;
      });
    }

    shows(k) {
      return this.entries.every((entry, n) => this.on[n] || !entry.lines.includes(k));
    }

    toggle(n, alone) {
      if (alone) {
        const only = this.on.every((on, i) => on === (i === n));
        this.on = this.on.map((_, i) => only || i === n);
      } else this.on[n] = !this.on[n];
      this.columns.forEach((_, k) => this.plot.setSeries(k + 1, { show: this.shows(k) }));
      this.on.forEach((on, i) => this.legend.children[i].firstChild.setAttribute("aria-pressed", String(on)));
    }

    make() {
      if (this.plot) this.plot.destroy();
      const { board } = this;
      const { view } = board;
      const unit = this.columns[0].unit;
      const rate = board.asRate(this.indices[0]);
      const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
      this.plot = new uPlot({
        width: this.width(), height: HEIGHT,
        cursor: { sync: { key: "kymo" }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
        legend: { show: false },
        scales: { x: { time: false, range: () => [view.from, view.to] } },
        axes: [
          { ...axis, space: board.source.labelWidth || 50, values: (_, ticks, __, ___, step) => board.source.instants(ticks, step) },
          { ...axis, ...(unit === "bytes" ? { incrs: BINARY_STEPS } : {}), size: this.width() < 500 ? 84 : 112, values: (_, ticks) => ticks.map((v) => written(v, unit, rate)) },
        ],
        series: [{}, ...this.indices.map((_, k) => ({
          stroke: this.colors[k], alpha: this.group.alpha || 1, width: 1.25, show: this.shows(k), spanGaps: false, points: { show: false } }))],
        hooks: {
          drawClear: [(plot) => (board.source.drawBehind ? board.source.drawBehind(plot) : drawBands(plot, board))],
          setCursor: [(plot) => this.read(plot.cursor.idx)],
          setSelect: [(plot) => {
            if (plot.select.width < 3) return;
            const from = plot.posToVal(plot.select.left, "x");
            const to = plot.posToVal(plot.select.left + plot.select.width, "x");
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            board.go(from, to);
          }],
        },
      }, [[], ...this.indices.map(() => [])], this.plotBox);
      const over = this.plot.over;
      over.addEventListener("wheel", (event) => {
        event.preventDefault();
        const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
        if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) board.move(sideways / over.clientWidth);
        else board.zoom(Math.exp(event.deltaY / 400), this.plot.posToVal(event.offsetX, "x"));
      }, { passive: false });
      over.addEventListener("dblclick", () => board.whole());
      this.dragAxis(over);
    }

    // Moves the view when the user drags the time axis. Dragging to the right shows earlier times.
    dragAxis(over) {
      const axis = this.plot.root.querySelector(".u-axis");
      axis.title = "Draw to move in time";
      axis.classList.add("time");
      axis.addEventListener("pointerdown", (event) => {
        axis.setPointerCapture(event.pointerId);
        let at = event.clientX;
        const along = (moved) => {
          this.board.move((at - moved.clientX) / over.clientWidth);
          at = moved.clientX;
        };
        axis.addEventListener("pointermove", along);
        const end = () => axis.removeEventListener("pointermove", along);
        axis.addEventListener("pointerup", end, { once: true });
        axis.addEventListener("pointercancel", end, { once: true });
      });
    }

    width() {
      return Math.max(this.board.box.clientWidth, 280);
    }

    draw() {
      const { view } = this.board;
      const lines = this.board.source.lines(this.indices, view.from, view.to, Math.max(this.width() - 100, 100));
      this.plot.setData([lines.times, ...lines.values]);
      this.single = lines.single;
    }

    // The values under the cursor. If lines have their own times, the last values before it.
    read(at) {
      const none = at === null || at === undefined;
      this.entries.forEach((entry, n) => {
        const [k] = entry.lines;
        let i = at;
        while (!none && this.group.entries && k !== undefined && i > 0 && this.plot.data[k + 1][i] == null) --i;
        this.values[n].textContent = none ? "" : k === undefined ? "–" : written(this.plot.data[k + 1][i], this.columns[k].unit, this.board.asRate(this.indices[k]));
      });
      if (!none) this.board.say(this.plot.data[0][at]);
    }

    save(title) {
      const from = this.plot.ctx.canvas;
      const canvas = element("canvas", { width: from.width, height: from.height + 60 });
      const ink = canvas.getContext("2d");
      ink.fillStyle = css("--paper");
      ink.fillRect(0, 0, canvas.width, canvas.height);
      ink.drawImage(from, 0, 60);
      ink.fillStyle = css("--ink");
      ink.font = "22px system-ui, sans-serif";
      ink.fillText(`${title} · ${this.board.source.name()}`, 12, 24);
      let x = 12;
      ink.font = "16px system-ui, sans-serif";
      this.entries.forEach((entry, n) => {
        if (!this.on[n]) return;
        ink.fillStyle = entry.color;
        ink.fillText(entry.name, x, 50);
        x += ink.measureText(entry.name).width + 24;
      });
      canvas.toBlob((blob) => {
        const link = element("a", { href: URL.createObjectURL(blob), download: `${title.replace(/[^\w-]+/g, "-")}.png` });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      });
    }
  }

  // The share of gaps in the time of each pixel, so that many short gaps do not look like a long
  // one.
  function gapShares(gaps, view, width) {
    const shares = new Float32Array(width);
    const pixels = width / (view.to - view.from);
    for (const gap of gaps) {
      const from = Math.max((gap.start_ns - view.from) * pixels, 0);
      const to = Math.min((gap.end_ns - view.from) * pixels, width);
      for (let x = Math.floor(from); x < to; ++x) shares[x] += Math.min(to, x + 1) - Math.max(from, x);
    }
    return shares;
  }

  // Draws phases as bands with their names, and gaps in red.
  function drawBands(plot, board) {
    const { ctx, bbox } = plot;
    const { view, source } = board;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    const place = (t) => plot.valToPos(Math.min(Math.max(t, view.from), view.to), "x", true);
    source.phases().forEach((phase, i) => {
      if (phase.end_ns < view.from || phase.begin_ns > view.to) return;
      const left = place(phase.begin_ns);
      const right = place(phase.end_ns);
      ctx.globalAlpha = i % 2 === 0 ? 0.16 : 0.07;
      ctx.fillStyle = css("--band");
      ctx.fillRect(left, bbox.top, Math.max(right - left, 1), bbox.height);
      ctx.globalAlpha = 1;
      if (right - left > ctx.measureText(phase.name).width + 6) {
        ctx.fillStyle = css("--quiet");
        ctx.fillText(phase.name, left + 3, bbox.top + 2);
      }
    });
    ctx.fillStyle = css("--gap");
    gapShares(source.gaps(), view, Math.ceil(bbox.width)).forEach((share, x) => {
      if (share === 0) return;
      ctx.globalAlpha = 0.1 + 0.15 * Math.min(share, 1); // at least 0.1, to show the shortest gap
      ctx.fillRect(Math.floor(bbox.left) + x, bbox.top, 1, bbox.height);
    });
    ctx.restore();
  }

  // --- navigation -------------------------------------------------------------------------------

  // Charts over one range of time. `source` has:
  //   columns            [{name, metric, kind, unit}]
  //   lines(indices, from, to, pixels)   {times, values, single}, as from Lines
  //   bounds()           [first, last] in nanoseconds
  //   phases(), gaps()   [{name, begin_ns, end_ns}], [{start_ns, end_ns}] by time
  //   instants(ticks, step)   the labels of the time axis
  //   say(cursor)        shows the text above the charts
  //   name()             the name for a picture
  //   moved()            optional: called when the user chooses a range
  //   keys               optional: actions of further keys
  //   groups()           optional: replaces the default grouping of columns into charts
  //   home()             optional: the initial range, if it is not the whole one
  //   drawBehind(plot)   optional: draws behind the lines, in place of phases and gaps
  class Board {
    constructor(box, source) {
      this.box = box;
      this.source = source;
      const [from, to] = this.home();
      this.view = { from, to, rates: true };
      this.charts = [];
      this.pending = false;
      this.asRate = (index) => this.view.rates && source.columns[index].kind === "counter";
    }

    make() {
      this.box.replaceChildren();
      this.charts.forEach((chart) => chart.plot.destroy());
      this.charts = (this.source.groups ? this.source.groups() : groups(this.source.columns)).map((group) => new Chart(this, group));
      this.redraw();
    }

    redraw() {
      if (this.pending) return;
      this.pending = true;
      requestAnimationFrame(() => {
        this.pending = false;
        this.charts.forEach((chart) => chart.draw());
        this.say();
      });
    }

    show(from, to) {
      const least = 10; // ns
      const [first, last] = this.source.bounds();
      const length = Math.min(Math.max(to - from, least), last - first);
      this.view.from = Math.min(Math.max(from, first), last - length);
      this.view.to = this.view.from + length;
      this.redraw();
    }

    // The same as show(), when the user has chosen the range.
    go(from, to) {
      if (this.source.moved) this.source.moved();
      this.show(from, to);
    }

    // Moves the view by a share of its length.
    move(share) {
      const { from, to } = this.view;
      const by = share * (to - from);
      this.go(from + by, to + by);
    }

    home() {
      return this.source.home ? this.source.home() : this.source.bounds();
    }

    whole() {
      this.go(...this.home());
    }

    zoom(factor, center = (this.view.from + this.view.to) / 2) {
      const { from, to } = this.view;
      this.go(center - (center - from) * factor, center + (to - center) * factor);
    }

    steer(event) {
      const actions = {
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
        ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25),
        PageUp: () => this.move(-1), PageDown: () => this.move(1),
        0: () => this.whole(), Home: () => this.go(...this.source.bounds()),
        r: () => this.toggleRates(), t: () => this.toggleTheme(), ...this.source.keys,
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
      event.preventDefault();
      event.stopPropagation();
      actions[event.key]();
    }

    say(cursor) {
      this.source.say(cursor);
    }

    toggleRates() {
      this.view.rates = !this.view.rates;
      document.getElementById("raw").setAttribute("aria-pressed", String(!this.view.rates));
      this.remake();
    }

    toggleTheme() {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      this.remake();
    }

    remake() {
      this.charts.forEach((chart) => chart.make());
      this.redraw();
    }

    resize() {
      this.charts.forEach((chart) => chart.plot.setSize({ width: chart.width(), height: HEIGHT }));
      this.redraw();
    }

    // Connects the buttons #raw, #reset and #theme, the keys (if no element has the focus), and
    // changes of the window's width.
    wire() {
      const on = (id, act) => document.getElementById(id).addEventListener("click", act);
      on("raw", () => this.toggleRates());
      on("reset", () => this.whole());
      on("theme", () => this.toggleTheme());
      addEventListener("keydown", (event) => { if (!event.target.closest("input, select, textarea")) this.steer(event); });
      addEventListener("resize", () => this.resize());
    }
  }

  Object.assign(kymo, { Board, duration: (ns) => scaled(ns, TIMES), bytes: (n) => scaled(n, BYTES), takeToken });
})();
