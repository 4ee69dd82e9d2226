"""Loads what kymo exports for ClickHouse into a real ClickHouse engine (chdb), and compares every value with the
recording.

Runs only with KYMO_TEST_LONG=1, because the engine is a download of 170 MB. Exits with 77, and the reason, if the
engine cannot be installed."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from exporting import ExportTest, read_recording

HERE = pathlib.Path(__file__).resolve().parent
ENGINE = pathlib.Path(os.environ.get("CHDB_FOLDER", "chdb"))


class ClickHouseEngine(ExportTest):
    def ask(self, sql, *queries):
        """Runs the file, then the queries. Returns their answers, or the engine's error if it failed."""
        ran = subprocess.run(["node", str(ENGINE / "run.js"), str(sql), *queries], capture_output=True, text=True,
                             check=False, timeout=200)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def test_every_value_of_every_recording(self):
        for kind in ("dumped", "recorded", "hostile"):
            with self.subTest(kind):
                recording = getattr(self, kind)()
                sql = self.export(recording, "out.sql", "--table-prefix", "x")
                names, rows = read_recording(recording)
                types, kept, described = self.ask(
                    sql, "SELECT name, type FROM system.columns WHERE table = 'x_samples' AND database = currentDatabase() ORDER BY position",
                    "SELECT * FROM x_samples", "SELECT count() FROM x_metrics")
                self.assertEqual([of for _, of in types], ["UInt64"] * len(names))
                self.assertEqual(len({name for name, _ in types}), len(names))
                if kind != "hostile":
                    self.assertEqual([name for name, _ in types], ["time_ns", *names[1:]])
                read = sorted([int(value) for value in row] for row in kept)
                self.assertEqual(read, sorted(rows))
                self.assertEqual(described, [[str(len(names) - 1)]])

    def test_what_stands_beside_the_rows(self):
        metrics, gaps, phases, clock = self.ask(
            self.export(self.dumped(), "out.sql", "--table-prefix", "x"),
            "SELECT kind, unit, help, fields, field_values FROM x_metrics WHERE column = 'criu_calls[dump,ok]'",
            "SELECT start_ns, end_ns, ticks, cause FROM x_gaps ORDER BY start_ns",
            "SELECT name, begin_ns, end_ns FROM x_phases ORDER BY begin_ns LIMIT 1",
            "SELECT toString(fromUnixTimestamp64Nano(toInt64((SELECT toUInt64(value) FROM x_recording WHERE name = 'start_unix_ns') + 0), 'UTC'))")
        self.assertEqual(metrics, [["counter", "count", "Calls.", ["call", "result"], ["dump", "ok"]]])
        self.assertEqual([[*map(int, row[:3]), row[3]] for row in gaps],
                         [[3_000_000, 5_000_000, 2, "late"], [4_000_000, 6_000_000, 2, "ring_full"],
                          [8_000_000, 9_000_000, 1, "frozen"]])
        self.assertEqual(phases, [["pre-dump", "1000000", "4000000"]])
        self.assertEqual(clock, [["2026-11-21 08:57:16.363364903"]])

    def test_a_table_that_is_there_is_not_touched(self):
        sql = self.export(self.dumped(), "out.sql", "--table-prefix", "x")
        twice = self.folder / "twice.sql"
        twice.write_text(sql.read_text() * 2)
        ran = subprocess.run(["node", str(ENGINE / "run.js"), str(twice)], capture_output=True, text=True, check=False,
                             timeout=200)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("already exists", ran.stderr)


if __name__ == "__main__":
    if "KYMO_TEST_LONG" not in os.environ:
        print("only with KYMO_TEST_LONG=1: the engine is 170 MB to download", file=sys.stderr)
        sys.exit(77)
    installed = subprocess.run(["bash", str(HERE.parent / "support" / "npm_install"), str(HERE / "chdb"), str(ENGINE)], check=False)
    if installed.returncode != 0:
        sys.exit(installed.returncode)
    unittest.main(verbosity=2)
