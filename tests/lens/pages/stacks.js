// Writes a stack profile of a dump in the format of pprof, like kymod --profiling-stacks (docs/profiles.md). The stacks are
// invented, so a test knows what the page must show.
"use strict";
const fs = require("node:fs");
const zlib = require("node:zlib");

function number(value) {
  const bytes = [];
  let left = BigInt(value);
  for (; left >= 128n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  bytes.push(Number(left));
  return Buffer.from(bytes);
}
const field = (id, value) => (typeof value === "number" ? Buffer.concat([number(id << 3), number(value)]) : Buffer.concat([number((id << 3) | 2), number(value.length), value]));
const message = (...fields) => Buffer.concat(fields.map(([id, value]) => field(id, value)));

const CPU = [["samples", "count"], ["cpu", "nanoseconds"]];

/**
 * Writes the file. Each stack has a phase, a role, a number of samples, and its functions, the innermost first. A sample has
 * the value 10,000,000.
 * @param {string} file
 * @param {[string, string, number, string[]][]} stacks
 * @param {string[]} phases in the order of time
 * @param {string[][]} types of the number and of the value, and their units
 */
exports.writeStacks = (file, stacks, phases, lost = 0, types = CPU) => {
  const texts = [""];
  const text = (/** @type {string} */ one) => (texts.includes(one) ? texts.indexOf(one) : texts.push(one) - 1);
  const names = [...new Set(stacks.flatMap(([, , , functions]) => functions))];
  const period = 10_000_000;
  const label = (key, value) => [3, message([1, text(key)], [2, text(value)])];
  const parts = [
    ...types.map(([name, unit]) => [1, message([1, text(name)], [2, text(unit)])]),
    ...stacks.map(([phase, role, samples, functions]) => [2, message([1, Buffer.concat(functions.map((one) => number(names.indexOf(one) + 1)))],
      [2, Buffer.concat([number(samples), number(samples * period)])], label("process", "criu"), label("phase", phase), label("role", role))]),
    [3, message([1, 1], [5, text("/usr/sbin/criu")])],
    ...names.map((_, i) => [4, message([1, i + 1], [2, 1], [4, message([1, i + 1])])]),
    ...names.map((name, i) => [5, message([1, i + 1], [2, text(name)])]),
    [10, 2_710_000_000], [12, period],
    ...phases.map((phase) => [13, text("kymo: phase: " + phase)]),
    ...(lost > 0 ? [[13, text("kymo: lost samples: " + lost)]] : []),
  ];
  fs.writeFileSync(file, zlib.gzipSync(Buffer.concat([message(...parts), ...texts.map((one) => field(6, Buffer.from(one)))])));
};
