"""Reads the output of each format again, and compares every value with the text of the recording."""

import collections
import csv
import decimal
import json
import re
import sqlite3
import subprocess
import unittest

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Timestamp

from exporting import BIG, HOSTILE, MONOTONIC_NS, START_NS, ExportTest, read_recording

# The parser of version 0.16 says that 2.1 is earlier than 1.2, and so refuses times that are in order.
Timestamp.__gt__ = lambda self, other: (self.sec, self.nsec) > (other.sec, other.nsec)

KINDS = ("recorded", "hostile", "dumped")


def in_us(event, key="ts"):
    return decimal.Decimal(event[key])


class CsvTest(ExportTest):
    def test_every_value_and_name(self):
        for kind in KINDS:
            with self.subTest(kind):
                recording = getattr(self, kind)()
                output = self.export(recording, "out.csv")
                with output.open(newline="") as file:
                    header, *rows = csv.reader(file, strict=True)
                names, values = read_recording(recording)
                self.assertEqual([[int(value) for value in row] for row in rows], values)
                self.assertEqual(len(set(header)), len(header))
                if kind != "hostile":
                    self.assertEqual(header, names)
                self.assertEqual(output.read_bytes().count(b"\r\n"), len(rows) + 1)


class PartsTest(ExportTest):
    """A recording that was rotated is exported as one. Before, each part got a file of its own, or the export to
    standard output was refused."""

    ROWS = [[1_000_000 * i, i * i] for i in range(1, 10)]
    GAPS = [[2_500_000, 3_000_000, 1, "late"], [7_500_000, 8_000_000, 1, "ring_full"]]
    COLUMN = {"name": "steps", "metric": "steps", "kind": "counter", "unit": "count", "help": "Steps", "fields": {}}

    def metadata(self, **more):
        return {"format_version": 1, "state": "ended", "start_unix_ns": START_NS, "interval_ns": 1_000_000,
                "start_monotonic_ns": MONOTONIC_NS, "columns": [self.COLUMN], **more}

    def parts(self):
        names = ["cut.tsv", "cut.1.tsv", "cut.2.tsv"]
        cuts = [self.ROWS[:3], self.ROWS[3:7], self.ROWS[7:]]
        gaps = [self.GAPS[:1], [], self.GAPS[1:]]
        paths = []
        for i, name in enumerate(names):
            part = {"number": i}
            if i > 0:
                part["previous"] = names[i - 1]
            if i < 2:
                part["next"] = names[i + 1]
            paths.append(self.written(["steps"], cuts[i], self.metadata(part=part), gaps[i], name))
        return paths

    def test_all_formats_have_what_a_whole_recording_gives(self):
        paths = self.parts()
        for kind in ("csv", "perfetto", "openmetrics", "clickhouse"):
            with self.subTest(kind):
                ran = self.kymo(*reversed(paths), "--format", kind, "--output", "-")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertEqual(ran.stderr, "")
                whole = self.written(["steps"], self.ROWS, self.metadata(), self.GAPS, "whole.tsv")
                alone = self.kymo(whole, "--format", kind, "--output", "-")
                self.assertEqual(ran.stdout.replace("cut", "whole"), alone.stdout)

    def test_the_file_has_the_name_that_was_asked_for(self):
        paths = self.parts()
        output = self.folder / "out.sqlite"
        ran = self.kymo(*paths, "--output", output, "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        (made,) = json.loads(ran.stdout)["exports"]
        self.assertEqual((made["rows"], made["parts"]), (9, [str(path) for path in paths]))
        with sqlite3.connect(output) as database:
            self.assertEqual(database.execute("select time_ns, steps from samples order by 1").fetchall(),
                             [tuple(row) for row in self.ROWS])

    def test_no_part_is_replaced(self):
        paths = self.parts()
        ran = self.kymo(*paths, "--output", paths[2], "--format", "csv")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("that is the recording itself", ran.stderr)


class TraceTest(ExportTest):
    """Checks the rules of the trace event format, as its specification has them."""

    def trace(self, recording):
        with self.export(recording, "out.json").open() as file:
            self.text = json.load(file, parse_float=decimal.Decimal)
        return self.text["traceEvents"]

    def hold_the_rules(self, events):
        threads = collections.defaultdict(list)
        for event in events:
            self.assertIn(event["ph"], ("M", "X", "C"))
            self.assertIsInstance(event["name"], str)
            for key in ("pid", "tid"):
                self.assertIsInstance(event[key], int)
            self.assertIsInstance(event["ts"], (int, decimal.Decimal))
            if event["ph"] == "M":
                key = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}[event["name"]]
                self.assertIn(key, event["args"])
            elif event["ph"] == "C":
                self.assertTrue(event["args"])
                for value in event["args"].values():
                    self.assertIsInstance(value, (int, decimal.Decimal))
            else:
                self.assertGreaterEqual(event["dur"], 0)
                self.assertIsInstance(event["cat"], str)
                threads[event["pid"], event["tid"]].append((in_us(event), in_us(event) + in_us(event, "dur")))
        for spans in threads.values():
            stack = []
            for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
                while stack and stack[-1] <= begin:
                    stack.pop()
                self.assertTrue(not stack or end <= stack[-1], "an event overlaps another on its thread")
                stack.append(end)
        named = {event["tid"] for event in events if event["name"] == "thread_name"}
        self.assertLessEqual({tid for _, tid in threads}, named)

    def test_counters_hold_every_value_of_the_recording(self):
        for kind in KINDS:
            with self.subTest(kind):
                recording = getattr(self, kind)()
                events = self.trace(recording)
                self.hold_the_rules(events)
                series = collections.defaultdict(dict)
                for event in events:
                    if event["ph"] == "C":
                        series[event["name"]][in_us(event)] = event["args"]["value"]
                names, rows = read_recording(recording)
                self.assertEqual(len(series), len(names) - 1)
                last_of_time = {row[0]: row for row in rows}
                for column, steps in enumerate(series.values(), 1):
                    value = None
                    for time, row in sorted(last_of_time.items()):
                        value = steps.pop(decimal.Decimal(time) / 1000, value)
                        self.assertEqual(value, row[column])
                    self.assertFalse(steps, "an event at a time without a row")

    def test_phases_gaps_and_scopes_stand_on_the_clock_of_the_rows(self):
        events = self.trace(self.dumped())
        self.hold_the_rules(events)
        spans = {event["name"]: (in_us(event) * 1000, in_us(event, "dur") * 1000)
                 for event in events if event["ph"] == "X"}
        self.assertEqual(spans["pre-dump"], (1_000_000, 3_000_000))
        self.assertEqual(spans["post-dump"], (4_000_000, 86_000_000))
        self.assertEqual(spans["after the rows"], (90_000_000, 0))
        self.assertEqual(spans["dump"], (1_000_000, 9_000_000))
        self.assertEqual(spans["criu:starts"], (1_500_000, 1_000_000))
        self.assertEqual(spans["criu:drain"], (2_500_000, 5_000_000))
        self.assertEqual(spans["block"], (2_100_000, 50_001))
        self.assertEqual(spans["at once"], (9_000_000, 0))
        self.assertEqual(spans["longer than its parent"], (9_000_000, 7_000_000))
        self.assertEqual(spans["late"], (3_000_000, 2_000_000))
        self.assertEqual(spans["ring_full"], (5_000_000, 1_000_000))
        args = {event["name"]: event.get("args") for event in events if event["ph"] == "X"}
        self.assertEqual(args["ring_full"], {"ticks": 2, "start_ns": 4_000_000, "end_ns": 6_000_000})
        self.assertEqual(args["at once"], {"error": 'no "room"'})
        self.assertEqual(args["criu:starts"], {"bytes": 77})
        tids = {event["name"]: event["tid"] for event in events if event["ph"] == "X"}
        self.assertEqual(tids["dump"], tids["criu:drain"])
        self.assertNotEqual(tids["dump"], tids["compress"])
        self.assertEqual(tids["compress"], tids["block"])
        self.assertEqual(self.text["otherData"]["start_unix_ns"], str(START_NS))


    def test_own_scopes_stand_on_the_threads_that_ran_them(self):
        events = self.trace(self.with_own_scopes())
        self.hold_the_rules(events)
        spans = [(event["name"], event["tid"], in_us(event) * 1000) for event in events if event["ph"] == "X"]
        self.assertEqual(sorted(spans), [("copy", 42, 2_000_000), ("parse", 41, 1_500_000), ("parse", 43, 2_600_000),
                                         ("request", 41, 1_000_000), ("request", 43, 2_500_000)])
        process, = {event["pid"] for event in events if event["ph"] == "X"}
        names = {event["args"]["name"] for event in events if event["ph"] == "M" and event["pid"] == process and "name" in event["args"]}
        self.assertEqual(names, {"process 77", "thread 41", "thread 42", "thread 43"})


class OtlpTest(ExportTest):
    """Checks the rules of the JSON encoding of OTLP, as its specification has them: ids in hexadecimal, 64-bit numbers as text."""

    def test_each_tree_is_a_trace_with_the_ids_of_its_threads(self):
        output = self.export(self.with_own_scopes(), "out.otlp")
        self.assertIn("out.otlp: 5 spans\n", self.said)  # before the fix: 8 rows of 1 columns
        resource, = json.loads(output.read_text())["resourceSpans"]
        self.assertIn({"key": "process.pid", "value": {"intValue": "77"}}, resource["resource"]["attributes"])
        spans = resource["scopeSpans"][0]["spans"]
        for span in spans:
            self.assertRegex(span["traceId"], "^[0-9a-f]{32}$")
            self.assertRegex(span["spanId"], "^[0-9a-f]{16}$")
        self.assertEqual(len({span["spanId"] for span in spans}), 5)
        first, parse, copy, second, failed = spans
        self.assertEqual((first["startTimeUnixNano"], first["endTimeUnixNano"]),
                         (str(START_NS + 1_000_000), str(START_NS + 5_000_000)))
        self.assertEqual([span.get("parentSpanId") for span in spans],
                         [None, first["spanId"], first["spanId"], None, second["spanId"]])
        self.assertEqual(first["traceId"], copy["traceId"])
        self.assertNotEqual(first["traceId"], second["traceId"])
        threads = [attribute["value"]["intValue"] for span in spans for attribute in span["attributes"]
                   if attribute["key"] == "thread.id"]
        self.assertEqual(threads, ["41", "41", "42", "43", "43"])
        self.assertIn({"key": "kymo.category", "value": {"stringValue": "cpu"}}, parse["attributes"])
        self.assertEqual(failed["status"], {"code": 2, "message": "no <input>"})
        self.assertEqual(self.export(self.with_own_scopes(), "again.otlp").read_text(), output.read_text())

    def test_a_request_is_a_trace_as_well_and_a_recording_without_scopes_is_refused(self):
        output = self.export(self.dumped(), "out.otlp")
        names = [span["name"] for span in json.loads(output.read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        self.assertIn("criu:drain", names)
        ran = self.kymo(self.recorded(), "--output", self.folder / "none.otlp")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("it has no scopes", ran.stderr)
        self.assertFalse((self.folder / "none.otlp").exists())


class SqliteTest(ExportTest):
    def tables(self, recording):
        base = sqlite3.connect(self.export(recording, "out.sqlite"))
        self.addCleanup(base.close)
        self.assertEqual(base.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        return base

    def test_every_value_and_name(self):
        for kind in KINDS:
            with self.subTest(kind):
                recording = getattr(self, kind)()
                base = self.tables(recording)
                names, rows = read_recording(recording)
                read = base.execute("SELECT * FROM samples ORDER BY rowid").fetchall()
                self.assertEqual([[int(value) for value in row] for row in read], rows)
                self.assertEqual([name for (name,) in base.execute("SELECT name FROM metrics ORDER BY rowid")], names[1:])
                columns = [row[1] for row in base.execute("PRAGMA table_info(samples)")]
                described = [name for (name,) in base.execute("SELECT column_name FROM metrics ORDER BY rowid")]
                self.assertEqual(columns, ["time_ns", *described])

    def test_numbers_past_2_63_stay_exact_and_in_order(self):
        rows = [[1, 5], [2, 2**63 - 1], [3, 2**63], [4, 10**19], [5, BIG]]
        base = self.tables(self.written(["big"], rows))
        ordered = base.execute("SELECT big FROM samples ORDER BY big").fetchall()
        self.assertEqual([int(value) for (value,) in ordered], [row[1] for row in rows])

    def test_what_stands_beside_the_rows(self):
        base = self.tables(self.dumped())
        self.assertEqual(base.execute("SELECT * FROM gaps").fetchall(),
                         [(3_000_000, 5_000_000, 2, "late"), (4_000_000, 6_000_000, 2, "ring_full"),
                          (8_000_000, 9_000_000, 1, "frozen")])
        self.assertEqual(base.execute("SELECT * FROM phases").fetchall()[0], ("pre-dump", 1_000_000, 4_000_000))
        calls = base.execute("SELECT metric, kind, unit, help, fields FROM metrics WHERE column_name = ?",
                             ("criu_calls[dump,ok]",)).fetchone()
        self.assertEqual(calls, ("criu_calls", "counter", "count", "Calls.", '{"call":"dump","result":"ok"}'))
        scopes = base.execute("SELECT name, parent, start_ns, duration_ns, bytes, parallel FROM scopes").fetchall()
        self.assertEqual(scopes[1], ("criu:starts", 0, 1_500_000, 1_000_000, 77, 0))
        self.assertIn(("compress", 0, 2_000_000, 6_500_000, 0, 1), scopes)
        own = self.tables(self.with_own_scopes()).execute("SELECT name, parent, thread FROM scopes").fetchall()
        self.assertEqual(own, [("request", -1, 41), ("parse", 0, 41), ("copy", 0, 42), ("request", -1, 43), ("parse", 3, 43)])
        properties = dict(base.execute("SELECT * FROM recording"))
        self.assertEqual(properties["start_monotonic_ns"], str(MONOTONIC_NS))
        self.assertEqual(json.loads(properties["about"])["request"], "dump")


class OpenMetricsTest(ExportTest):
    def families(self, output):
        """The samples by name and labels. The parser refuses text that breaks the rules of the format."""
        text = output.read_text()
        self.assertTrue(text.endswith("# EOF\n"))
        self.types = {}
        samples = collections.defaultdict(list)
        for family in text_string_to_metric_families(text):
            self.types[family.name] = (family.type, family.unit, family.documentation)
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                samples[key].append((sample.timestamp.sec * 10**9 + sample.timestamp.nsec, sample.value))
        return samples

    def test_every_row_of_every_column(self):
        for kind in KINDS:
            with self.subTest(kind):
                recording = getattr(self, kind)()
                samples = self.families(self.export(recording, "out.om", "--every-row"))
                names, rows = read_recording(recording)
                self.assertEqual(len(samples), len(names) - 1)
                rows = list({row[0]: row for row in rows}.values())
                found = sorted([value for _, value in series] for series in samples.values())
                self.assertEqual({len(series) for series in found}, {len(rows)})
                if kind == "hostile":
                    continue  # checked below, because the names do not show which column it is
                metadata = json.loads(recording.with_suffix("").with_suffix(".meta.json").read_text())
                start = metadata["start_unix_ns"]
                prefix = metadata.get("prometheus_prefix", "kymo_")  # old recordings do not have a prefix, and get that of kymod
                divide = {"us": 10**6, "ns": 10**9}
                for column, name in enumerate(names[1:], 1):
                    metric, _, values = name.partition("[")
                    stem, _, unit = metric.rpartition("_")
                    base = f"{prefix}{stem}_seconds" if unit in divide else f"{prefix}{metric}"
                    wanted = [(start + row[0], row[column] / divide.get(unit, 1)) for row in rows]
                    hits = [series for (sample, labels), series in samples.items()
                            if sample in (base, base + "_total")
                            and [v for v in values.rstrip("]").split(",") if v] == [
                                dict(labels)[k] for k in ("call", "result") if k in dict(labels)]]
                    self.assertEqual(hits, [wanted], name)

    def test_types_units_and_help(self):
        self.families(self.export(self.dumped(), "out.om"))
        self.assertEqual(self.types["kymo_image_written_bytes"], ("counter", "bytes", "Bytes of images."))
        self.assertEqual(self.types["kymo_frozen_time_seconds"], ("counter", "seconds", "Time frozen."))
        self.assertEqual(self.types["kymo_wait_seconds"], ("gauge", "seconds", "A wait."))
        self.assertEqual(self.types["kymo_criu_calls"], ("counter", "", "Calls."))

    def test_hostile_names_stay_apart_and_values_exact(self):
        recording = self.hostile()
        output = self.export(recording, "out.om", "--every-row")
        names, rows = read_recording(recording)
        rows = list({row[0]: row for row in rows}.values())
        series = collections.defaultdict(list)
        for line in output.read_text().splitlines():
            if not line.startswith("#"):
                key, value, _ = line.rsplit(" ", 2)
                series[key].append(decimal.Decimal(value))
        read = sorted(series.values())
        wanted = [[decimal.Decimal(row[i]) for row in rows] for i in range(1, len(names))]
        described = names.index("dup")  # only the first column of that name is described
        wanted[described - 1] = [value / 10**9 for value in wanted[described - 1]]
        self.assertEqual(read, sorted(wanted))
        self.assertIn('another metric is exported as kymo_x_total, so "x_total" is exported as kymo_x_2_total', self.said)

    def test_what_never_had_a_value_is_left_out_as_on_metrics(self):
        columns = [{"name": name, "metric": name, "kind": "gauge", "unit": "count", "fields": {}} for name in ("good", "bad")]
        errors = [{"metric": "bad", "count": 2, "what": "x", "no_value": True}]
        recording = self.written(["good", "bad"], [[1_000_000, 5, 0], [2_000_000, 6, 0]],
                                 {"format_version": 1, "state": "ended", "start_unix_ns": START_NS, "columns": columns,
                                  "callback_errors": errors}, [])
        samples = self.families(self.export(recording, "out.om"))
        self.assertEqual([name for name, _ in samples], ["kymo_good"])
        said = '"bad" never had a value, because its callback has thrown each time: its columns are 0, which means nothing'
        self.assertIn(said, self.said)
        self.export(recording, "out.csv")
        self.assertIn(said, self.said)

    def test_prometheus_loads_it_and_has_every_sample(self):
        """If rows are too close for the time resolution of Prometheus, the export leaves some out and says so."""
        rows = [[i * 250_000 + 900, i] for i in range(4000)]  # four rows in each millisecond
        columns = [{"name": "ticks", "metric": "ticks", "kind": "counter", "unit": "count", "fields": {}}]
        metadata = {"format_version": 1, "state": "ended", "start_unix_ns": START_NS, "columns": columns}
        for recording in (self.dumped(), self.recorded(), self.written(["ticks"], rows, metadata, [], "close.tsv")):
            with self.subTest(recording.name):
                samples = self.families(self.export(recording, "out.om"))
                base = self.folder / (recording.name + ".tsdb")
                subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", str(self.folder / "out.om"),
                                str(base)], check=True, capture_output=True, timeout=60)
                (base / "wal").mkdir()  # promtool opens no database without this folder
                dumped = subprocess.run(["promtool", "tsdb", "dump", str(base)], check=True, capture_output=True,
                                        text=True, timeout=60).stdout
                kept = collections.defaultdict(list)
                for labels, value, ms in re.findall(r"^\{(.*)\} (\S+) (\d+)$", dumped, re.M):
                    labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
                    name = labels.pop("__name__")
                    kept[name, tuple(sorted(labels.items()))].append((int(ms), float(value)))
                self.assertEqual({key: [(time // 10**6, value) for time, value in series]
                                  for key, series in samples.items()}, kept)
        self.assertIn("2,999 rows left out", self.said)  # the first row is inside a millisecond, so the rows are in 1001 milliseconds
        self.assertEqual(kept["kymo_ticks_total", ()][-1][1], 3999, "the last row of each millisecond is kept")


class ClickHouseTest(ExportTest):
    """Parses the SQL statements by their grammar. docs/export.md says which server has run them."""

    STATEMENT = re.compile(r"((?:[^;'`]|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)*);\n?", re.S)

    def test_every_value_and_name(self):
        for kind in KINDS:
            with self.subTest(kind):
                recording = getattr(self, kind)()
                text = self.export(recording, "out.sql", "--table-prefix", "x").read_text()
                statements = self.STATEMENT.findall(text)
                self.assertEqual(";\n".join(statements) + ";\n", text)
                created = [s for s in statements if s.startswith("CREATE TABLE `x_samples` (")]
                columns = [re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"`((?:[^`\\]|\\.)*)` UInt64", created[0])]
                names, rows = read_recording(recording)
                self.assertEqual(len(columns), len(names))
                self.assertEqual(len(set(columns)), len(columns))
                if kind != "hostile":
                    self.assertEqual(columns, ["time_ns", *names[1:]])
                read = []
                for statement in statements:
                    if statement.startswith("INSERT INTO `x_samples` VALUES "):
                        tuples = statement.partition(" VALUES ")[2]
                        read += [[int(v) for v in row.split(",")] for row in re.findall(r"\(([\d,]+)\)", tuples)]
                self.assertEqual(read, rows)


if __name__ == "__main__":
    unittest.main(verbosity=2)
