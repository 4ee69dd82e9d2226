"""Tests kymo_recording.py with recordings of the real recorder and with damaged ones."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KYMO_BUILD_DIR", ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "scripts"))

import kymo_recording  # noqa: E402: found by the line above

BYTES = "image_written_bytes"


class RealRecording(unittest.TestCase):
    """One recording of the real recorder, which all tests read."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "dump.tsv"
        subprocess.run([BUILD / "tests/lens/analysis/make_recording", cls.path], check=True)
        cls.run_ = kymo_recording.load(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_rows_are_those_of_the_metadata(self):
        self.assertEqual(self.run_.notes, [])
        stats = self.run_.metadata["stats"]
        self.assertEqual(len(self.run_.rows), stats["rows_written"])
        self.assertEqual(stats["rows_written"] + self.run_.gaps["ticks"].sum(), stats["ticks_due"])
        self.assertEqual(str(self.run_.rows[BYTES].dtype), "uint64")

    def test_kinds_and_units_are_the_metadatas(self):
        self.assertEqual(self.run_.kind("phase"), "gauge")
        self.assertEqual(self.run_.unit(BYTES), "bytes")
        self.assertNotIn("phase", self.run_.rates())

    def test_rates_sum_up_to_the_total(self):
        rates = self.run_.rates("1ms")[BYTES]
        times = self.run_.rows.index[0:1].append(rates.index)
        seconds = [(b - a) / 1e9 for a, b in zip(times[:-1].astype("int64"), times[1:].astype("int64"))]
        # Up to the end of the last window. The simulated dump writes nothing after that.
        self.assertAlmostEqual((rates * seconds).sum(), self.run_.elapsed(BYTES), delta=1)
        self.assertEqual(self.run_.elapsed(BYTES), 60 * 256 * 1024)

    def test_a_peak_in_the_last_half_window_was_in_no_rate(self):
        path = self.path.with_name("tail.tsv")
        path.write_text("Time (ns)\tc\n" + "".join(f"{ms * 1000000}\t{4300 if ms == 1005 else 0}\n" for ms in range(1006)))
        run = kymo_recording.load(path)
        highest = run.highest_rates().loc["c"]
        self.assertEqual((highest["rate"], highest["at_ns"]), (430000, 995000000))
        self.assertEqual(run.rates()["c"].iloc[-1], 4300 / 0.015)
        report = subprocess.run([BUILD / "tools" / "kymo" / "kymo", "report", "--json", self.path], capture_output=True, check=True)
        columns = {column["name"]: column for column in json.loads(report.stdout)["recordings"][0]["columns"]}
        for name, one in self.run_.highest_rates().iterrows():
            self.assertAlmostEqual(one["rate"], columns[name]["highest_rate_per_second"], delta=1e-6 * one["rate"] + 1e-9, msg=name)

    def test_rates_of_a_process_tree_are_by_the_time_of_their_reading(self):
        path = self.path.with_name("tree.tsv")
        read, rows = 0, []
        for ms in range(1000):
            read = ms if ms % 100 < 50 or ms % 100 == 99 else read
            rows.append(f"{ms * 1000000}\t{read * 1000000}\t{(ms - read) * 1000000}\t{ms // 12 * 12000000}\t{ms % 12 * 1000000}\n")
        path.write_text("Time (ns)\ttree_cpu_ns\tprofiler_tree_age_ns\tmachine_cpu_ns\tprofiler_machine_age_ns\n" + "".join(rows))
        run = kymo_recording.load(path)
        for name in ("tree_cpu_ns", "machine_cpu_ns"):
            self.assertAlmostEqual(run.highest_rates().loc[name]["rate"], 1e9, delta=1e6)
            self.assertAlmostEqual(run.rates()[name].max(), 1e9, delta=1e6)

    def test_a_step_of_the_clock_of_ended_children_is_no_peak(self):
        path = self.path.with_name("steps.tsv")
        path.write_text("Time (ns)\ttree_cpu_ns\tprofiler_tree_age_ns\n" + "".join(
            f"{ms * 1000000}\t{(ms + (10 if ms >= 200 else 0)) * 1000000}\t0\n" for ms in range(1000)))
        run = kymo_recording.load(path)  # before, 2 s/s
        self.assertAlmostEqual(run.highest_rates().loc["tree_cpu_ns"]["rate"], 1.1e9, delta=1e6)
        self.assertLess(run.rates()["tree_cpu_ns"].max(), 1.11e9)

    def test_the_total_of_a_counter_that_goes_back_is_the_sum_of_its_steps_up(self):
        path = self.path.with_name("fell.tsv")
        path.write_text("Time (ns)\tc\tlevel\n" + "".join(f"{ms * 1000000}\t{c}\t{c}\n" for ms, c in enumerate([100, 110, 3, 8, 8])))
        columns = [{"name": name, "metric": name, "kind": kind, "unit": "count"} for name, kind in (("c", "counter"), ("level", "gauge"))]
        path.with_name("fell.meta.json").write_text(json.dumps({"format_version": 1, "columns": columns}))
        run = kymo_recording.load(path)
        self.assertEqual((run.elapsed("c"), run.elapsed("level")), (15, -92))

    def test_the_mean_of_a_gauge_is_over_the_time(self):
        path = self.path.with_name("gauge.tsv")
        rows = [(ms, 1 if ms % 200 < 100 else 201) for ms in range(2000) if ms % 200 < 100 or ms % 10 == 0]
        path.write_text("Time (ns)\tdepth\n" + "".join(f"{ms * 1000000}\t{depth}\n" for ms, depth in rows))
        run = kymo_recording.load(path)
        self.assertAlmostEqual(run.mean("depth"), 101, delta=5)
        self.assertEqual(len(kymo_recording.load_all([path, path.parent / "." / path.name])), 1)

    def test_phases_follow_each_other(self):
        phases = self.run_.phases()
        self.assertEqual(list(phases["name"]), ["request", "pre-dump", "network-lock", "post-dump", "done"])
        self.assertEqual(list(phases["end_ns"][:-1]), list(phases["begin_ns"][1:]))

    def test_plot_is_drawn(self):
        picture = self.path.with_name("out.png")
        self.run_.plot(picture)
        self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")

    def test_plot_refuses_an_unknown_column(self):
        with self.assertRaisesRegex(kymo_recording.RecordingError, "no column nothing"):
            self.run_.plot(self.path.with_name("no.png"), ["nothing"])

    def test_example_script(self):
        picture = self.path.with_name("example.svg")
        command = [sys.executable, ROOT / "scripts" / "plot_recording.py", self.path, picture]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertIn("network-lock", done.stdout)
        self.assertIn("15,728,640 bytes", done.stdout)
        self.assertTrue(picture.read_text().rstrip().endswith("</svg>"))

    def test_example_script_fails_in_one_line(self):
        command = [sys.executable, ROOT / "scripts" / "plot_recording.py", "none.tsv", "x.png"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("none.tsv", done.stderr)

    def test_newer_version_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "dump.tsv"
            shutil.copy(self.path, copy)
            metadata = dict(self.run_.metadata, format_version=9)
            copy.with_name("dump.meta.json").write_text(json.dumps(metadata))
            with self.assertRaisesRegex(kymo_recording.RecordingError, "format_version 9 is newer than 1"):
                kymo_recording.load(copy)



class Histograms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "waits.tsv"
        self.path.write_text(
            "Time (ns)\twait_us[0-64]\twait_us[65-128]\twait_us[129-inf]\twait_us_sum\twait_us_count\n"
            "0\t1\t0\t0\t10\t1\n"
            "10000000\t101\t0\t0\t5010\t101\n"
            "20000000\t101\t50\t0\t9910\t151\n"
            "30000000\t101\t50\t0\t9910\t151\n"
            "40000000\t101\t50\t2\t19910\t153\n")
        self.run_ = kymo_recording.load(self.path)

    def test_quantile_of_the_whole_recording(self):
        self.assertEqual(self.run_.histograms(), ["wait_us"])
        self.assertEqual(self.run_.quantile("wait_us", 0.5), 64)  # not above the first bound
        self.assertEqual(self.run_.quantile("wait_us", 1), 129)  # the last bucket has no upper bound

    def test_quantile_over_time(self):
        over_time = self.run_.quantile("wait_us", 0.99, "10ms")
        self.assertEqual(list(over_time.index), [10_000_000, 20_000_000, 30_000_000, 40_000_000])
        self.assertAlmostEqual(over_time.iloc[0], 64)  # in the first bucket: not above its bound
        self.assertAlmostEqual(over_time.iloc[1], 65 + 0.99 * 63)
        self.assertNotEqual(over_time.iloc[2], over_time.iloc[2])  # NaN, because nothing was recorded
        self.assertEqual(over_time.iloc[3], 129)

    def test_quantile_refuses(self):
        with self.assertRaisesRegex(kymo_recording.RecordingError, "its histograms are wait_us"):
            self.run_.quantile("wait", 0.5)
        with self.assertRaisesRegex(ValueError, "not between 0 and 1"):
            self.run_.quantile("wait_us", 99)
        with self.assertRaisesRegex(kymo_recording.RecordingError, "it is shorter than the window 1s"):
            self.run_.quantile("wait_us", 0.5, "1s")


class ManyColumns(unittest.TestCase):
    def test_a_plot_has_a_limit_and_says_what_it_leaves_out(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "many.tsv"
            names = [f"c{i}" for i in range(30)]
            rows = ["\t".join(["Time (ns)", *names])]
            rows += ["\t".join([str(k * 1_000_000), *(str(min(k, i)) for i in range(1, 31))]) for k in range(40)]
            path.write_text("\n".join(rows) + "\n")
            picture = path.with_name("many.png")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                kymo_recording.load(path).plot(picture)
            height = int.from_bytes(picture.read_bytes()[20:24], "big")
            self.assertLess(height, 7000)
            self.assertIn("18 more counters are left out; name those to draw: c0, c1,", said.getvalue())
            self.assertNotIn("c29", said.getvalue())
            kymo_recording.load(path).plot(picture, names[:13])  # columns that are named are all drawn
            self.assertGreater(int.from_bytes(picture.read_bytes()[20:24], "big"), height)


class DamagedRecording(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "a.tsv"

    def load(self, text):
        self.path.write_text(text)
        return kymo_recording.load(self.path)

    def assert_left_out(self, text, rows, *notes):
        run = self.load("Time (ns)\ta\n" + text)
        self.assertEqual([int(value) for value in run.rows["a"]], rows)
        for note in notes:
            self.assertTrue(any(note in line for line in run.notes), (note, run.notes))

    def test_values_up_to_the_largest(self):
        self.assert_left_out(f"1\t{2**63}\n2\t{2**64 - 1}\n", [2**63, 2**64 - 1])

    def test_value_past_the_largest(self):
        self.assert_left_out(f"1\t1\n2\t{2**64}\n3\t3\n", [1, 3], "line 3: a value is past 2^64 - 1")

    def test_cut_last_line(self):
        self.assert_left_out("1\t1\n2\t2", [1], "line 3: cut short")

    def test_wrong_column_counts(self):
        self.assert_left_out("1\t1\n2\n3\t3\t3\n\n4\t4\n", [1, 4], "line 3: 1 values", "line 4: 3 values",
                             "line 5: 1 values")

    def test_no_numbers(self):
        self.assert_left_out("1\t1\n2\tx\n3\t-3\n4\t1.5\n5\t5\n", [1, 5], "line 3", "line 4", "line 5")

    def test_time_that_goes_back(self):
        self.assert_left_out("5\t1\n4\t2\n6\t3\n", [1, 3], "line 3: its time is before")

    def test_a_single_row_is_said_to_show_nothing(self):
        self.assert_left_out("1\t5\n", [5], "only one row, so nothing can be compared")

    def test_header_without_rows(self):
        self.assert_left_out("", [])
        self.assertEqual(len(kymo_recording.load(self.path).rates()), 0)

    def test_foreign_file(self):
        for text in ("a,b", "a,b\n1,2\n"):
            with self.assertRaisesRegex(kymo_recording.RecordingError, "not the header"):
                self.load(text)

    def test_kind_without_metadata(self):
        run = self.load("Time (ns)\tup\tlevel\n1\t1\t5\n2\t2\t4\n")
        self.assertEqual(run.counters(), ["up"])
        self.assertTrue(any("a.meta.json" in note for note in run.notes))

    def test_rows_that_the_metadata_count_and_the_file_does_not_have(self):
        self.load("Time (ns)\tup\n1\t1\n2\t2\n")
        for state, counted, said in (("ended", 5, True), ("recovered", 1, True), ("ended", 2, False), ("running", 1, False)):
            self.path.with_name("a.meta.json").write_text(json.dumps(
                {"format_version": 1, "state": state, "stats": {"rows_written": counted},
                 "columns": [{"name": "up", "kind": "counter"}]}))
            notes = kymo_recording.load(self.path).notes
            self.assertEqual(f"the metadata count {counted} rows, the file holds 2: all figures are of these" in notes, said, notes)

    def test_what_never_had_a_value_is_said(self):
        self.load("Time (ns)\tbad\n1\t0\n2\t0\n")
        self.path.with_name("a.meta.json").write_text(json.dumps(
            {"format_version": 1, "state": "ended", "columns": [{"name": "bad", "kind": "gauge"}],
             "callback_errors": [{"metric": "bad", "count": 2, "what": "x", "no_value": True}]}))
        self.assertIn("bad never had a value, because its callback has thrown each time: its columns are 0, which means nothing",
                      kymo_recording.load(self.path).notes)

    def test_a_part_of_a_longer_recording_is_said(self):
        self.load("Time (ns)\tup\n1\t1\n2\t2\n")
        self.path.with_name("a.meta.json").write_text(json.dumps(
            {"format_version": 1, "columns": [{"name": "up", "kind": "counter"}],
             "part": {"number": 1, "previous": "a.tsv", "next": "a.2.tsv"}}))
        notes = [note for note in kymo_recording.load(self.path).notes if "only part" in note]
        self.assertEqual(notes, ["it is only part 1 of a longer recording: the rows before are in a.tsv",
                                 "it is only part 1 of a longer recording: the rows after are in a.2.tsv"])

    def test_the_parts_of_a_recording_are_one(self):
        paths = [self.path.with_name(name) for name in ("a.tsv", "a.1.tsv", "a.2.tsv")]
        for i, path in enumerate(paths):
            path.write_text(f"Time (ns)\tup\n{2 * i + 1}\t{10 * i}\n{2 * i + 2}\t{10 * i + 1}\n")
            path.with_suffix(".gaps.tsv").write_text(f"Start (ns)\tEnd (ns)\tTicks\tCause\n{i}\t{i + 1}\t1\tlate\n")
            near = {"previous": paths[i - 1].name} if i > 0 else {}
            near.update({"next": paths[i + 1].name} if i < 2 else {})
            path.with_suffix(".meta.json").write_text(json.dumps(
                {"format_version": 1, "state": "ended", "columns": [{"name": "up", "kind": "counter"}],
                 "part": {"number": i, **near}, "stats": {"ticks_due": 3, "rows_written": 2, "missed_late": 1}}))
        run = kymo_recording.load([paths[2], paths[0], paths[1]])
        self.assertEqual(run.path, paths[0])
        self.assertEqual(list(run.rows.index), [1, 2, 3, 4, 5, 6])
        self.assertEqual(run.elapsed("up"), 21)
        self.assertEqual(run.metadata["stats"], {"ticks_due": 9, "rows_written": 6, "missed_late": 3})
        self.assertEqual(run.gaps["ticks"].sum(), 3)
        self.assertEqual(run.notes, [])
        self.assertEqual(kymo_recording.load([self.path.parent]).elapsed("up"), 21)
        other = self.path.with_name("b.tsv")
        other.write_text("Time (ns)\tup\n1\t1\n2\t2\n")
        runs = kymo_recording.load_all([other, *reversed(paths)])  # before the fix, four
        self.assertEqual([(run.path, run.elapsed("up")) for run in runs], [(other, 1), (paths[0], 21)])
        self.assertEqual([run.elapsed("up") for run in kymo_recording.load_all([paths[2], paths[0]])], [1, 1])
        later = kymo_recording.load(paths[1:])
        self.assertEqual(later.notes, ["it is only part 1 of a longer recording: the rows before are in a.tsv"])
        with self.assertRaisesRegex(kymo_recording.RecordingError, "a.2.tsv to .*a.tsv: it is not the part after it"):
            kymo_recording.load([paths[0], paths[2]])
        text = paths[1].read_text()
        for length in (0, 4, 10):  # somebody has cut it within its header; before, no part could be read
            paths[1].write_text(text[:length])
            for run in (kymo_recording.load(paths), *kymo_recording.load_all(paths)):
                self.assertEqual(list(run.rows.index), [1, 2, 5, 6])
                self.assertRegex(run.notes[0], "read .*a.1.tsv: the file is empty, or ends in the middle of its header")
            with self.assertRaisesRegex(kymo_recording.RecordingError, "in the middle of its header"):
                kymo_recording.load(paths[1])
        paths[1].write_text(text)
        paths[0].with_suffix(".meta.json").unlink()
        self.assertEqual([run.path for run in kymo_recording.load_all(paths)], paths[:1])


class CompressedRecording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "dump.tsv.zst"
        subprocess.run([BUILD / "tests/lens/analysis/make_recording", self.path], check=True)

    def test_is_read_as_a_plain_one(self):
        run = kymo_recording.load(self.path)
        self.assertEqual(run.notes, [])
        self.assertEqual(len(run.rows), run.metadata["stats"]["rows_written"])
        self.assertEqual(run.elapsed(BYTES), 60 * 256 * 1024)

    def test_is_read_up_to_the_last_whole_frame(self):
        frames = [subprocess.run(["zstd", "-cq"], input=text, capture_output=True, check=True).stdout
                  for text in (b"Time (ns)\ta\n", b"1\t1\n2\t2\n", b"3\t3\n")]
        self.path.write_bytes(b"".join(frames)[:-5])
        run = kymo_recording.load(self.path)
        self.assertEqual(list(run.rows["a"]), [1, 2])
        self.assertTrue(any("cut short or damaged" in note for note in run.notes), run.notes)


if __name__ == "__main__":
    unittest.main()
