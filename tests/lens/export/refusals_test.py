"""What an export does with damaged input, a full disk and wrong usage: no incomplete file looks complete, and each
error is printed."""

import csv
import fcntl
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import unittest

from exporting import BIG, KYMO, ExportTest

# Runs in a process of its own, because getrusage(2) adds the memory of the process that forks a program to the program's.
MEASURE = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
FORMATS = {"perfetto": "json", "openmetrics": "om", "csv": "csv", "sqlite": "sqlite", "clickhouse": "sql"}


class DamageTest(ExportTest):
    def test_what_is_whole_is_exported_and_the_rest_said_by_line(self):
        path = self.folder / "cut.tsv"
        path.write_text(f"Time (ns)\ta\tb\n1\t2\t3\n2\tx\t3\n3\t4\n4\t5\t{BIG}0\n5000000\t6\t7\n4\t1\t1\n"
                        "6000000\t7\t8\n7\t8")
        for name, ending in FORMATS.items():
            with self.subTest(name):
                self.export(path, "out." + ending)
                for line in ("line 3: ", "line 4: ", "line 5: ", "line 7: ", "line 9: cut short"):
                    self.assertIn(f"cut.tsv: left out {line}", self.said)
                self.assertIn("cut.meta.json", self.said)
                self.assertIn("3 rows of 2 columns", self.said)
        with (self.folder / "out.csv").open(newline="") as file:
            self.assertEqual(list(csv.reader(file))[1:], [["1", "2", "3"], ["5000000", "6", "7"],
                                                            ["6000000", "7", "8"]])

    def test_a_name_that_is_a_formula_is_none_in_a_spreadsheet(self):
        path = self.written(["=cmd|' /C calc'!A1", "-a,b", "plain"], [[1, 2, 3, 4]])
        self.export(path, "out.csv")
        with (self.folder / "out.csv").open(newline="") as file:
            self.assertEqual(next(csv.reader(file)), ["Time (ns)", "'=cmd|' /C calc'!A1", "'-a,b", "plain"])

    def test_a_header_without_rows(self):
        path = self.written(["a"], [])
        for ending in FORMATS.values():
            with self.subTest(ending):
                self.export(path, "out." + ending)
                self.assertIn("0 rows of 1 columns", self.said)

    def test_a_frame_cut_short(self):
        path = self.written(["a"], [[i, i] for i in range(2000)])
        lines = path.read_bytes().splitlines(keepends=True)
        frames = [subprocess.run(["zstd", "-q"], input=b"".join(part), check=True, stdout=subprocess.PIPE).stdout
                  for part in (lines[:1001], lines[1001:])]
        packed = self.folder / "packed.tsv.zst"
        packed.write_bytes(frames[0] + frames[1][:-9])
        self.export(packed, "out.csv")
        self.assertIn("packed.tsv.zst: left out line 1002: ", self.said)
        self.assertIn("1,000 rows of 1 columns", self.said)


class FailureTest(ExportTest):
    def test_a_disk_that_fills_leaves_the_old_file_and_no_other(self):
        path = self.written(["a", "b"], [[i, i, i * i] for i in range(40000)])

        def little_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

        for name, ending in FORMATS.items():
            with self.subTest(name):
                output = self.folder / ("out." + ending)
                output.write_text("old")
                ran = self.kymo(path, "--output", output, preexec_fn=little_room)
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertEqual(output.read_text(), "old")
                self.assertFalse(os.path.exists(str(output) + ".new"))
                self.assertRegex(ran.stderr, "too large|disk is full|disk I/O error|temporary file")

    def test_killed_midway_nothing_has_the_name(self):
        path = self.written(["a"], [[i, i] for i in range(300000)])
        for name, ending in FORMATS.items():
            with self.subTest(name):
                output = self.folder / ("out." + ending)
                running = subprocess.Popen([KYMO, "export", str(path), "--output", str(output)],
                                           stderr=subprocess.DEVNULL)
                while not os.path.exists(str(output) + ".new") and running.poll() is None:
                    pass
                running.kill()
                if running.wait() == -signal.SIGKILL:
                    self.assertFalse(output.exists())
                self.export(path, output.name)  # the rest of the failed export must not be in the way

    def test_another_export_is_writing_it(self):
        path = self.written(["a"], [[1, 1]])
        for ending in ("csv", "sqlite"):
            output = self.folder / ("out." + ending)
            with open(str(output) + ".new", "w", encoding="ascii") as other:
                fcntl.flock(other, fcntl.LOCK_EX)
                ran = self.kymo(path, "--output", output)
                self.assertEqual(ran.returncode, 1)
                self.assertIn("another export is writing it", ran.stderr)
                self.assertTrue(os.path.exists(str(output) + ".new"))
            self.assertFalse(output.exists())

    # The process that reads for a killed export also keeps its lock until it ends.
    def test_one_that_ends_soon_is_waited_for(self):
        path = self.written(["a"], [[1, 1]])
        output = self.folder / "out.csv"
        with open(str(output) + ".new", "w", encoding="ascii") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            # The process inherits the lock with the descriptor, and ends before kymo gives up waiting.
            with subprocess.Popen(["sleep", "1"], pass_fds=[other.fileno()]):
                other.close()
                self.export(path, output.name)

    def test_a_file_made_beforehand_does_not_become_the_result(self):
        path = self.written(["a"], [[1, 1]])
        for ending in ("csv", "sqlite"):
            with self.subTest(ending), open(str(self.folder / f"out.{ending}.new"), "w+", encoding="ascii") as planted:
                if os.geteuid() == 0:
                    os.fchown(planted.fileno(), 65534, 65534)
                output = self.export(path, "out." + ending)
                self.assertEqual(planted.read(), "")
                self.assertNotEqual(output.stat().st_ino, os.fstat(planted.fileno()).st_ino)
                self.assertEqual(output.stat().st_uid, os.geteuid())

    @unittest.skipIf(os.geteuid() != 0, "needs root to make a link of another user")
    def test_another_users_link_is_not_followed(self):
        path = self.written(["a"], [[1, 1]])
        precious = self.folder / "precious"
        precious.write_text("precious")
        for name, target in (("link.csv", precious), ("link.sqlite", precious), ("device.csv", "/dev/full")):
            with self.subTest(name):
                link = self.folder / name
                link.symlink_to(target)
                os.lchown(link, 65534, 65534)
                ran = self.kymo(path, "--output", link)
                self.assertEqual(ran.returncode, 1)
                self.assertIn("is a link that belongs to uid 65534", ran.stderr)
                self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
                self.assertEqual(precious.read_text(), "precious")

    def test_standard_output_by_its_path(self):
        path = self.written(["a"], [[1, 1]])
        ran = self.kymo(path, "--output", "/dev/stdout", "--format", "csv")
        self.assertEqual((ran.returncode, ran.stdout), (0, "Time (ns),a\n1,1\n"), ran.stderr)
        with (self.folder / "redirected.csv").open("w") as redirected:
            ran = subprocess.run([os.environ["KYMO"], "export", str(path), "--output", "/dev/stdout", "--format", "csv"],
                                 stdout=redirected, check=True, timeout=60)
        self.assertEqual((self.folder / "redirected.csv").read_bytes(), b"Time (ns),a\r\n1,1\r\n")

    def test_a_device_is_written_to_and_not_replaced(self):
        path = self.written(["a"], [[1, 1]])
        ran = self.kymo(path, "--format", "csv", "--output", "/dev/full")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("/dev/full: No space left", ran.stderr)
        self.assertFalse(os.path.exists("/dev/full.new"))

    @unittest.skipIf(os.environ.get("KYMO_SANITIZE"), "a sanitizer keeps memory of its own")
    def test_memory_does_not_grow_with_the_recording(self):
        def most_memory(name, rows):
            path = self.folder / name
            with path.open("w", encoding="ascii") as file:
                file.write("Time (ns)\ta\tb\tc\n")
                for i in range(rows):
                    file.write(f"{i * 1_000_000}\t{i}\t{i * 7}\t{BIG - i}\n")
            found = {}
            for format_name, ending in FORMATS.items():
                command = [sys.executable, "-c", MEASURE, KYMO, "export", str(path), "--output",
                           str(self.folder / ("out." + ending))]
                found[format_name] = int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            return path.stat().st_size, found

        small_size, small = most_memory("small.tsv", 1000)
        large_size, large = most_memory("large.tsv", 700_000)
        self.assertGreater(large_size - small_size, 24 << 20)
        for name in FORMATS:
            self.assertLess(large[name] - small[name], 16 << 10, name)  # KiB


class UsageTest(ExportTest):
    def refused(self, code, word, *arguments):
        ran = self.kymo(*arguments)
        self.assertEqual((ran.returncode, ran.stdout), (code, ""), ran.stderr)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        self.assertIn(word, ran.stderr)

    def test_each_refusal_is_one_clear_line(self):
        path = self.written(["a"], [[1, 1]], {"format_version": 1, "state": "ended"}, [])
        out = self.folder / "out.csv"
        self.refused(2, "--output", path)
        self.refused(2, "RECORDING", "--output", out)
        self.refused(2, "unknown format \"parquet\": choose one of perfetto, openmetrics, csv, sqlite, clickhouse",
                     path, "--output", out, "--format", "parquet")
        self.refused(2, "does not show the format", path, "--output", self.folder / "out.xlsx")
        self.refused(2, "an SQLite file cannot be written to standard output", path, "--output", "-", "--format", "sqlite")
        self.refused(2, "the export and --json cannot both be written", path, "--output", "-", "--format", "csv", "--json")
        self.refused(1, "No such file", self.folder / "none.tsv", "--output", out)
        self.refused(1, "No such file", path, "--output", self.folder / "none" / "out.csv")
        self.refused(1, "Is a directory", path, "--output", self.folder, "--format", "csv")
        self.refused(1, "that is the recording itself", path, "--output", path, "--format", "csv")
        self.refused(1, "that is the recording itself", path, "--output", self.folder / "made.meta.json")
        self.assertFalse(out.exists())
        wide = self.written([f"c{i}" for i in range(2000)], [], name="wide.tsv")
        self.refused(1, "at most 1999", wide, "--output", self.folder / "wide.sqlite")

    def test_standard_output_is_the_text_alone(self):
        path = self.written(["a"], [[1, 1]])
        ran = self.kymo(path, "--output", "-", "--format", "csv")
        self.assertEqual((ran.returncode, ran.stdout), (0, "Time (ns),a\n1,1\n"))

    def test_no_export_goes_to_a_terminal(self):
        path = self.written(["a\x1b]0;title\x07"], [[1, 1]])
        for output in ("-", "/dev/stdout"):
            master, terminal = pty.openpty()
            try:
                ran = subprocess.run([KYMO, "export", str(path), "--output", output, "--format", "csv"],
                                     stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, text=True,
                                     check=False, timeout=60)
                self.assertEqual(select.select([master], [], [], 0)[0], [], "nothing is written to it")
            finally:
                os.close(terminal)
                os.close(master)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
            self.assertIn("write it to a file or a pipe", ran.stderr)

    def test_a_prefix_that_no_name_can_begin_with_is_left_out(self):
        for prefix in ("p_\nevil_up 666\n# EOF\nx", "1a", "a b", "a" * 65, "é"):
            with self.subTest(prefix):
                path = self.written(["a"], [[1, 1]], {"format_version": 1, "state": "ended", "prometheus_prefix": prefix},
                                    [])
                text = self.export(path, "out.om").read_text()
                self.assertEqual(text.splitlines()[0], "# TYPE kymo_a counter")
                self.assertNotIn("evil", text)
                self.assertIn("the prometheus_prefix in the metadata cannot begin the name of a metric", self.said)
        path = self.written(["a"], [[1, 1]], {"format_version": 1, "state": "ended", "prometheus_prefix": "a" * 64}, [])
        self.assertTrue(self.export(path, "out.om").read_text().startswith("# TYPE " + "a" * 65 + " "))

    def test_a_checkpoints_recordings_get_a_file_each(self):
        for name in ("recordings/dump.tsv", "recordings/restore.tsv"):
            (self.folder / "recordings").mkdir(exist_ok=True)
            self.written(["a"], [[1, 1]], name=name)
        ran = self.kymo(self.folder, "--output", self.folder / "x.y" / ".." / "out.csv")
        self.assertEqual(ran.returncode, 1)  # x.y does not exist
        ran = self.kymo(self.folder, "--output", self.folder / "out.csv", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue((self.folder / "out-dump.csv").exists())
        self.assertTrue((self.folder / "out-restore.csv").exists())
        self.assertEqual(ran.stdout.count('"rows": 1'), 2)

    def test_a_link_stays_a_link(self):
        path = self.written(["a"], [[1, 1]])
        (self.folder / "target.csv").write_text("old")
        (self.folder / "link.csv").symlink_to("target.csv")
        self.export(path, "link.csv")
        self.assertTrue((self.folder / "link.csv").is_symlink())
        self.assertIn("Time (ns)", (self.folder / "target.csv").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
