// Loads the pages' modules in node, and reads the recording in a page in the way of the page.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const load = (name) => import(pathToFileURL(path.join(process.env.KYMO_SOURCE, "src/lens/pages", name)).href);
exports.load = load;

// The recording in a page of `kymo report --html`, or the one with this prefix in a page of `kymo diff
// --html`.
exports.recordingIn = async (file, prefix = "", describedOf = (all) => all) => {
  const { Recording } = await load("recording.js");
  const html = fs.readFileSync(file, "utf8");
  const textOf = (id) => {
    const begin = html.indexOf(`id="${id}">`);
    if (begin < 0) throw new Error(`${file} has no ${id}`);
    return html.slice(html.indexOf(">", begin) + 1, html.indexOf("</script>", begin));
  };
  const recording = new Recording(describedOf(JSON.parse(textOf(prefix ? "diff" : "recording"))), prefix, textOf);
  await recording.readOutlines();
  await recording.readSamples();
  return recording;
};

// The points of a column in a range: {times, values, single}.
exports.pointsIn = (recording, name, from, to, { rate = false, pixels = 1000 } = {}) => {
  const index = recording.shown.findIndex((column) => column.name === name) + 1;
  const { times, values: [values], single } = recording.linesOf([index], from, to, pixels, () => rate);
  return { times, values, single };
};
