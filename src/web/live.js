"use strict";
// The page that kymod serves: live charts, and the running dumps and restores. Names are set as
// text, never as markup.
const KymoLive = (() => {
  const { Board, Lines, byId, element, duration, bytes } = kymo;
  const MOST_POINTS = 400_000; // points of a column in this page; older ones are requested again

  // --- requests to kymod ------------------------------------------------------------------------

  const token = kymo.takeToken();

  async function call(path, parameters = {}, options = {}) {
    const query = new URLSearchParams(parameters).toString();
    const reply = await fetch(path + (query ? "?" + query : ""), {
      ...options, headers: { Authorization: "Bearer " + token }, cache: "no-store" });
    if (reply.ok) return reply;
    let message = `${reply.status} ${reply.statusText}`;
    try {
      message = (await reply.json()).error.message;
    } catch { /* not ours */ }
    throw new Error(message);
  }
  const get = async (path, parameters) => (await call(path, parameters)).json();

  // Reads server-sent events until `each` returns false. EventSource cannot send the token.
  async function listen(path, parameters, signal, each) {
    const reply = await call(path, parameters, { signal });
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const [event, data] = text.slice(0, end).split("\n");
          text = text.slice(end + 2);
          if (each(event.slice("event: ".length), JSON.parse(data.slice("data: ".length))) === false) return;
        }
      }
    } finally {
      reader.cancel().catch(() => {}); // the stream has ended, or the events are no longer needed
    }
  }

  // --- received points --------------------------------------------------------------------------

  // Points of the chosen columns, oldest first. Each has its last value, and the lowest and highest
  // value since the point before it.
  class Store {
    constructor(columns) {
      this.count = 0;
      this.room = 4096;
      this.times = new Float64Array(this.room);
      this.parts = Array.from({ length: columns * 3 }, () => new Float64Array(this.room));
    }

    grow(more) {
      if (this.count + more > MOST_POINTS) {
        const drop = Math.min(this.count, Math.max(MOST_POINTS >> 2, more));
        for (const array of [this.times, ...this.parts]) array.copyWithin(0, drop, this.count);
        this.count -= drop;
      }
      while (this.room < this.count + more) this.room *= 2;
      if (this.room === this.times.length) return;
      const larger = (array) => {
        const made = new Float64Array(this.room);
        made.set(array.subarray(0, this.count));
        return made;
      };
      this.times = larger(this.times);
      this.parts = this.parts.map(larger);
    }

    append(samples) {
      const more = samples.time.length;
      this.grow(more);
      this.times.set(samples.time, this.count);
      samples.columns.forEach((column, k) => {
        ["last", "low", "high"].forEach((part, i) => {
          const to = this.parts[3 * k + i];
          const from = column[part];
          for (let at = 0; at < more; ++at) to[this.count + at] = from[at] === null ? NaN : from[at];
        });
      });
      this.count += more;
    }

    first() {
      return this.count === 0 ? Infinity : this.times[0];
    }

    // The first point at or after `t`.
    at(t) {
      let low = 0;
      let high = this.count;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.times[middle] < t) low = middle + 1;
        else high = middle;
      }
      return low;
    }
  }

  const state = { status: null, columns: [], shown: [], chosen: new Set(), store: new Store(0), gaps: [], now: 0, follow: true, trouble: "",
    first: 0, past: null };
  const requests = new Map(); // by id
  let board = null;

  function fill(lines, store, indices, from, to) {
    const rates = indices.map((i) => board.view.rates || state.shown[i].kind !== "counter");
    const low = indices.map((i, k) => store.parts[3 * i + (rates[k] ? 1 : 0)]);
    const high = indices.map((i, k) => store.parts[3 * i + (rates[k] ? 2 : 0)]);
    lines.putAll(store.times, low, high, Math.max(store.at(from) - 1, 0), Math.min(store.at(to) + 1, store.count));
  }

  const source = {
    labelWidth: 96,
    get columns() {
      return state.shown;
    },
    lines(indices, from, to, pixels) {
      const early = from < state.store.first() && state.first < state.store.first();
      if (early) seek(from, Math.min(to, state.store.first(), state.now));
      const past = early ? state.past : null;
      const lines = new Lines(indices.length, (to - from) / pixels, past ? [...past.gaps, ...state.gaps] : state.gaps);
      if (past) fill(lines, past.store, indices, from, Math.min(to, state.store.first()));
      fill(lines, state.store, indices, from, to);
      lines.close();
      lines.single = byId("detail").value === "0";
      return lines;
    },
    bounds: () => {
      const first = Math.min(state.store.first(), state.first, state.now - 1e9);
      return [Math.max(first, 0), Math.max(state.now, first + 1e9)];
    },
    phases: () => [...requests.values()].flatMap((one) => one.phases.map((phase) => (
      { name: phase.name, begin_ns: phase.begin_ns, end_ns: phase.end_ns ?? state.now }))),
    gaps: () => (state.past ? [...state.past.gaps, ...state.gaps] : state.gaps),
    instants: (ticks, step) => ticks.map((t) => clock(t, step)),
    name: () => "kymod",
    moved: () => follow(false),
    say(cursor) {
      const { from, to } = board.view;
      const what = state.shown.length === 0 ? "no metric is chosen" : byId("detail").value === "0" ? "every row" : "lowest to highest";
      byId("range").textContent = `${clock(from, 1e6)} to ${clock(to, 1e6)}, ${duration(to - from)}: ${what}` + before(from) +
        (cursor === undefined ? "" : ` · at ${clock(cursor, 1e5)}`);
    },
    keys: { p: () => follow(!state.follow) },
  };

  // --- older rows -------------------------------------------------------------------------------

  const POINTS = 2000;
  let seeking = null; // the requested range

  // Requests the rows of a range that this page does not have, thinned if the range is long. Only
  // the newest request counts.
  async function seek(from, to) {
    const { past } = state;
    const length = to - from;
    const shown = past && past.from <= from && past.to >= to && (past.span === 0 || past.to - past.from <= 3 * length);
    if (shown || seeking) return;
    const wanted = { from: Math.floor(Math.max(from - length / 2, state.first, 0)), to: Math.ceil(Math.min(to + length / 2, state.store.first(), state.now + 1)) };
    if (wanted.from >= wanted.to || state.shown.length === 0) return;
    if (past && past.asked === `${wanted.from} ${wanted.to}`) return;
    const own = (seeking = state.store);
    const made = { ...wanted, asked: `${wanted.from} ${wanted.to}`, store: new Store(state.shown.length), gaps: [], span: 0, trouble: "" };
    try {
      const samples = await get("/api/past", { columns: state.shown.map((column) => column.name).join(","), from_ns: wanted.from, to_ns: wanted.to,
        points: Math.min(POINTS, Math.floor(400_000 / state.shown.length)) });
      made.store.append(samples);
      Object.assign(made, { gaps: samples.gaps, span: samples.span_ns, trouble: samples.left_out.join("; ") });
    } catch (error) {
      made.trouble = error.message;
    }
    seeking = null;
    if (own === state.store) state.past = made; // otherwise the columns or the recording changed
    board.redraw();
  }

  // The message about the part of the shown range that is older than this page's points.
  function before(from) {
    const { past } = state;
    if (from >= state.store.first() || state.first >= state.store.first()) return "";
    if (!past) return " · looking for what was before";
    return past.trouble ? ` · before: ${past.trouble}` : past.span ? ` · before: lowest to highest of each ${duration(past.span)}` : "";
  }

  // A time of the recording as wall clock time, with enough digits for `step`.
  function clock(ns, step) {
    const start = state.status && state.status.recorder.start_unix_ns ? state.status.recorder.start_unix_ns / 1e6 : 0;
    const ms = start + ns / 1e6;
    const date = new Date(ms);
    const two = (n) => String(n).padStart(2, "0");
    const whole = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    const digits = step >= 1e9 ? 0 : step >= 1e6 ? 3 : 6;
    return digits === 0 ? whole : whole + (((ms % 1000) + 1000) % 1000 / 1000).toFixed(digits).slice(1);
  }

  // --- following --------------------------------------------------------------------------------

  function follow(on) {
    state.follow = on;
    byId("pause").setAttribute("aria-pressed", String(!on));
    byId("pause").textContent = on ? "pause" : "follow";
    if (on) advance();
  }

  function advance() {
    if (!board || !state.follow || (state.status && !state.status.recorder.running)) return;
    board.show(state.now - Number(byId("window").value) * 1e9, state.now);
  }

  function take(samples) {
    state.gaps = samples.gaps;
    state.now = Math.max(state.now, samples.now_ns);
    state.store.append(samples);
    document.documentElement.dataset.state = "live";
    advance();
  }

  // Clears everything, because another recording has its own clock.
  function forget() {
    for (const [id, request] of requests) {
      if (request.state === "running") continue;
      request.box.remove();
      requests.delete(id);
    }
  }

  let stop = null;
  // Keeps one stream open, with the columns that are chosen now, and reconnects when kymod has
  // restarted.
  async function connect() {
    if (stop) stop.abort();
    const own = (stop = new AbortController());
    for (;;) {
      let changed = false;
      try {
        await begin();
        state.store = new Store(state.shown.length);
        state.past = null;
        board.make();
        if (!state.status.recorder.running) board.show(...source.bounds());
        say("");
        const parameters = { columns: state.shown.map((column) => column.name).join(","), per_second: byId("detail").value, back_ns: "600000000000" };
        await listen("/api/live", parameters, own.signal, (event, data) => {
          // The status was requested earlier. It is outdated if a recording has ended since then
          // and the next one has begun.
          const { recorder } = state.status;
          changed = event === "changed" || (event === "samples" && (data.running !== recorder.running || data.start_unix_ns !== recorder.start_unix_ns));
          if (changed) return false;
          if (event === "samples") take(data);
          else data.forEach(meet);
          return true;
        });
        if (changed) {
          forget();
          continue;
        }
        if (!own.signal.aborted) say("kymod ended the stream: trying again");
      } catch (error) {
        if (own.signal.aborted) return;
        say(error.message === "Failed to fetch" || error.message === "network error" ? "kymod does not answer: trying again" : error.message);
      }
      if (own.signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  function say(trouble) {
    state.trouble = trouble;
    const { status } = state;
    const recorder = status ? status.recorder : {};
    byId("subtitle").className = trouble ? "fault" : "";
    byId("subtitle").textContent = trouble || !status ? trouble
      : `kymod ${status.version} on ${status.host} · ` + (recorder.running ? `a row every ${duration(recorder.interval_ns)}` : "the recorder stands: nothing is recorded");
  }

  // --- columns ----------------------------------------------------------------------------------

  const FIRST = ["image_written_bytes", "request_done_bytes", "request_remaining_bytes", "phase", "processes_managed",
    "profiler_rows", "profiler_missed_ticks", "frozen_time_us"];

  function choose() {
    state.shown = state.columns.filter((column) => state.chosen.has(column.name));
    byId("chosen").textContent = `${state.shown.length} of ${state.columns.length}`;
    localStorage.setItem("kymo-metrics", JSON.stringify([...state.chosen]));
  }

  function list() {
    const part = byId("filter").value.toLowerCase();
    byId("columns").replaceChildren(...state.columns.filter((column) => column.name.toLowerCase().includes(part)).map((column) => {
      const box = element("input", { type: "checkbox", ...(state.chosen.has(column.name) ? { checked: "" } : {}) });
      box.addEventListener("change", () => {
        if (box.checked) state.chosen.add(column.name);
        else state.chosen.delete(column.name);
        choose();
        connect();
      });
      return element("li", {}, element("label", { title: column.help }, box, " " + column.name));
    }));
  }

  async function begin() {
    [state.status, state.columns] = await Promise.all([get("/api/status"), get("/api/columns")]);
    state.now = state.status.recorder.now_ns || 0;
    state.first = state.status.recorder.first_ns || 0;
    controls();
    if (state.chosen.size === 0) {
      const kept = JSON.parse(localStorage.getItem("kymo-metrics") || "null");
      state.chosen = new Set(kept || FIRST);
    }
    choose();
    list();
    if (!board) {
      board = new Board(byId("charts"), source);
      board.wire();
    }
  }

  // --- dumps and restores -----------------------------------------------------------------------

  function meet(request) {
    const known = requests.get(request.request_id);
    // The request ended before this page was opened, so it is shown only as bands.
    const early = !known && request.state !== "running" && request.started_unix_ns + request.elapsed_ns < state.status.now_unix_ns;
    const ended = request.state !== "running" && !early && (!known || known.state === "running");
    request.box = known ? known.box : element("article", {});
    requests.set(request.request_id, request);
    if (!known && !early) byId("requests").append(request.box);
    draw(request);
    if (ended) {
      document.dispatchEvent(new CustomEvent("kymo-ended", { detail: request }));
      setTimeout(() => request.box.remove(), 20_000);
    }
    if (board) board.redraw();
  }

  function draw(request) {
    const what = request.job || (request.pid ? `process ${request.pid}` : "");
    const share = request.bytes_total ? ` of ${bytes(request.bytes_total)}` : "";
    const facts = [
      `${request.kind} of ${what}`, request.state === "running" ? request.phase : request.state,
      request.bytes_done ? bytes(request.bytes_done) + share : "", request.bytes_per_second ? bytes(request.bytes_per_second) + "/s" : "",
      duration(request.elapsed_ns), request.state === "running" && request.remaining_ns !== null ? `${duration(request.remaining_ns)} left` : "",
    ].filter(Boolean);
    const bar = element("progress", { max: "1", "aria-label": "How far it is" });
    if (request.state !== "running") bar.value = 1;
    else if (request.bytes_total) bar.value = Math.min(request.bytes_done / request.bytes_total, 1);
    const now = request.phases.length - 1;
    const phases = element("ol", {}, ...request.phases.map((phase, i) => element("li", request.state === "running" && i === now ? { "aria-current": "step" } : {},
      phase.name + (phase.end_ns ? ` ${duration(phase.end_ns - phase.begin_ns)}` : ""))));
    request.box.className = `request ${request.state}`;
    request.box.replaceChildren(element("div", {}, facts.join(" · ")), bar, phases, ...(request.error ? [element("p", { class: "fault" }, request.error)] : []));
  }

  // --- the recorder -----------------------------------------------------------------------------

  // The fields that the user has edited and not sent yet. A new status does not overwrite them.
  const edited = new Set();

  // Enables the controls that are possible now. The others stay readable, with the reason.
  function controls() {
    const { status } = state;
    const { recorder } = status;
    byId("recording").textContent = [recorder.running ? "recording" : "stopped", `a row every ${duration(recorder.interval_ns)}`,
      recorder.log_path || "in memory alone", recorder.start_unix_ns ? `${recorder.ticks_missed.toLocaleString("en")} ticks missed` : ""].filter(Boolean).join(" · ");
    const able = { start: !recorder.running, stop: recorder.running, set: true, snapshot: recorder.running };
    for (const [id, can] of Object.entries(able)) byId(id).disabled = !status.controls || !can;
    for (const id of ["rate", "wanted"]) byId(id).readOnly = !status.controls;
    if (!edited.has("rate")) byId("rate").value = recorder.interval_ns / 1000;
    if (!edited.has("wanted")) byId("wanted").value = recorder.metrics;
    byId("known").replaceChildren(...["all", ...new Set(state.columns.map((column) => column.metric))].map((name) => element("option", { value: name })));
    if (!status.controls) tell("The page only reads: start kymod with --http-controls, or use kymo recorder and kymo snapshot.");
  }

  function tell(text, bad) {
    byId("controlled").className = bad ? "fault" : "";
    byId("controlled").textContent = text;
  }

  async function control(action, parameters = {}) {
    for (const id of ["start", "stop", "set"]) byId(id).disabled = true;
    tell("…");
    try {
      const recorder = await (await call("/api/recorder", { action, ...parameters }, { method: "POST" })).json();
      if (action !== "stop") edited.clear();
      tell(recorder.running ? `recording ${recorder.metrics} every ${duration(recorder.interval_ns)}` + (recorder.log_path ? ` into ${recorder.log_path}` : "")
        : `stopped after ${recorder.rows_written.toLocaleString("en")} rows` + (recorder.log_path ? `, whole in ${recorder.log_path}` : ""));
      connect(); // a new stream sends everything; a status set here would hide the change from it
    } catch (error) {
      tell(error.message, true);
      controls();
    }
  }

  // The settings that the user has changed.
  function wishes() {
    const { recorder } = state.status;
    const metrics = byId("wanted").value.replace(/\s/g, "");
    const wish = {};
    if (Number(byId("rate").value) !== recorder.interval_ns / 1000) wish.interval_us = byId("rate").value;
    if (metrics !== recorder.metrics) wish.metrics = metrics;
    return wish;
  }

  // Takes a snapshot: the recorder's last seconds as a recording.
  async function snapshot() {
    const taken = byId("taken");
    byId("snapshot").disabled = true;
    taken.className = "";
    taken.replaceChildren("writing…");
    try {
      const { name } = await (await call("/api/snapshot", {}, { method: "POST" })).json();
      taken.replaceChildren(element("a", { href: `/recording?${new URLSearchParams({ snapshot: name, token })}`, target: "_blank" }, name));
    } catch (error) {
      taken.className = "fault";
      taken.replaceChildren(error.message);
    }
    controls();
  }

  // --- start ------------------------------------------------------------------------------------

  byId("pause").addEventListener("click", () => follow(!state.follow));
  byId("in").addEventListener("click", () => board && board.zoom(0.5));
  byId("out").addEventListener("click", () => board && board.zoom(2));
  byId("window").addEventListener("change", () => follow(true));
  byId("detail").addEventListener("change", connect);
  byId("filter").addEventListener("input", list);
  byId("snapshot").addEventListener("click", snapshot);
  for (const id of ["rate", "wanted"]) byId(id).addEventListener("input", () => edited.add(id));
  byId("start").addEventListener("click", () => control("start", wishes()));
  byId("stop").addEventListener("click", () => control("stop"));
  byId("set").addEventListener("click", () => control("set", wishes()));
  byId("earlier").addEventListener("click", () => board && board.move(-0.5));
  byId("later").addEventListener("click", () => board && board.move(0.5));
  connect();
  window.kymoPage = { state, requests, get board() { return board; } }; // for tests
  return { get, call, token, state, requests };
})();
