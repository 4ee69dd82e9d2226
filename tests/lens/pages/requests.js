// Writes the recording of a dump in which everything happens that can be seen in one. The figures are invented, so a test
// knows what the page must show.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const MS = 1e6;
exports.MS = MS;
exports.BEGAN_MS = 1000; // milliseconds after the start of the recording
exports.START_NS = 5_000_000_000; // on the monotonic clock

// In milliseconds since the beginning of the request.
exports.PHASES = [
  ["prepare", 0, 12, false], ["start CRIU", 12, 30, false], ["look at the kernel", 30, 90, false], ["freeze", 90, 100, true], ["collect", 100, 130, true],
  ["memory: finding pages", 130, 210, true], ["memory: writing pages", 210, 2500, true], ["processes and files", 2500, 2580, true],
  ["resume or end", 2580, 2660, true], ["finish", 2660, 2710, false],
];
const END_MS = 2710;

exports.VERDICT = {
  lines: ["The process stood still for 2.57 s of the 2.71 s that the dump took.",
    "89 % of that: writing 256 MiB of memory to /var at 117 MB/s. CRIU waited for the disk 81 % of that time.",
    "To stand still for less: images on a faster disk or tmpfs (about 0.4 s here), or --compression zstd (about 0.9 s)."],
  short: "waited for the disk", frozen_ns: 2570 * MS, downtime_ns: 2575 * MS,
  findings: [
    { rule: "disk-wait", share: 0.81, evidence: "CRIU was blocked in write for 2.08 s", threshold: "half of the frozen time", advice: "Write the images to a faster disk or a tmpfs", estimate_ns: [350 * MS, 500 * MS], also: "The memory may compress well." },
    { rule: "disk-wait", share: 0.81, evidence: "256 MiB at 117 MB/s", threshold: "half of the frozen time", advice: "Compress while writing: --compression zstd", estimate_ns: [800 * MS, 1100 * MS] },
  ],
};

// A wave between 0 and 1 that is the same in each run.
const wave = (ms, k) => 0.5 + 0.5 * Math.sin(ms / (3 + k) + k) * Math.cos(ms / (17 + 2 * k));
const inside = (ms, from, to) => ms >= from && ms < to;

// For each column: kind, unit, and for each millisecond how much a counter grows or the value of a gauge. `ms` counts from
// the beginning of the request.
const MIB = 1 << 20;
const running = (ms) => (inside(ms, 12, 2670) ? (inside(ms, 210, 2500) ? 0.15 + 0.06 * wave(ms, 1) : 0.75 + 0.1 * wave(ms, 1)) : 0);
const waiting = (ms) => (inside(ms, 210, 2500) ? 0.04 * wave(ms, 2) : 0.02);
exports.COLUMNS = {
  criu_tasks: ["gauge", "count", (ms) => (inside(ms, 12, 2670) ? 1 : 0)],
  criu_cpu_ns: ["counter", "nanoseconds", (ms) => MS * running(ms)],
  criu_cpu_wait_ns: ["counter", "nanoseconds", (ms) => (running(ms) ? MS * waiting(ms) : 0)],
  criu_disk_wait_ns: ["counter", "nanoseconds", (ms) => (inside(ms, 210, 2500) ? MS * 0.75 : 0)],
  criu_written_bytes: ["counter", "bytes", (ms) => (inside(ms, 210, 2500) ? 117_000 * (0.9 + 0.2 * wave(ms, 3)) : 0)],
  criu_resident_bytes: ["gauge", "bytes", (ms) => (inside(ms, 12, 2670) ? 12 * MIB + Math.max(0, Math.min(ms, 500)) * 1000 : 0)],
  target_running: ["gauge", "count", (ms) => (inside(ms, 90, 2660) ? 0 : 3)],
  target_stopped: ["gauge", "count", () => 0],
  target_traced: ["gauge", "count", (ms) => (inside(ms, 90, 2660) ? 3 : 0)],
  target_cpu_ns: ["counter", "nanoseconds", (ms) => (inside(ms, 90, 2660) ? 0 : MS * 0.9)],
  target_resident_bytes: ["gauge", "bytes", () => 256 * MIB],
  // Other programs use 8 % of a core.
  machine_cpu_ns: ["counter", "nanoseconds", (ms) => MS * (0.08 + running(ms) + (inside(ms, 90, 2660) ? 0 : 0.9))],
  machine_steal_ns: ["counter", "nanoseconds", (ms) => (ms % 40 === 0 ? MS * 0.3 : 0)],
  machine_dirty_bytes: ["gauge", "bytes", (ms) => Math.round(MIB * (ms < 210 ? 2 : ms < 310 ? 2 + (ms - 210) * 0.6 : ms < 2500 ? 60 + 3 * wave(ms, 5) : 40))],
  machine_writeback_bytes: ["gauge", "bytes", (ms) => (inside(ms, 310, 2600) ? Math.round(8 * MIB * wave(ms, 6)) : 0)],
  machine_free_bytes: ["gauge", "bytes", (ms) => 2048 * MIB - Math.max(0, Math.min(ms, 2500)) * 100_000],
  disk_written_bytes: ["counter", "bytes", (ms) => (inside(ms, 300, 2600) ? (ms % 10 === 0 ? 1_170_000 : 0) : 0)],
  disk_in_flight: ["gauge", "count", (ms) => (inside(ms, 300, 2600) ? Math.round(30 + 8 * wave(ms, 7)) : 0)],
  image_written_bytes: ["counter", "bytes", (ms) => (inside(ms, 210, 2500) ? 117_000 : 0)],
  phase: ["gauge", "count", (ms) => (inside(ms, 0, 2710) ? 15 : 0)],
  memdump_time_us: ["counter", "microseconds", (ms) => (ms === 2600 ? 2_290_000 : 0)],
};

// Writes FOLDER/NAME.tsv with its metadata, and returns its path. `change` can change the metadata.
exports.writeRequest = (folder, name, change = () => {}, columns = exports.COLUMNS) => {
  const names = Object.keys(columns);
  const sums = Object.fromEntries(names.map((column) => [column, 0]));
  const rows = [["Time (ns)", ...names].join("\t")];
  for (let ms = -1000; ms <= END_MS + 1000; ++ms) {
    const values = names.map((column) => {
      const [kind, , value] = columns[column];
      if (kind === "gauge") return Math.round(value(ms));
      return Math.round((sums[column] += value(ms)));
    });
    if (ms >= 1400 && ms < 1403) continue; // a gap
    rows.push([(ms + exports.BEGAN_MS) * MS, ...values].join("\t"));
  }
  const file = path.join(folder, name + ".tsv");
  fs.writeFileSync(file, rows.join("\n") + "\n");
  const gaps = [{ start_ns: 2400 * MS - MS + 1, end_ns: 2403 * MS, ticks: 3, cause: "late" }];
  for (let i = 0; i < 99; ++i) gaps.push({ start_ns: (i * 9 + 3) * MS, end_ns: (i * 9 + 3) * MS + 500, ticks: 1, cause: "late" });
  const meta = {
    format_version: 1, state: "ended", interval_ns: MS, start_unix_ns: 1_795_522_561_000_000_000, start_monotonic_ns: exports.START_NS, host: "host", kernel: "Linux",
    columns: names.map((column) => ({ name: column, metric: column.replace(/\[.*/, ""), help: "", kind: columns[column][0], unit: columns[column][1], fields: {} })),
    longest_gaps: gaps, marks: [{ name: "pre-dump", at_ns: 1090 * MS }, { name: "query-ext-files", at_ns: 1100 * MS }, { name: "post-dump", at_ns: 3580 * MS }],
    about: {
      request: "dump", job: { id: "j1", name: "shop" }, target: { name: "shop", pid: 4711 }, image_bytes: 268_559_523, outcome: "ok", stats: { frozen_time_us: 2_570_000, pages_written: 65_564 },
      timing: { name: "dump", duration_ns: END_MS * MS, components: [{ name: "criu", duration_ns: 2600 * MS }] },
      request_began_monotonic_ns: exports.START_NS + exports.BEGAN_MS * MS,
      phases: exports.PHASES.map(([phase, begin, end, frozen]) => ({ name: phase, begin_ns: begin * MS, end_ns: end * MS, uncertainty_ns: 1000, evidence: "CRIU's log", frozen })),
      verdict: exports.VERDICT,
    },
  };
  change(meta);
  fs.writeFileSync(path.join(folder, name + ".meta.json"), JSON.stringify(meta));
  return file;
};
