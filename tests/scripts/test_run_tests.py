"""Tests how the gate counts tests and runs them again (tests/support/run_tests.py), with a real ctest and the output of
the real test runners."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "support" / "run_tests.py"
CTEST = '''
add_test(Good "sh" "-c" "echo fine")
add_test(Bad "sh" "-c" "cat wrong; false")
add_test(Web "cat" "page.tap")
add_test(PreDumpTest.Rounds "cat" "reason")
set_tests_properties(PreDumpTest.Rounds PROPERTIES SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]")
'''
# A test that fails in its first FAILURES runs. Its name has characters that are special in regular expressions of CMake or
# in the shell.
FLAKY = '''
add_test("Each/Flaky (a+b) #1" "sh" "-c" "echo >>runs; cat wrong; test $(wc -l <runs) -gt {}")
'''
GTEST = "[ RUN      ] PreDumpTest.Rounds\nx_test.cc:34: Skipped\n{}\n\n[  SKIPPED ] PreDumpTest.Rounds (1 ms)\n"
WRONG = "[ RUN      ] Bad\nb_test.cc:3: Failure\nExpected: (took) < (1s), actual: 2s\n\n[  FAILED  ] Bad (2001 ms)\n"
PAGE = '''
const test = require("node:test");
test("it is drawn", () => {});
test("a dump appears", { skip: process.env.WHY || false }, () => {});
'''
BATS = '''
@test "a word is printed" { true; }
@test "a word is wrong" { echo "it says neither"; false; }
@test "a process is dumped" { skip "criu check fails"; }
'''
PYTHON = '''
import unittest
class One(unittest.TestCase):
    def test_a(self):
        pass
    @unittest.skip("no parser")
    def test_b(self):
        """What b is."""
    def test_c(self):
        self.fail("wrong")
'''
KERNEL = "this kernel does not track which pages are written: refused, as it must be"


class RunTests(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.write("wrong", WRONG)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def run_here(self, *command, **environment):
        return subprocess.run(command, cwd=self.folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout

    def report(self, ctest_file, stage="release", *options):
        """The lines of the report about the tests of this file, without the list of the slowest."""
        self.write("CTestTestfile.cmake", ctest_file)
        report = self.folder / "report"
        ran = subprocess.run([sys.executable, SCRIPT, stage, "--test-dir", self.folder, "--report", report, *options],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertTrue(report.exists(), ran.stdout)
        lines = report.read_text().splitlines()
        self.assertEqual(ran.returncode, 0 if ", 0 failed," in lines[-1] else 1)
        return [line for line in lines if not line.startswith("slowest: ")]

    def four(self, stage, reason, why_page=""):
        self.write("page.js", PAGE)
        # If node runs inside node, it reports to the outer one. So the variable is removed.
        self.write("page.tap", self.run_here("env", "-u", "NODE_TEST_CONTEXT", "node", "--test", "--test-reporter=tap",
                                             "page.js", WHY=why_page))
        self.write("reason", GTEST.format(reason))
        return self.report(CTEST, stage)

    def printed(self, text):
        """The report about a test that prints this and fails."""
        self.write("printed", text)
        return self.report('add_test(Printed "sh" "-c" "cat printed; false")', "release", "--strict")

    def test_a_skip_that_the_list_has_counts_as_one(self):
        lines = self.four("release", KERNEL)
        self.assertEqual(lines[-1], "2 passed, 1 failed, 1 skipped")
        self.assertIn("FAILED: release: Bad: b_test.cc:3: Failure Expected: (took) < (1s), actual: 2s", lines)
        self.assertIn(f"skipped: release: PreDumpTest.Rounds: {KERNEL}", lines)

    def test_a_criu_that_stops_working_fails_the_tests_that_are_skipped_for_it(self):
        lines = self.four("release", "'criu check' fails: it does not start")
        self.assertEqual(lines[-1], "2 passed, 2 failed, 0 skipped")
        self.assertIn("PreDumpTest.Rounds: 'criu check' fails", "\n".join(lines))

    def test_the_list_is_one_of_stages(self):
        self.assertEqual(self.four("fuzz", KERNEL)[-1], "2 passed, 2 failed, 0 skipped")

    def test_a_skip_within_a_pages_test_is_seen(self):
        lines = self.four("release", KERNEL, "criu check fails: no such file")
        self.assertEqual(lines[-1], "2 passed, 2 failed, 1 skipped")
        self.assertIn("Web: a dump appears: criu check fails: no such file", "\n".join(lines))

    def test_a_skip_within_a_file_of_bats_or_unittest_is_seen(self):
        for name, output in (("bats.tap", self.run_here("bats", "--formatter", "tap", self.write("a.bats", BATS))),
                             ("python.log", self.run_here(sys.executable, "-m", "unittest", "-v",
                                                          self.write("test_one.py", PYTHON).stem))):
            self.write(name, output)
            lines = self.report(f'add_test(Inner "cat" "{name}")')
            self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")
            self.assertRegex(lines[0], "FAILED, skipped and .*: (a process is dumped: criu check fails|test_b: no parser)$")

    def test_a_failure_names_the_test_within_the_file(self):
        bats = self.printed(self.run_here("bats", "--formatter", "tap", self.write("a.bats", BATS)))
        self.assertRegex(bats[0], "^FAILED: release: Printed: a word is wrong .*line 3.* it says neither$")
        self.write("test_one.py", PYTHON)
        python = self.printed(self.run_here(sys.executable, "-m", "unittest", "-v", "test_one"))
        self.assertRegex(python[0], "^FAILED: release: Printed: test_c .*AssertionError: wrong$")

    def test_what_fails_by_chance_passes_in_a_later_run_and_is_listed(self):
        for failures in (1, 2):
            (self.folder / "runs").unlink(missing_ok=True)
            lines = self.report(CTEST.replace("cat wrong; false", "true").replace("cat\" \"page.tap", "true")
                                .replace("add_test(PreDump", "#").replace("set_tests", "#") + FLAKY.format(failures))
            self.assertEqual(lines, [f"flaky: Each/Flaky (a+b) #1, passed in run {failures + 1}: b_test.cc:3: Failure "
                                     "Expected: (took) < (1s), actual: 2s", "4 passed, 0 failed, 0 skipped"])

    def test_what_a_failed_run_has_left_is_ended_before_the_next(self):
        left = ("add_test(Leaves \"sh\" \"-c\" \"test -e left && ! grep -q sleep /proc/$(cat left)/cmdline && exit 0; "
                f"KYMO_TEST_RUN={self.folder} setsid sleep 1000 >/dev/null 2>&1 & echo $! >left; false\")\n")
        lines = self.report(left, "release", "--scratch", str(self.folder))
        self.assertRegex(lines[0], "^flaky: Leaves, passed in run 2")
        self.assertEqual(lines[-1], "1 passed, 0 failed, 0 skipped")

    def test_nothing_of_others_is_ended(self):
        environment = {**os.environ, "KYMO_TEST_RUN": f"{self.folder}-of-others"}
        with subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True) as other:
            self.report(FLAKY.format(1), "release", "--scratch", str(self.folder))
            self.assertIsNone(other.poll())
            other.kill()

    def test_three_failures_are_a_failure(self):
        lines = self.report(FLAKY.format(3))
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")
        self.assertEqual(len((self.folder / "runs").read_text().splitlines()), 3)

    def test_strict_runs_nothing_again_and_neither_does_a_build_that_is_broken(self):
        self.assertEqual(self.report(FLAKY.format(1), "release", "--strict")[-1], "0 passed, 1 failed, 0 skipped")
        (self.folder / "runs").unlink()
        many = "".join(f'add_test(T{number} "false")\n' for number in range(20))
        lines = self.report(FLAKY.format(1) + many)
        self.assertEqual((lines[0], lines[-1]), ("21 tests failed, more than 20: none is run again",
                                                 "0 passed, 21 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
