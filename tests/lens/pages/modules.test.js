// Tests of the pages' modules in node, without a browser.
"use strict";
const assert = require("node:assert");
const http = require("node:http");
const { after, before, test } = require("node:test");
const { load } = require("./recordings.js");

let format;
let Lines;
let MOST_POINTS;
let Store;
let Client;

before(async () => {
  format = await load("format.js");
  ({ Lines } = await load("lines.js"));
  ({ MOST_POINTS, Store } = await load("live/store.js"));
  ({ Client } = await load("live/client.js"));
});

const floats = (...values) => Float64Array.from(values);

test("values have the unit that fits, and times per second are shares", () => {
  const { written } = format;
  assert.strictEqual(written(1536, "bytes"), "1.50 KiB");
  assert.strictEqual(written(1536, "bytes", true), "1.50 KiB/s");
  assert.strictEqual(written(2_500_000, "nanoseconds"), "2.50 ms");
  assert.strictEqual(written(5e8, "nanoseconds", true), "50.0 % of the time");
  assert.strictEqual(written(12, "pages"), "12 pages");
  assert.strictEqual(written(null, "bytes"), "–");
});

test("the labels of a time axis have one unit, and digits that distinguish neighbours", () => {
  assert.deepStrictEqual(format.instants([0, 5e8, 1e9], 5e8), ["0.0 s", "0.5 s", "1.0 s"]);
  assert.deepStrictEqual(format.instants([0, 200, 400], 200), ["0 ns", "200 ns", "400 ns"]);
});

test("the labels of an axis of values have one unit", () => {
  const { axisLabels } = format;
  assert.deepStrictEqual(axisLabels([0, 5e8, 1e9, 1.5e9], 5e8, "nanoseconds", true), ["0.0 s/s", "0.5 s/s", "1.0 s/s", "1.5 s/s"]);
  assert.deepStrictEqual(axisLabels([0, 5e5, 1e6], 5e5, "microseconds", true), ["0 %", "50 %", "100 %"]);
  assert.deepStrictEqual(axisLabels([0, 5e5, 1e6], 5e5, "count", true), ["0.0 M/s", "0.5 M/s", "1.0 M/s"]);
  assert.deepStrictEqual(axisLabels([0, 512, 1024], 512, "bytes", false), ["0.0 KiB", "0.5 KiB", "1.0 KiB"]);
  assert.deepStrictEqual(axisLabels([0, 200, 400], 200, "pages", false), ["0 pages", "200 pages", "400 pages"]);
  assert.deepStrictEqual(axisLabels([0, 0.3, 0.6], 0.3, "count", false), ["0.0", "0.3", "0.6"]);
});

// Before, the title of a comparison was "run.tsv → run.tsv".
test("files of the same name are told apart by their folders", () => {
  const { toldApart } = format;
  assert.deepStrictEqual(toldApart("/p/old.tsv", "/p/new.tsv"), ["old.tsv", "new.tsv"]);
  assert.deepStrictEqual(toldApart("/p/old/run.tsv", "/p/new/run.tsv"), ["old/run.tsv", "new/run.tsv"]);
  assert.deepStrictEqual(toldApart("web-1/", "there/web-1"), ["web-1", "there/web-1"]);
  assert.deepStrictEqual(toldApart("same.tsv", "same.tsv"), ["same.tsv", "same.tsv"]);
});

test("a piece of the time axis keeps its lowest and highest value", () => {
  const lines = new Lines(1, 10, []);
  lines.putAll(floats(0, 1, 2, 20), [floats(5, 1, 9, 4)], [floats(5, 1, 9, 4)], 0, 4);
  lines.close();
  assert.deepStrictEqual(lines.times, [0, 2, 20]);
  assert.deepStrictEqual(lines.values, [[1, 9, 4]]);
});

test("a line breaks at a gap that is longer than a piece, and at no shorter one", () => {
  const drawn = (gap) => {
    const lines = new Lines(1, 10, [gap]);
    lines.putAll(floats(0, gap.end_ns), [floats(1, 2)], [floats(1, 2)], 0, 2);
    lines.close();
    return lines.values[0];
  };
  assert.deepStrictEqual(drawn({ start_ns: 1, end_ns: 100 }), [1, null, 2]);
  assert.ok(!drawn({ start_ns: 1, end_ns: 5 }).includes(null));
});

test("a value that is missing is no point", () => {
  const store = new Store(1);
  store.append({ time: [1, 2], columns: [{ last: [7, 8], low: [null, 3], high: [null, 4] }] });
  const lines = new Lines(1, 0.1, []);
  store.fill(lines, [0], [true], 0, 3);
  lines.close();
  assert.deepStrictEqual(lines.values, [[null, 3, 4]]);
});

test("of 100,000 points a chart keeps the lowest and highest", () => {
  const time = Array.from({ length: 100_000 }, (_, i) => i * 1e6);
  const part = time.map((_, i) => (i % 977) * 1000);
  const store = new Store(2);
  store.append({ time, columns: Array.from({ length: 2 }, () => ({ last: part, low: part, high: part })) });
  const lines = new Lines(2, 1e8, []); // divided into a thousand pieces
  store.fill(lines, [0, 1], [true, false], time[0], time.at(-1));
  lines.close();
  assert.ok(lines.times.length > 1000 && lines.times.length <= 2000, `${lines.times.length}`);
  for (const values of lines.values) {
    assert.strictEqual(values.reduce((a, b) => Math.min(a, b)), 0);
    assert.strictEqual(values.reduce((a, b) => Math.max(a, b)), 976_000);
  }
});

test("the points of a page are bounded, and the oldest go", () => {
  const store = new Store(1);
  const more = 50_000;
  for (let i = 0; i < 12; ++i) {
    const time = Array.from({ length: more }, (_, k) => i * more + k);
    store.append({ time, columns: [{ last: time, low: time, high: time }] });
  }
  assert.ok(store.count <= MOST_POINTS);
  assert.strictEqual(store.times[store.count - 1], 12 * more - 1);
  assert.strictEqual(store.parts[0][0], store.first());
  assert.strictEqual(store.times[store.at(500_000)], 500_000);
});

test("events are read whole, however they are cut, until no more are wanted", async () => {
  const server = http.createServer(async (asked, reply) => {
    if (asked.headers.authorization !== "Bearer secret") return reply.writeHead(401).end(JSON.stringify({ error: { message: "no token" } }));
    for (const piece of ["event: sam", "ples\ndata: {\"a\":1}\n", "\nevent: requests\ndata: []\n\nevent: late\ndata: 0\n\n"]) {
      reply.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return undefined; // the request stays open
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => server.closeAllConnections());
  const origin = `http://127.0.0.1:${server.address().port}`;
  const seen = [];
  await new Client("secret", origin).listen("/", {}, AbortSignal.timeout(60_000), (event, data) => seen.push([event, data]) < 2);
  assert.deepStrictEqual(seen, [["samples", { a: 1 }], ["requests", []]]);
  await assert.rejects(new Client("other", origin).get("/"), { message: "no token" });
  server.close();
});

test("an address of profiles names what they are compared with, and says the same again", async () => {
  const { comparisonOf, hashOf, otherIn, placeIn } = await load("profiles/place.js");
  const compared = (text) => placeIn(`#profiles=job:web&from=2025-03-04T05:00Z&to=2025-03-04T06:00Z&compare=${encodeURIComponent(text)}`, 0);
  for (const [text, parameters] of [
    ["checkpoint:3f/dump", { checkpoint: "3f", recording: "dump" }],
    ["checkpoint:3f/restore-2", { checkpoint: "3f", recording: "restore-2" }],
    ["file:a b&c=<i>.pb.gz", { file: "a b&c=<i>.pb.gz" }],
  ]) {
    const place = compared(text);
    assert.strictEqual(place.compared, text);
    assert.deepStrictEqual(otherIn(text), parameters);
    assert.deepStrictEqual(placeIn(hashOf(place), 0), place);
    const { from_unix_ns, to_unix_ns, service, type, ...rest } = comparisonOf(place);
    assert.deepStrictEqual([from_unix_ns, to_unix_ns, service, type], ["1741064400000000000", "1741068000000000000", "job:web", "cpu"]);
    assert.deepStrictEqual(rest, parameters);
  }
  assert.deepStrictEqual(comparisonOf(compared("before")).before_unix_ns, "1741060800000000000");
  for (const text of ["file:", "checkpoint:3f", "checkpoint:/dump", "files:x", "nonsense"]) assert.strictEqual(compared(text).compared, "", text);
});
