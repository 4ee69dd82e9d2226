"use strict";
// The page of `kymo diff --html`: recordings laid over each other where they are aligned. Everything that comes out
// of a recording is set as text, never as markup.
(() => {
  const { byId, TIMES, scaled, written, instants, instant, element, css } = kymo;
  const MOST_CHARTS = 40;
  const SIDES = { A: "#0090ff", B: "#f76b15" };
  const diff = JSON.parse(byId("diff").textContent);
  const runs = diff.recordings.map((described, i) => new kymo.Recording(described, `r${i}-`));
  const charts = [];

  // Times on the page count from where a recording is aligned.
  const compared = {
    from: Math.min(...diff.recordings.map((run) => run.window_ns[0] - run.origin_ns)),
    to: Math.max(...diff.recordings.map((run) => run.window_ns[1] - run.origin_ns)),
  };
  const whole = {
    from: Math.min(...diff.recordings.map((run) => run.first_ns - run.origin_ns)),
    to: Math.max(...diff.recordings.map((run) => run.last_ns - run.origin_ns)),
  };
  const view = { ...compared, rates: true };

  // --- charts -----------------------------------------------------------------------------------

  // The runs that have a column of this name, and where it stands in each.
  function linesFor(name) {
    return runs.flatMap((run) => {
      const at = run.shown.findIndex((column) => column.name === name);
      return at < 0 ? [] : [{ run, index: at + 1, column: run.shown[at] }];
    });
  }

  const isRate = (column) => view.rates && column.kind === "counter";

  class Chart {
    constructor(metric, lines) {
      this.lines = lines;
      this.metric = metric;
      this.values = {};
      const legend = element("ul", { class: "legend" }, ...Object.keys(SIDES).map((side) => {
        this.values[side] = element("span", { class: "value" });
        return element("li", {}, element("span", { class: "swatch", style: `background:${SIDES[side]}` }), side, this.values[side]);
      }));
      this.plotBox = element("div");
      this.box = element("div", { class: "chart", tabindex: "0", "aria-label": metric.name },
        element("div", { class: "head" }, element("h2", {}, metric.name), element("span", { class: "change" }, change(metric))), legend, this.plotBox);
      this.box.addEventListener("keydown", (event) => steer(event));
      byId("charts").append(this.box);
      this.make();
    }

    width() {
      return Math.max(byId("charts").clientWidth, 280);
    }

    make() {
      if (this.plot) this.plot.destroy();
      const { column } = this.lines[0];
      const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
      const several = this.lines.length > 2;
      this.plot = new uPlot({
        width: this.width(), height: 190,
        cursor: { sync: { key: "kymo" }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
        legend: { show: false },
        scales: { x: { time: false, range: () => [view.from, view.to] } },
        axes: [
          { ...axis, values: (_, ticks, __, ___, step) => instants(ticks, step) },
          { ...axis, size: 112, values: (_, ticks) => ticks.map((value) => written(value, column.unit, isRate(column))) },
        ],
        series: [{}, ...this.lines.map(({ run }) => ({
          stroke: SIDES[run.described.side], alpha: several ? 0.55 : 0.9, width: 1.25, spanGaps: false, points: { show: false } }))],
        hooks: {
          drawClear: [drawMarks],
          setCursor: [(plot) => this.read(plot.cursor.idx)],
          setSelect: [(plot) => {
            if (plot.select.width < 3) return;
            const from = plot.posToVal(plot.select.left, "x");
            const to = plot.posToVal(plot.select.left + plot.select.width, "x");
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            show(from, to);
          }],
        },
      }, [[], ...this.lines.map(() => [])], this.plotBox);
      this.plot.over.addEventListener("wheel", (event) => {
        event.preventDefault();
        zoom(Math.exp(event.deltaY / 400), this.plot.posToVal(event.offsetX, "x"));
      }, { passive: false });
      this.plot.over.addEventListener("dblclick", () => show(compared.from, compared.to));
    }

    // Each recording has times of its own: where another one has none, its line goes on.
    draw() {
      const pixels = Math.max(this.width() - 100, 100);
      const tables = this.lines.map(({ run, index }) => {
        const origin = run.described.origin_ns;
        const lines = run.linesOf([index], view.from + origin, view.to + origin, pixels, (i) => isRate(run.shown[i - 1]));
        return [lines.times.map((time) => time - origin), lines.values[0]];
      });
      this.plot.setData(uPlot.join(tables, tables.map(() => [0, 2])));
    }

    // What stood last at or before the cursor, of each side's first recording.
    read(at) {
      for (const side of Object.keys(SIDES)) {
        const k = this.lines.findIndex(({ run }) => run.described.side === side);
        let i = at ?? -1;
        while (k >= 0 && i > 0 && this.plot.data[k + 1][i] == null) --i;
        const value = k < 0 || i < 0 ? null : this.plot.data[k + 1][i];
        this.values[side].textContent = at == null ? "" : written(value, this.lines[0].column.unit, isRate(this.lines[0].column));
      }
      if (at != null) say(this.plot.data[0][at]);
    }
  }

  // The marks of each side's first recording as lines with their names, and what was compared as a band.
  function drawMarks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const place = (time) => plot.valToPos(time, "x", true);
    ctx.globalAlpha = 0.12;
    ctx.fillStyle = css("--band");
    ctx.fillRect(place(compared.from), bbox.top, place(compared.to) - place(compared.from), bbox.height);
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    Object.entries(SIDES).forEach(([side, color], row) => {
      const run = diff.recordings.find((recording) => recording.side === side);
      let free = -Infinity;
      for (const phase of run.phases) {
        const x = place(phase.begin_ns - run.origin_ns);
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.globalAlpha = 0.8;
        ctx.fillStyle = color;
        ctx.fillRect(x, bbox.top, devicePixelRatio, bbox.height);
        if (x < free) continue;
        ctx.globalAlpha = 1;
        ctx.fillText(phase.name, x + 3, bbox.top + 2 + row * 14 * devicePixelRatio);
        free = x + ctx.measureText(phase.name).width + 8;
      }
    });
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
    const length = Math.min(Math.max(to - from, 10), whole.to - whole.from);
    view.from = Math.min(Math.max(from, whole.from), whole.to - length);
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
      0: () => show(compared.from, compared.to), Home: () => show(whole.from, whole.to), r: toggleRates, t: toggleTheme,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  function say(cursor) {
    const at = diff.aligned_at ? ` from ${diff.aligned_at}` : "";
    byId("range").textContent = `${instant(view.from)} to ${instant(view.to)}${at}, ${scaled(view.to - view.from, TIMES)}` +
      (diff.recordings.some((run) => run.samples_left_out) ? ": single samples only of what was compared" : "") +
      (cursor === undefined ? "" : ` · at ${instant(cursor)}`);
  }

  function remake() {
    charts.forEach((chart) => chart.make());
    redraw();
  }

  function toggleRates() {
    view.rates = !view.rates;
    byId("raw").setAttribute("aria-pressed", String(!view.rates));
    remake();
  }

  function toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remake();
  }

  // --- what stands beside the charts ------------------------------------------------------------

  const percent = (share) => (share >= 0 ? "+" : "−") + Math.abs(share * 100).toFixed(1) + " %";

  function change(metric) {
    if (metric.a === null || metric.b === null) return metric.a === null ? "only B has it" : "only A has it";
    const size = metric.share === null ? "from nothing" : percent(metric.share);
    return metric.verdict === "changed" ? `${size}, beyond noise` : metric.verdict === "no change" ? "no change beyond noise" : metric.verdict === "the same" ? "the same" : `${size}, not to be told from noise`;
  }

  const amount = (metric, value) => (value === null ? "–" : written(value, metric.unit, metric.what === "rate per second"));
  const label = (metric) => (metric.what === "phase duration" ? "phase: " : "") + metric.name;

  function link(metric) {
    const chart = charts.find((made) => made.metric === metric);
    if (chart === undefined) return label(metric);
    return element("button", { type: "button", title: "Show its chart", onclick: () => chart.box.scrollIntoView({ behavior: "smooth" }) }, label(metric));
  }

  function table(title, head, rows) {
    if (rows.length === 0) return;
    byId("tables").append(element("h2", {}, title), element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {}, text)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))))));
  }

  function tables() {
    const of = (...verdicts) => diff.metrics.filter((metric) => verdicts.includes(metric.verdict));
    table("Changed beyond noise", ["metric", "A", "B", "median shift", "95 % interval", "p", diff.values], of("changed").map((m) => [
      link(m), amount(m, m.a), amount(m, m.b), m.share === null ? "from nothing" : percent(m.share),
      m.a ? `${percent(m.shift_low / m.a)} to ${percent(m.shift_high / m.a)}` : "–",
      m.adjusted_p < 0.0001 ? "< 0.0001" : m.adjusted_p.toFixed(4), `${m.values_a}, ${m.values_b}`]));
    table("Not to be told from noise", ["metric", "A", "B", "difference", "why"], of("cannot be told", "on one side only").map((m) => [
      link(m), amount(m, m.a), amount(m, m.b), m.share === null ? "–" : percent(m.share), element("span", { class: "why" }, m.reason || change(m))]));
    for (const verdict of ["no change", "the same"]) {
      const names = of(verdict).map(label).sort().join(", ");
      if (names) byId("tables").append(element("h2", {}, verdict === "no change" ? "No change beyond noise" : "The same"), element("p", {}, names));
    }
  }

  const fileName = (path) => path.split("/").pop();

  function describe() {
    const side = (name) => diff.recordings.filter((run) => run.side === name);
    const named = (name) => (side(name).length === 1 ? fileName(side(name)[0].path) : `${side(name).length} recordings`);
    document.title = `${named("A")} → ${named("B")}`;
    byId("title").textContent = document.title;
    byId("subtitle").textContent = `${diff.test}'s test, a value of each ${diff.values === "runs" ? "run" : "block"}; p by ${diff.correction} over ${diff.tested} metrics` +
      (diff.margin > 0 ? `; up to ${diff.margin * 100} % is no change` : "");
    const changed = diff.metrics.filter((metric) => metric.verdict === "changed").length;
    const told = changed > 0 || diff.metrics.some((metric) => metric.verdict === "no change");
    byId("quality").append(element("li", { class: changed || !told ? "warning" : "good" },
      !told ? "nothing can be told from noise" : changed === 0 ? "nothing changed beyond noise" : `${changed} ${changed === 1 ? "metric" : "metrics"} changed beyond noise`));
    for (const note of diff.notes) byId("quality").append(element("li", { class: "warning" }, note));
    for (const run of diff.recordings) {
      byId("sides").append(element("li", {}, element("span", { class: "swatch", style: `background:${SIDES[run.side]}` }), `${run.side}: ${run.path}`));
    }
  }

  async function begin() {
    describe();
    await Promise.all(runs.map((run) => run.readOutlines()));
    await Promise.all(runs.map((run) => run.readSamples()));
    const drawn = diff.metrics.map((metric) => [metric, metric.what === "phase duration" ? [] : linesFor(metric.name)]).filter(([, lines]) => lines.length > 0);
    for (const [metric, lines] of drawn.slice(0, MOST_CHARTS)) charts.push(new Chart(metric, lines));
    if (drawn.length > MOST_CHARTS) byId("charts").append(element("p", {}, `${drawn.length - MOST_CHARTS} more metrics are not drawn`));
    tables();
    redraw();
    requestAnimationFrame(() => (document.documentElement.dataset.state = "whole"));
  }

  byId("raw").addEventListener("click", toggleRates);
  byId("theme").addEventListener("click", toggleTheme);
  byId("reset").addEventListener("click", () => show(compared.from, compared.to));
  addEventListener("keydown", (event) => { if (event.target === document.body) steer(event); });
  addEventListener("resize", () => {
    charts.forEach((chart) => chart.plot.setSize({ width: chart.width(), height: 190 }));
    redraw();
  });
  begin();
  // For tests: what is on the screen.
  window.kymoPage = { view, show, charts, diff };
})();
