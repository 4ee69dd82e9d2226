"use strict";
// The page of `kymo report --html`: draws what the C++ side packed (docs/report-page.md). Everything that comes
// out of a recording is set as text, never as markup.
(() => {
  const { byId, COLORS, TIMES, scaled, written, instants, instant, element, css } = kymo;
  const recording = JSON.parse(byId("recording").textContent);
  const data = new kymo.Recording(recording);
  const { shown, gaps } = data;

  // --- what a range shows -----------------------------------------------------------------------

  const view = { from: recording.first_ns, to: Math.max(recording.last_ns, recording.first_ns + 1), rates: true };
  const asRate = (index) => view.rates && shown[index - 1].kind === "counter";

  // --- charts -----------------------------------------------------------------------------------

  // What belongs together: columns of one metric; else those of one unit and kind.
  function groups() {
    const all = new Map();
    shown.forEach((column, i) => {
      const several = shown.filter((other) => other.metric && other.metric === column.metric).length > 1;
      const key = several ? column.metric : `${column.kind} ${column.unit}`;
      const title = several ? column.metric
        : `${column.kind === "counter" ? "Counters" : "Gauges"}${column.unit ? ", " + column.unit : ""}`;
      if (!all.has(key)) all.set(key, { title, indices: [] });
      all.get(key).indices.push(i + 1);
    });
    return [...all.values()];
  }

  const charts = [];

  class Chart {
    constructor(group) {
      this.indices = group.indices;
      this.on = group.indices.map(() => true);
      this.values = [];
      this.box = element("div", { class: "chart", tabindex: "0", "aria-label": group.title });
      this.plotBox = element("div");
      this.legend = element("ul", { class: "legend" });
      const save = element("button", { type: "button", title: "Save this chart as a picture" }, "PNG");
      save.addEventListener("click", () => this.save(group.title));
      this.box.append(element("div", { class: "head" }, element("h2", {}, group.title), save), this.legend, this.plotBox);
      this.box.addEventListener("keydown", (event) => steer(event));
      byId("charts").append(this.box);
      this.makeLegend();
      this.make();
    }

    makeLegend() {
      this.legend.replaceChildren();
      this.values = this.indices.map((index, k) => {
        const value = element("span", { class: "value" });
        const button = element("button", { type: "button", "aria-pressed": "true", title: "Hide or show; with Shift: this one alone" },
          element("span", { class: "swatch", style: `background:${COLORS[k % COLORS.length]}` }), shown[index - 1].name, value);
        button.addEventListener("click", (event) => this.toggle(k, event.shiftKey));
        this.legend.append(element("li", {}, button));
        return value;
      });
    }

    toggle(k, alone) {
      if (alone) {
        const only = this.on.every((on, i) => on === (i === k));
        this.on = this.on.map((_, i) => only || i === k);
      } else this.on[k] = !this.on[k];
      this.on.forEach((on, i) => {
        this.plot.setSeries(i + 1, { show: on });
        this.legend.children[i].firstChild.setAttribute("aria-pressed", String(on));
      });
    }

    make() {
      if (this.plot) this.plot.destroy();
      const unit = shown[this.indices[0] - 1].unit;
      const rate = asRate(this.indices[0]);
      const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
      this.plot = new uPlot({
        width: this.width(), height: 190,
        cursor: { sync: { key: "kymo" }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
        legend: { show: false },
        scales: { x: { time: false, range: () => [view.from, view.to] } },
        axes: [
          { ...axis, values: (_, ticks, __, ___, step) => instants(ticks, step) },
          { ...axis, size: 112, values: (_, ticks) => ticks.map((v) => written(v, unit, rate)) },
        ],
        series: [{}, ...this.indices.map((_, k) => ({
          stroke: COLORS[k % COLORS.length], width: 1.25, show: this.on[k], spanGaps: false, points: { show: false } }))],
        hooks: {
          drawClear: [(plot) => drawBands(plot)],
          setCursor: [(plot) => this.read(plot.cursor.idx)],
          setSelect: [(plot) => {
            if (plot.select.width < 3) return;
            const from = plot.posToVal(plot.select.left, "x");
            const to = plot.posToVal(plot.select.left + plot.select.width, "x");
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            show(from, to);
          }],
        },
      }, [[], ...this.indices.map(() => [])], this.plotBox);
      const over = this.plot.over;
      over.addEventListener("wheel", (event) => {
        event.preventDefault();
        zoom(Math.exp(event.deltaY / 400), this.plot.posToVal(event.offsetX, "x"));
      }, { passive: false });
      over.addEventListener("dblclick", () => show(recording.first_ns, recording.last_ns));
    }

    width() {
      return Math.max(byId("charts").clientWidth, 280);
    }

    draw() {
      const lines = data.linesOf(this.indices, view.from, view.to, Math.max(this.width() - 100, 100), asRate);
      this.plot.setData([lines.times, ...lines.values]);
      this.single = lines.single;
    }

    // The values under the cursor.
    read(at) {
      this.indices.forEach((index, k) => {
        const line = this.plot.data[k + 1];
        this.values[k].textContent = at === null || at === undefined ? "" : written(line[at], shown[index - 1].unit, asRate(index));
      });
      if (at !== null && at !== undefined) say(this.plot.data[0][at]);
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
      ink.fillText(`${title} · ${fileName()}`, 12, 24);
      let x = 12;
      ink.font = "16px system-ui, sans-serif";
      this.indices.forEach((index, k) => {
        if (!this.on[k]) return;
        ink.fillStyle = COLORS[k % COLORS.length];
        ink.fillText(shown[index - 1].name, x, 50);
        x += ink.measureText(shown[index - 1].name).width + 24;
      });
      canvas.toBlob((blob) => {
        const link = element("a", { href: URL.createObjectURL(blob), download: `${title.replace(/[^\w-]+/g, "-")}.png` });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      });
    }
  }

  // Phases as bands with their names, gaps in red.
  function drawBands(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    const place = (t) => plot.valToPos(Math.min(Math.max(t, view.from), view.to), "x", true);
    recording.phases.forEach((phase, i) => {
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
    ctx.globalAlpha = 0.25;
    ctx.fillStyle = css("--gap");
    for (const gap of gaps) {
      if (gap.end_ns < view.from || gap.start_ns > view.to) continue;
      ctx.fillRect(place(gap.start_ns), bbox.top, Math.max(place(gap.end_ns) - place(gap.start_ns), 1), bbox.height);
    }
    ctx.restore();
  }

  // --- moving about -----------------------------------------------------------------------------

  let pending = false;
  function redraw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      charts.forEach((chart) => chart.draw());
      say();
    });
  }

  function show(from, to) {
    const least = 10; // ns
    const whole = [recording.first_ns, Math.max(recording.last_ns, recording.first_ns + 1)];
    const length = Math.min(Math.max(to - from, least), whole[1] - whole[0]);
    view.from = Math.min(Math.max(from, whole[0]), whole[1] - length);
    view.to = view.from + length;
    redraw();
  }

  function zoom(factor, center) {
    show(center - (center - view.from) * factor, center + (view.to - center) * factor);
  }

  function steer(event) {
    const length = view.to - view.from;
    const middle = view.from + length / 2;
    const actions = {
      "+": () => zoom(0.5, middle), "=": () => zoom(0.5, middle), "-": () => zoom(2, middle),
      ArrowLeft: () => show(view.from - length / 4, view.to - length / 4),
      ArrowRight: () => show(view.from + length / 4, view.to + length / 4),
      0: () => show(recording.first_ns, recording.last_ns), Home: () => show(recording.first_ns, recording.last_ns),
      r: toggleRates, t: toggleTheme,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  function say(cursor) {
    const what = charts.length === 0 ? "" : charts.every((chart) => chart.single) ? "single samples; lowest to highest where a pixel holds several"
      : recording.samples_left_out ? "lowest to highest of each 1,024 rows: single samples here are not in this page" : "lowest to highest of each 1,024 rows";
    byId("range").textContent = `${instant(view.from)} to ${instant(view.to)}, ${scaled(view.to - view.from, TIMES)}: ${what}` +
      (cursor === undefined ? "" : ` · at ${instant(cursor)}`);
  }

  function toggleRates() {
    view.rates = !view.rates;
    byId("raw").setAttribute("aria-pressed", String(!view.rates));
    charts.forEach((chart) => chart.make());
    redraw();
  }

  function toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    charts.forEach((chart) => chart.make());
    redraw();
  }

  // --- what stands beside the charts ------------------------------------------------------------

  const fileName = () => recording.path.split("/").pop();

  function table(title, head, rows) {
    if (rows.length === 0) return;
    byId("tables").append(element("h2", {}, title), element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {}, text)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))))));
  }

  function describe() {
    const about = recording.about || {};
    const request = about.request ? `${about.request}${about.job ? " of " + about.job.name : ""}` : "";
    document.title = fileName();
    byId("title").textContent = (request ? request + " · " : "") + fileName();
    byId("subtitle").textContent = [
      `${recording.rows.toLocaleString("en")} rows in ${scaled(recording.duration_ns, TIMES)}`,
      recording.interval_ns ? `one every ${scaled(recording.interval_ns, TIMES)}` : "",
      recording.start_unix_ns ? new Date(recording.start_unix_ns / 1e6).toISOString() : "", recording.host || "", recording.state || "",
    ].filter(Boolean).join(" · ");
    for (const verdict of recording.quality) byId("quality").append(element("li", { class: verdict.level }, verdict.text));
    for (const note of recording.notes) byId("quality").append(element("li", { class: "warning" }, note));
    for (const span of recording.left_out) {
      byId("quality").append(element("li", { class: "bad" }, `lines ${span.first_line} to ${span.last_line} left out: ${span.reason}`));
    }
  }

  function tables() {
    table("Phases, from mark to mark", ["phase", "begins", "lasts"], recording.phases.map((phase) => {
      const go = element("button", { type: "button", title: "Show it" }, phase.name);
      go.addEventListener("click", () => show(phase.begin_ns, phase.end_ns));
      return [go, instant(phase.begin_ns), scaled(phase.end_ns - phase.begin_ns, TIMES)];
    }));
    const tree = (recording.about || {}).timing;
    if (tree) table("Where the request's time went", ["part", "lasts", "share", ""], treeRows(tree, tree.duration_ns || 1, 0));
    table("Counters", ["counter", "first", "last", "mean rate", "highest rate", "at"],
      shown.filter((column) => column.kind === "counter").map((c) => [c.name, written(c.first, c.unit), written(c.last, c.unit),
        written(c.rate_per_second, c.unit, true), written(c.highest_rate_per_second, c.unit, true), instant(c.highest_rate_at_ns)]));
    table("Gauges", ["gauge", "first", "last", "lowest", "highest", "mean"],
      shown.filter((column) => column.kind !== "counter").map((c) => [c.name, ...[c.first, c.last, c.min, c.max, c.mean].map((v) => written(v, c.unit))]));
    table("Gaps", ["begins", "lasts", "ticks", "cause"],
      gaps.map((gap) => [instant(gap.start_ns), scaled(gap.end_ns - gap.start_ns, TIMES), gap.ticks.toLocaleString("en"), gap.cause]));
    const idle = recording.columns.filter((column) => column.idle);
    if (idle.length > 0) {
      byId("tables").append(element("h2", {}, "Never changed"), element("p", {}, idle.map((c) => `${c.name} = ${c.first}`).join(", ")));
    }
    const { columns: _, phases, gaps: __, quality, notes, left_out, ...rest } = recording;
    const about = { ...rest.about };
    delete about.timing;
    byId("tables").append(element("h2", {}, "Metadata"), element("pre", {}, JSON.stringify({ ...rest, about }, null, 2)));
  }

  function treeRows(node, whole, depth) {
    const share = (node.duration_ns || 0) / whole;
    const bar = element("span", { class: "track" }, element("span", { class: "bar", style: `width:${(12 * share).toFixed(3)}rem` }));
    const name = "\u2003".repeat(depth) + node.name + (node.parallel ? " (parallel)" : "") + (node.redundant ? " (in what stands above)" : "");
    const row = [name, scaled(node.duration_ns || 0, TIMES), (share * 100).toFixed(1) + " %", bar];
    return [row, ...(node.components || []).flatMap((part) => treeRows(part, whole, depth + 1))];
  }

  // --- the beginning ----------------------------------------------------------------------------

  async function begin() {
    describe();
    tables();
    if (recording.rows === 0) return;
    await data.readOutlines();
    for (const group of groups()) charts.push(new Chart(group));
    redraw();
    document.documentElement.dataset.state = "outlines";
  }

  const begun = begin();
  window.kymoSamplesAreThere = async () => {
    await begun;
    await data.readSamples();
    redraw();
    requestAnimationFrame(() => (document.documentElement.dataset.state = "whole"));
  };

  byId("raw").addEventListener("click", toggleRates);
  byId("theme").addEventListener("click", toggleTheme);
  byId("reset").addEventListener("click", () => show(recording.first_ns, recording.last_ns));
  addEventListener("keydown", (event) => { if (event.target === document.body) steer(event); });
  addEventListener("resize", () => {
    charts.forEach((chart) => chart.plot.setSize({ width: chart.width(), height: 190 }));
    redraw();
  });
  // For tests: what is on the screen.
  window.kymoPage = { view, show, charts, data };
})();
