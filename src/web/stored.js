"use strict";
// What kymod stores: jobs and checkpoints, one checkpoint, a comparison of two, the history of a
// job. All data from kymod is set as text, never as markup.
(() => {
  const { byId, element, table, written, duration, bytes, COLORS } = kymo;
  const { get, token } = KymoLive;
  const box = byId("stored");
  const ticked = new Set(); // ids of checkpoints, in the order in which the user ticked them

  const link = (text, hash) => element("a", { href: "#" + hash }, text);
  const when = (unix_ns) => new Date(unix_ns / 1e6).toLocaleString("sv");
  const micros = (us) => duration(us * 1000);
  const part = (name, value) => `${name}=${encodeURIComponent(value)}`;

  const section = (title, ...children) => element("section", {}, element("h2", {}, title), ...children);

  // --- jobs and checkpoints ---------------------------------------------------------------------

  function ending(job) {
    if (job.exit_code !== null) return `exit code ${job.exit_code}`;
    return job.exit_signal === null ? "" : `ended by signal ${job.exit_signal}`;
  }

  function jobsTable(jobs) {
    if (jobs.length === 0) return element("p", {}, "There is no job: kymo run starts one.");
    return table(["job", "state:", "pid", "begun:", "command:", ":"], jobs.map((job) => [
      link(job.name, part("history", job.name)), job.frozen ? "frozen" : job.state, job.state === "running" ? String(job.pid) : "–", when(job.created_unix_ns),
      job.command.join(" "), [ending(job), job.reason && `its newest dump failed: ${job.reason}`].filter(Boolean).join("; ")]));
  }

  function checkpointsTable(checkpoints) {
    if (checkpoints.length === 0) return element("p", {}, "There is no checkpoint: kymo dump makes one.");
    const compare = element("button", { type: "button", id: "compare", disabled: "" }, "compare the two that are ticked");
    compare.addEventListener("click", () => (location.hash = part("comparison", [...ticked].join(","))));
    const rows = checkpoints.slice().reverse().map((one) => {
      const tick = element("input", { type: "checkbox", "aria-label": `Compare ${one.id}`, ...(ticked.has(one.id) ? { checked: "" } : {}) });
      tick.addEventListener("change", () => {
        if (tick.checked) ticked.add(one.id);
        else ticked.delete(one.id);
        compare.disabled = ticked.size !== 2;
      });
      return [tick, link(one.id, part("checkpoint", one.id)), one.job || `process ${one.pid}`, when(one.created_unix_ns), one.state,
        one.image_bytes ? bytes(one.image_bytes) : "–", one.duration_ns ? duration(one.duration_ns) : "–",
        one.stats === null ? "–" : micros(one.stats.frozen_time_us), one.reason];
    });
    compare.disabled = ticked.size !== 2;
    return element("div", {}, compare, table(["", "checkpoint:", "of:", "begun:", "state:", "images", "took", "frozen", ":"], rows, { id: "checkpoints" }));
  }

  async function overview() {
    const [jobs, checkpoints] = await Promise.all([get("/api/jobs"), get("/api/checkpoints")]);
    for (const id of ticked) if (!checkpoints.some((one) => one.id === id)) ticked.delete(id);
    return [section("Jobs", jobsTable(jobs)), section("Checkpoints", checkpointsTable(checkpoints))];
  }

  // --- one checkpoint ---------------------------------------------------------------------------

  // Draws a timing tree from top to bottom. The width of a part is its duration; its own parts are
  // below it.
  function icicle(tree) {
    const whole = tree.duration_ns || 1;
    const inner = element("div", { class: "icicle", role: "img", "aria-label": "Timing tree" });
    let depths = 1;
    const place = (node, depth, at) => {
      const parts = node.components || [];
      const took = node.duration_ns || parts.reduce((sum, one) => sum + (one.duration_ns || 0), 0);
      depths = Math.max(depths, depth + 1);
      const text = `${node.name} ${duration(took)}${node.parallel ? " (parallel)" : ""}${node.redundant ? " (said elsewhere)" : ""}`;
      inner.append(element("div", { class: "scope" + (node.error ? " failed" : ""), title: text + (node.error ? `: ${node.error}` : ""), tabindex: "0",
        style: `left:${(100 * at) / whole}%;width:${(100 * took) / whole}%;top:${depth * 1.5}rem;border-color:${COLORS[depth % COLORS.length]}` }, text));
      let next = at;
      for (const one of parts) {
        const begun = one.start_ns !== undefined && tree.start_ns !== undefined ? one.start_ns - tree.start_ns : next;
        next = begun + place(one, depth + 1, begun);
      }
      return took;
    };
    place(tree, 0, 0);
    inner.style.height = `${depths * 1.5}rem`;
    return inner;
  }

  function phasesTable(phases) {
    const share = (us) => `${((100 * us) / (phases.total_us || 1)).toFixed(1)} %`;
    const bar = (us) => element("span", { class: "track" }, element("span", { class: "bar", style: `width:${(12 * us) / (phases.total_us || 1)}rem` }));
    return table(["phase", "took", "share", ":", "evidence:"], phases.phases.map((one) => [
      one.name, micros(one.duration_us), share(one.duration_us), bar(one.duration_us), one.evidence]));
  }

  function figures(stats) {
    return table(["CRIU says", ""], Object.entries(stats).map(([name, value]) => [
      name, name.endsWith("_us") || name.endsWith("_time") ? micros(value) : value.toLocaleString("en")]));
  }

  function recordingBox(id, recording) {
    const frame = element("iframe", { title: `Recording ${recording.name}`, loading: "lazy",
      src: `/recording?${new URLSearchParams({ checkpoint: id, name: recording.name, token })}` });
    // The frame gets the height of its content.
    frame.addEventListener("load", () => {
      const fit = () => (frame.style.height = `${frame.contentDocument.documentElement.scrollHeight + 8}px`);
      new ResizeObserver(fit).observe(frame.contentDocument.body);
      fit();
    });
    return frame;
  }

  async function checkpoint(id) {
    const all = await get("/api/checkpoint", { id });
    const one = all.checkpoint;
    const parts = [element("h2", {}, `Checkpoint ${one.id} of ${one.job || `process ${one.pid}`}`),
      element("p", {}, [one.state, when(one.created_unix_ns), one.image_bytes ? bytes(one.image_bytes) : "", one.duration_ns ? duration(one.duration_ns) : "",
        one.directory].filter(Boolean).join(" · "))];
    if (one.error) parts.push(element("p", { class: "fault" }, one.error));
    if (all.stats_error) parts.push(element("p", { class: "fault" }, all.stats_error));
    for (const recording of all.recordings) {
      const timing = (recording.about || {}).timing;
      if (timing) parts.push(section(`Where the ${recording.about.request || recording.name}'s time went`, icicle(timing)));
    }
    const stats = all.stats || {};
    for (const kind of ["dump", "restore"]) {
      if (stats[kind + "_phases"]) parts.push(section(`Phases of the ${kind}, from CRIU's log`, phasesTable(stats[kind + "_phases"])));
      if (stats[kind]) parts.push(section(`Statistics of the ${kind}`, figures(stats[kind])));
    }
    if ((stats.processes || []).length > 0) {
      parts.push(section("Pages", table(["process", "command:", "pages", "largest mapping:", "pages"], stats.processes.map((process) => {
        const [largest] = process.mappings.slice().sort((a, b) => b.pages - a.pages);
        return [String(process.pid), process.command, process.pages.toLocaleString("en"), largest ? largest.name : "", largest ? largest.pages.toLocaleString("en") : ""];
      }))));
    }
    for (const note of stats.notes || []) parts.push(element("p", {}, note));
    for (const recording of all.recordings) {
      parts.push(section(`Recording of the ${recording.name}`, recording.error ? element("p", { class: "fault" }, recording.error) : recordingBox(one.id, recording)));
    }
    return parts;
  }

  // --- two checkpoints, and a job's history -----------------------------------------------------

  async function comparison(ids) {
    const [before, after] = ids.split(",");
    const { differences, notes } = await get("/api/comparison", { before, after });
    const value = (difference, at) => (difference[at] === null ? "–" : written(difference[at], difference.unit, difference.per_second));
    const rows = differences.map((one) => {
      if (one.a === null || one.b === null) return [`${one.group}: ${one.name}`, value(one, "a"), value(one, "b"), one.a === null ? "only after" : "only before"];
      const change = element("span", {}, (one.change > 0 ? "+" : "") + (one.share === null ? written(one.change, one.unit, one.per_second) : `${(one.share * 100).toFixed(1)} %`));
      return [`${one.group}: ${one.name}`, value(one, "a"), value(one, "b"), change];
    });
    return [section("Comparison, what changed most first", element("p", {}, "before ", link(before, part("checkpoint", before)), " · after ", link(after || "", part("checkpoint", after || ""))), ...notes.map((note) => element("p", {}, note)),
      rows.length === 0 ? element("p", {}, "There is no difference.") : table(["what", "before", "after", "change"], rows, { id: "differences" }))];
  }

  const METRICS = { duration: ["duration_ns", "nanoseconds"], frozen: ["frozen_ns", "nanoseconds"], bytes: ["image_bytes", "bytes"] };

  // A bar for each run, the newest at the right, and a line at each lasting change.
  function trend(history, field, unit) {
    const runs = history.runs.filter((run) => !run.error);
    const most = Math.max(...runs.map((run) => run[field] || 0), 1);
    const bars = element("div", { class: "trend", role: "img", "aria-label": "Runs, oldest first" });
    runs.forEach((run) => {
      const change = history.changes.find((one) => one.checkpoint === run.checkpoint);
      bars.append(element("a", { href: "#" + part("checkpoint", run.checkpoint), class: (change ? (change.worse ? "worse " : "better ") : "") + (run.cold ? "cold" : ""),
        title: `${when(run.created_unix_ns)}: ${written(run[field], unit)}${run.warmth ? ", " + run.warmth : ""}`, style: `height:${(100 * (run[field] || 0)) / most}%` }));
    });
    return bars;
  }

  async function history(job, options) {
    const kind = options.get("kind") || "dumps";
    const metric = options.get("metric") in METRICS ? options.get("metric") : "duration";
    const all = await get("/api/history", { job, kind, metric });
    const [field, unit] = METRICS[metric];
    const choice = (name, values, chosen) => element("span", { class: "choice" }, ...values.map((value) => {
      const made = link(value, [part("history", job), part("kind", name === "kind" ? value : kind), part("metric", name === "metric" ? value : metric)].join("&"));
      if (value === chosen) made.setAttribute("aria-current", "true");
      return made;
    }));
    const parts = [element("h2", {}, `History of ${all.job}`), element("p", {}, choice("kind", ["dumps", "restores"], kind), choice("metric", Object.keys(METRICS), metric))];
    if (all.runs.length === 0) return [...parts, element("p", {}, `There are no ${kind} yet.`)];
    parts.push(trend(all, field, unit));
    for (const change of all.changes) {
      const [phase] = change.phases_ns;
      parts.push(element("p", { class: change.worse ? "fault" : "" }, `${change.worse ? "Worse" : "Better"} from `, link(change.checkpoint, part("checkpoint", change.checkpoint)),
        ` on (${when(change.created_unix_ns)}): ${change.ratio.toFixed(2)} times, p = ${change.p.toPrecision(2)} by ${change.test}'s test` +
        (phase ? `; what moved most: ${phase.name}, ${duration(phase.before)} to ${duration(phase.after)}` : "")));
    }
    if (all.compared.length < all.runs_needed) {
      parts.push(element("p", { id: "no-change" }, `Too few runs to tell a change: ${all.compared.length} of the ${all.runs_needed} that it takes.`));
    } else if (all.changes.length === 0) {
      parts.push(element("p", { id: "no-change" }, "No lasting change is found."));
    }
    parts.push(table(["checkpoint", "begun:", "took", "frozen", "images", ":", ":"], all.runs.slice().reverse().map((run) => [
      run.checkpoint ? link(run.checkpoint, part("checkpoint", run.checkpoint)) : "–", when(run.created_unix_ns), duration(run.duration_ns),
      run.frozen_ns === null ? "–" : duration(run.frozen_ns), bytes(run.image_bytes), run.warmth, run.reason])));
    return parts;
  }

  // --- choosing the view ------------------------------------------------------------------------

  let shown = 0;
  async function route() {
    const options = new URLSearchParams(location.hash.slice(1));
    const [[name, value] = ["live", ""]] = options;
    const views = { jobs: overview, checkpoint: () => checkpoint(value), comparison: () => comparison(value), history: () => history(value, options) };
    const stored = name in views;
    byId("live").hidden = stored;
    box.hidden = !stored;
    for (const one of document.querySelectorAll("nav a")) {
      if (one.hash === (stored ? "#jobs" : "#live")) one.setAttribute("aria-current", "page");
      else one.removeAttribute("aria-current");
    }
    const own = ++shown;
    if (!stored) return dispatchEvent(new Event("resize"));
    let parts;
    try {
      parts = await views[name]();
    } catch (error) {
      parts = [element("p", { class: "fault" }, error.message)];
    }
    if (own !== shown) return;
    box.replaceChildren(...parts);
    box.dataset.shown = location.hash;
  }

  addEventListener("hashchange", route);
  // A request that has ended appears in the list at once.
  document.addEventListener("kymo-ended", () => location.hash === "#jobs" && route());
  route();
})();
