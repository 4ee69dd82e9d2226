"""Runs scripts/demo as a new user does, and interrupts it. It takes a minute, so only `scripts/test --all` runs it."""

import os
import pathlib
import re
import signal
import subprocess
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "scripts/demo"
TIMEOUT_S = 150  # ends a hang


def start(mark):
    """Starts the demo in a session of its own, as a terminal does. All that it starts has `mark` in its environment."""
    return subprocess.Popen([DEMO], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                            env={**os.environ, "KYMO_DEMO_TEST": mark},
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def running(mark):
    """The command lines of the processes with this mark."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"KYMO_DEMO_TEST={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has ended, or it is a thread of the kernel
            pass
    return found


class DemoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mark = str(uuid.uuid4())
        demo = start(cls.mark)
        cls.out = demo.communicate(timeout=TIMEOUT_S)[0]
        cls.left = running(cls.mark)
        cls.lines = cls.out.splitlines()
        cls.exit_code = demo.returncode
        ends = [number for number, line in enumerate(cls.lines) if line.startswith("== done in ")]
        cls.end = cls.lines[ends[0]:] if ends else []

    def part(self, heading):
        """The indented lines below a heading of the last part."""
        lines = self.end[self.end.index(heading) + 1:]
        outside = [number for number, line in enumerate(lines) if not line.startswith(" ")]
        return lines[:outside[0] if outside else None]

    def setUp(self):
        self.assertEqual(self.exit_code, 0, self.out)

    def test_it_prints_at_most_80_lines_and_ends_with_one_screen(self):
        self.assertLessEqual(len(self.lines), 80, self.out)
        self.assertLessEqual(len(self.end), 24, self.out)

    def test_it_says_how_long_each_part_took(self):
        self.assertRegex(self.end[0], r"^== done in \d+ s$")
        took = re.findall(r"(?:, |^)(\D.*?) \d+ s(?=,|$)", self.end[1])
        self.assertEqual(took, [line[3:] for line in self.lines if line.startswith("== ")][:-1])

    def test_it_says_in_sentences_how_the_dump_and_the_restore_went(self):
        self.assertRegex(self.part("The dump")[0], r"^  The process stood still for .+ of the .+ that the dump took\.$")
        restore = self.part("The restore")
        self.assertRegex(restore[0], r"^  The restore took .+\.$")
        counts = re.fullmatch(r"  The process counts on: its dump stopped it at (\d+), and it came to (\d+)\.", restore[-1])
        self.assertGreater(int(counts[2]), int(counts[1]))

    def test_the_files_that_it_names_are_there(self):
        files = [line.split()[0] for line in self.part("Look at")]
        self.assertEqual(len(files), 3)
        for file in files:
            self.assertGreater((ROOT / file).stat().st_size, 0, file)
        report = (ROOT / next(file for file in files if file.endswith(".txt"))).read_text()
        for table in ("memory: writing pages", "memory: reading pages", "STOOD STILL", "MEDIAN", "pages_written", "COUNTER"):
            self.assertIn(table, report)

    def test_the_commands_that_it_names_work_as_they_stand_there(self):
        commands = self.part("Try next")
        self.assertEqual(len(commands), 3)
        for command in commands:
            done = subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=TIMEOUT_S)
            self.assertEqual(done.returncode, 0, command + "\n" + done.stdout)
            self.assertNotEqual(done.stdout, "", command)

    def test_it_leaves_nothing_running(self):
        self.assertEqual(self.left, [])


class InterruptedDemoTest(unittest.TestCase):
    def test_ctrl_c_in_any_part_leaves_nothing_running(self):
        for part in ("== build", "== start kymod", "started job ", "== dump it", "dumped pid ", "== restore it", "restored pid "):
            with self.subTest(part):
                mark = str(uuid.uuid4())
                demo = start(mark)
                said = ""
                for line in demo.stdout:
                    said += line
                    if line.startswith(part):
                        break
                os.killpg(demo.pid, signal.SIGINT)  # what a terminal does
                said += demo.communicate(timeout=TIMEOUT_S)[0]
                self.assertEqual((demo.returncode, running(mark)), (130, []), said)

    def test_a_second_demo_beside_it_is_refused_and_harms_nothing(self):
        mark = str(uuid.uuid4())
        first = start(mark)
        for line in first.stdout:
            if line.startswith("started job "):
                break
        second = subprocess.run([DEMO], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False)
        first.communicate(timeout=TIMEOUT_S)
        self.assertEqual((second.returncode, first.returncode, running(mark)), (1, 0, []), second.stdout)
        self.assertIn("another scripts/demo runs in this clone", second.stderr)


if __name__ == "__main__":
    unittest.main()
