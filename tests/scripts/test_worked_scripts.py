"""Tests the example scripts, and what kymo_recording.py does with several recordings, on recordings of the real
programs."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("KYMO_BUILD_DIR", ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "scripts"))

import kymo_recording  # noqa: E402: found by the line above

BYTES = "image_written_bytes"
ALL_BYTES = 60 * 256 * 1024


def script(name, *arguments):
    command = [sys.executable, ROOT / "scripts" / name, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


class RealRecordings(unittest.TestCase):
    """A checkpoint, a folder with two more recordings, and the recording of a command. All tests read them."""

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        (cls.folder / "checkpoint" / "recordings").mkdir(parents=True)
        (cls.folder / "runs").mkdir()
        cls.dump = cls.folder / "checkpoint" / "recordings" / "dump.tsv"
        cls.first = cls.folder / "runs" / "first.tsv"
        cls.second = cls.folder / "runs" / "second.tsv.zst"
        cls.command = cls.folder / "command.tsv"
        for path in (cls.dump, cls.first, cls.second):
            subprocess.run([BUILD / "tests/lens/analysis/make_recording", path], check=True, timeout=60)
        subprocess.run([BUILD / "tools" / "kymo" / "kymo", "record", "--output", cls.command, "--",
                        "sh", "-c", "dd if=/dev/zero of=/dev/null bs=64k count=20000 2>/dev/null"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=60)
        cls.runs = kymo_recording.load_all([cls.folder / "checkpoint", cls.folder / "runs"])

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def assert_fails_in_one_line(self, done, text):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_a_glob_that_matches_the_lists_of_gaps_brings_the_recordings_alone(self):
        everything = sorted((self.folder / "checkpoint" / "recordings").glob("*"))
        self.assertEqual(sorted(path.name for path in everything), ["dump.gaps.tsv", "dump.meta.json", "dump.tsv"])
        self.assertEqual(kymo_recording.find_all(everything), [self.dump])
        self.assertEqual(script("find_slowest.py", *everything).returncode, 0)

    def test_a_companion_file_alone_names_its_recording(self):
        gaps = self.dump.with_name("dump.gaps.tsv")
        self.assert_fails_in_one_line(script("plot_recording.py", gaps, self.folder / "out.png"), f"give {self.dump}")
        compressed = self.second.with_name("second.gaps.tsv")
        self.assert_fails_in_one_line(script("find_slowest.py", compressed), f"give {self.second}")

    def test_an_unfinished_recording_is_not_ranked(self):
        cut = self.folder / "cut.tsv"
        cut.write_bytes(self.dump.read_bytes())
        metadata = json.loads(self.dump.with_suffix(".meta.json").read_text())
        cut.with_suffix(".meta.json").write_text(json.dumps({**metadata, "state": "running"}))
        done = script("find_slowest.py", cut, self.dump)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cut.tsv is left out: it is unfinished", done.stderr)
        self.assertNotIn("cut.tsv", done.stdout)

    def test_folders_and_checkpoints_are_found(self):
        self.assertEqual([run.name for run in self.runs], ["dump", "first", "second"])
        with self.assertRaisesRegex(kymo_recording.RecordingError, "there is none"):
            kymo_recording.find(tempfile.mkdtemp(dir=self.folder))

    def test_table_has_a_row_a_run(self):
        table = kymo_recording.table(self.runs)
        self.assertEqual(list(table[BYTES]), [ALL_BYTES] * 3)
        self.assertEqual(list(table["request"]), ["dump"] * 3)
        self.assertTrue((table["phase: pre-dump"] > 25e6).all())
        self.assertTrue((table["duration_ns"] > 300e6).all())

    def test_without_rows_it_is_read_by_its_metadata(self):
        run = kymo_recording.load(self.first, rows=False)
        self.assertEqual(len(run.rows), 0)
        self.assertIn(BYTES, run.rows.columns)
        self.assertEqual(run.mark("pre-dump"), self.runs[1].mark("pre-dump"))
        with self.assertRaisesRegex(kymo_recording.RecordingError, "No such file"):
            kymo_recording.load(self.folder / "none.tsv", rows=False)

    def test_a_phase_is_cut_out(self):
        run = self.runs[1]
        phase = run.phase("network-lock")
        self.assertGreaterEqual(int(phase.rows.index[0]), run.mark("network-lock"))
        self.assertLessEqual(int(phase.rows.index[-1]), run.mark("post-dump"))
        self.assertGreaterEqual(phase.elapsed(BYTES), ALL_BYTES - 2 * 256 * 1024)
        with self.assertRaisesRegex(kymo_recording.RecordingError, "its marks are request, pre-dump"):
            run.phase("nothing")

    def test_values_are_rates_of_counters_and_gauges_as_they_stand(self):
        values = self.runs[1].values()
        self.assertEqual(set(values["phase"].unique()) - {0, 1, 2, 3, 4}, set())
        self.assertEqual(values[BYTES].max(), self.runs[1].rates()[BYTES].max())

    def test_runs_are_aligned_at_a_phase(self):
        frame = kymo_recording.aligned(self.runs, BYTES, "network-lock")
        self.assertEqual(list(frame.columns), ["dump", "first", "second"])
        # Before the phase nothing is written (except in a window that contains its start). In the phase all
        # runs write.
        self.assertEqual(frame.loc[:-11_000_000].max().max(), 0)
        self.assertTrue((frame.loc[20_000_000:60_000_000].mean() > 10e6).all())
        self.assertEqual(kymo_recording.common_mark(self.runs), "request")

    def test_plot_of_a_checkpoint(self):
        picture = self.folder / "checkpoint.png"
        done = script("plot_recording.py", self.folder / "checkpoint", picture)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")

    def recording_with_a_phase(self, name, begin_ns, end_ns):
        """The dump, with another phase `short`."""
        path = self.folder / f"{name}.tsv"
        path.write_bytes(self.dump.read_bytes())
        path.with_suffix(".gaps.tsv").write_bytes(self.dump.with_suffix(".gaps.tsv").read_bytes())
        metadata = json.loads(self.dump.with_suffix(".meta.json").read_text())
        metadata["marks"] = [{"name": "short", "at_ns": begin_ns}, {"name": "after", "at_ns": end_ns}]
        path.with_suffix(".meta.json").write_text(json.dumps(metadata))
        return path

    def seven_samples(self):
        """The times of the first and the last of seven samples in the middle of the dump's writing."""
        times = self.runs[0].phase("network-lock").rows.index.to_numpy().astype("int64")
        return int(times[10]), int(times[16])

    def test_a_phase_shorter_than_the_usual_window_is_aligned_with_a_shorter_one(self):
        begin, last = self.seven_samples()
        short = self.recording_with_a_phase("short", begin, last + 1)
        aligned = kymo_recording.aligned([kymo_recording.load(short).phase("short")], BYTES, "short", window="5ms")
        self.assertGreater(int(aligned["short"].notna().sum()), 1)

    def test_a_reader_that_goes_away_ends_them_quietly(self):
        folder = self.folder / "checkpoint"
        for command in (["find_slowest.py", folder], ["plot_recording.py", folder, self.folder / "pipe.png"],
                        ["estimate_downtime.py", folder, "--column", BYTES, "--memory", "1MiB", "--bandwidth", "1MiB"]):
            words = [sys.executable, ROOT / "scripts" / command[0], *map(str, command[1:])]
            read_end, write_end = os.pipe()
            os.close(read_end)
            done = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE, text=True)
            os.close(write_end)
            self.assertNotIn("Traceback", done.stderr)
            self.assertNotIn("BrokenPipe", done.stderr)

    def test_find_slowest(self):
        slow = self.folder / "slow.tsv"
        metadata = json.loads(self.first.with_name("first.meta.json").read_text())
        for mark in metadata["marks"]:
            if mark["name"] in ("network-lock", "post-dump", "done"):
                mark["at_ns"] += 2_000_000_000
        slow.write_bytes(self.first.read_bytes())
        slow.with_name("slow.meta.json").write_text(json.dumps(metadata))
        done = script("find_slowest.py", self.folder / "checkpoint", self.folder / "runs", slow)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("4 recordings", lines[0])
        self.assertIn("slow.tsv", lines[1])
        self.assertRegex(done.stdout, r"phase: pre-dump of the slowest took (19|20)\d\d\.\d+ ms more")
        self.assert_fails_in_one_line(script("find_slowest.py", slow, "--request", "restore"), "of a restore")

    def test_estimate_downtime(self):
        arguments = [self.first, "--column", BYTES, "--memory", "16MiB", "--bandwidth", "160MiB/s", "--rounds", "1"]
        done = script("estimate_downtime.py", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        none, once = (line.split() for line in done.stdout.splitlines()[-2:])
        # Moving the whole memory takes 0.1 s. After one round, the pages that were written in this time are
        # left.
        self.assertEqual(none[:2], ["0", "100.0"])
        curve = self.runs[1].rows[BYTES]
        times = curve.index.to_numpy().astype("int64")
        most = max(int(curve.asof(at + 100_000_000)) - int(curve.asof(at)) for at in times)
        self.assertAlmostEqual(float(once[3]), most / (160 * 2**20) * 1e3, delta=4)
        self.assertLess(float(once[5]), 1)

    def test_estimate_downtime_by_the_bandwidth_of_a_dump(self):
        done = script("estimate_downtime.py", self.first, "--column", BYTES, "--memory", "1GiB", "--dump",
                      self.folder / "checkpoint")
        self.assertEqual(done.returncode, 0, done.stderr)
        bandwidth = float(re.search(r"1,024.0 MiB at ([\d.]+) MiB/s", done.stdout)[1])
        # make_recording writes at most 256 KiB every 2 ms, so a window of 10 ms has at most six writes.
        writing_ns = self.runs[0].mark("post-dump") - self.runs[0].mark("network-lock")
        self.assertGreater(bandwidth, 0.8 * ALL_BYTES / writing_ns * 1e9 / 2**20)
        self.assertLess(bandwidth, 6 * 0.25 / 0.010)

    def test_estimate_downtime_takes_a_checkpoint(self):
        rest = ["--column", BYTES, "--memory", "16MiB", "--bandwidth", "160MiB/s"]
        done = script("estimate_downtime.py", self.folder / "checkpoint", *rest)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, script("estimate_downtime.py", self.dump, *rest).stdout)

    def test_estimate_downtime_says_what_is_wrong(self):
        rest = ["--memory", "1GiB", "--bandwidth", "1GiB"]
        self.assert_fails_in_one_line(script("estimate_downtime.py", self.first, "--column", "x", *rest), "no column x")
        self.assert_fails_in_one_line(script("estimate_downtime.py", self.first, "--column", "phase", *rest),
                                      "not a counter of bytes or pages")
        done = script("estimate_downtime.py", self.first, "--column", "phase", *rest)
        self.assertRegex(done.stderr, r"its growing counters: .*" + BYTES)
        done = script("estimate_downtime.py", self.first, "--column", BYTES, "--memory", "much", "--bandwidth", "1GiB")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'much' is not a size", done.stderr)

    def test_a_command_recorded_from_without_is_read(self):
        run = kymo_recording.load(self.command)
        self.assertEqual(run.metadata["state"], "ended")
        self.assertGreater(len(run.rows), 5)


if __name__ == "__main__":
    unittest.main()
