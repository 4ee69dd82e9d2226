"use strict";
// The page of `kymo report --html`: draws the data that the C++ code packed (docs/report-page.md).
// All data from a recording is set as text, never as markup.
(() => {
  const { Board, byId, duration, written, instants, instant, element } = kymo;
  const recording = JSON.parse(byId("recording").textContent);
  const data = new kymo.Recording(recording);
  const { shown, gaps } = data;

  // --- charts -----------------------------------------------------------------------------------

  const fileName = () => recording.path.split("/").pop();
  const board = new Board(byId("charts"), {
    columns: shown,
    // Column 0 of the data is the time, so the shown columns begin at 1.
    lines: (indices, from, to, pixels) => data.linesOf(indices.map((i) => i + 1), from, to, pixels, (i) => board.asRate(i - 1)),
    bounds: () => [recording.first_ns, Math.max(recording.last_ns, recording.first_ns + 1)],
    phases: () => recording.phases,
    gaps: () => gaps,
    name: fileName,
    instants,
    say(cursor) {
      const { charts, view } = board;
      const what = charts.length === 0 ? "" : charts.every((chart) => chart.single) ? "single samples; lowest to highest where a pixel holds several"
        : recording.samples_left_out ? "lowest to highest of each 1,024 rows: single samples here are not in this page" : "lowest to highest of each 1,024 rows";
      byId("range").textContent = `${instant(view.from)} to ${instant(view.to)}, ${duration(view.to - view.from)}: ${what}` +
        (cursor === undefined ? "" : ` · at ${instant(cursor)}`) + (data.trouble ? ` · ${data.trouble}` : "");
    },
  });

  // --- text and tables --------------------------------------------------------------------------

  function table(title, head, rows) {
    if (rows.length > 0) byId("tables").append(element("h2", {}, title), kymo.table(head, rows));
  }

  function describe() {
    const about = recording.about || {};
    const request = about.request ? `${about.request}${about.job ? " of " + about.job.name : ""}` : "";
    document.title = fileName();
    byId("title").textContent = (request ? request + " · " : "") + fileName();
    byId("subtitle").textContent = [
      `${recording.rows.toLocaleString("en")} rows in ${duration(recording.duration_ns)}`,
      recording.interval_ns ? `one every ${duration(recording.interval_ns)}` : "",
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
      go.addEventListener("click", () => board.go(phase.begin_ns, phase.end_ns));
      return [go, instant(phase.begin_ns), duration(phase.end_ns - phase.begin_ns)];
    }));
    const tree = (recording.about || {}).timing;
    if (tree) table("Where the request's time went", ["part", "lasts", "share", ":"], treeRows(tree, tree.duration_ns || 1, 0));
    table("Counters", ["counter", "first", "last", "mean rate", "highest rate", "at"],
      shown.filter((column) => column.kind === "counter").map((c) => [c.name, written(c.first, c.unit), written(c.last, c.unit),
        written(c.rate_per_second, c.unit, true), written(c.highest_rate_per_second, c.unit, true), instant(c.highest_rate_at_ns)]));
    table("Gauges", ["gauge", "first", "last", "lowest", "highest", "mean"],
      shown.filter((column) => column.kind !== "counter").map((c) => [c.name, ...[c.first, c.last, c.min, c.max, c.mean].map((v) => written(v, c.unit))]));
    table("Gaps", ["begins", "lasts", "ticks", "cause:"],
      gaps.map((gap) => [instant(gap.start_ns), duration(gap.end_ns - gap.start_ns), gap.ticks.toLocaleString("en"), gap.cause]));
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
    const row = [name, duration(node.duration_ns || 0), (share * 100).toFixed(1) + " %", bar];
    return [row, ...(node.components || []).flatMap((part) => treeRows(part, whole, depth + 1))];
  }

  // --- start ------------------------------------------------------------------------------------

  async function begin() {
    describe();
    tables();
    if (recording.rows === 0) return;
    await data.readOutlines();
    board.make();
    document.documentElement.dataset.state = "outlines";
  }

  const begun = begin();
  window.kymoSamplesAreThere = async () => {
    await begun;
    if (recording.served) data.serve(kymo.takeToken(), () => board.redraw());
    else await data.readSamples();
    board.redraw();
    requestAnimationFrame(() => (document.documentElement.dataset.state = "whole"));
  };

  board.wire();
  // For tests: what the page shows.
  window.kymoPage = { view: board.view, show: (from, to) => board.show(from, to), get charts() { return board.charts; }, data };
})();
