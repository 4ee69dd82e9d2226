"""The gate's counting (tests/support/count_results.py), of reports that the real runners write."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "support" / "count_results.py"
CTEST = '''
add_test(Good "sh" "-c" "echo fine")
add_test(Bad "sh" "-c" "cat wrong; false")
add_test(Web "cat" "page.tap")
add_test(PreDumpTest.Rounds "cat" "{reason}")
set_tests_properties(PreDumpTest.Rounds PROPERTIES SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]")
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


class CountResults(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def run_here(self, *command, **environment):
        return subprocess.run(command, cwd=self.folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout

    def counted(self, stage, runner, path):
        return subprocess.run([sys.executable, SCRIPT, stage, runner, path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    def ctest(self, stage, reason, why_page=""):
        self.write("page.js", PAGE)
        # As node inside node, it would report to the outer one.
        self.write("page.tap", self.run_here("env", "-u", "NODE_TEST_CONTEXT", "node", "--test", "--test-reporter=tap",
                                             "page.js", WHY=why_page))
        self.write("wrong", WRONG)
        self.write("reason", GTEST.format(reason))
        self.write("CTestTestfile.cmake", CTEST.format(reason="reason"))
        self.run_here("ctest", "--test-output-size-passed", "200000", "--output-junit", "report.xml")
        return self.counted(stage, "ctest", self.folder / "report.xml")

    def test_a_skip_that_the_list_has_counts_as_one(self):
        lines = self.ctest("release", KERNEL)
        self.assertEqual(lines[-1], "2 passed, 1 failed, 1 skipped")
        self.assertIn("FAILED: Bad: b_test.cc:3: Failure Expected: (took) < (1s), actual: 2s", lines)
        self.assertIn(f"skipped: release: PreDumpTest.Rounds: {KERNEL}", lines)

    def test_a_criu_that_stops_working_fails_the_tests_that_are_skipped_for_it(self):
        lines = self.ctest("release", "'criu check' fails: it does not start")
        self.assertEqual(lines[-1], "2 passed, 2 failed, 0 skipped")
        self.assertIn("PreDumpTest.Rounds: 'criu check' fails", "\n".join(lines))

    def test_the_list_is_one_of_stages(self):
        self.assertEqual(self.ctest("fuzz", KERNEL)[-1], "2 passed, 2 failed, 0 skipped")

    def test_a_skip_within_a_pages_test_is_seen(self):
        lines = self.ctest("release", KERNEL, "criu check fails: no such file")
        self.assertEqual(lines[-1], "2 passed, 2 failed, 1 skipped")
        self.assertIn("Web: a dump appears: criu check fails: no such file", "\n".join(lines))

    def test_skips_of_bats_and_unittest_fail_with_their_reason(self):
        bats = self.counted("release", "bats", self.write("bats.tap", self.run_here(
            "bats", "--formatter", "tap", self.write("a.bats", BATS))))
        self.assertEqual(bats[-1], "1 passed, 2 failed, 0 skipped")
        self.assertRegex(bats[0], "^FAILED: a word is wrong: .*line 3.* it says neither$")
        self.assertIn("a process is dumped: criu check fails", bats[1])
        self.write("test_one.py", PYTHON)
        python = self.counted("release", "python", self.write("python.log", self.run_here(
            sys.executable, "-m", "unittest", "-v", "test_one")))
        self.assertEqual(python[-1], "1 passed, 2 failed, 0 skipped")
        self.assertIn("test_b: no parser", "\n".join(python))

    def test_a_run_that_was_cut_short_fails(self):
        self.assertEqual(self.counted("release", "bats", self.write("a", "1..3\nok 1 x\n"))[-1], "1 passed, 1 failed, 0 skipped")
        self.assertEqual(self.counted("release", "python", self.write("b", "test_a ..."))[-1], "0 passed, 1 failed, 0 skipped")
        self.assertEqual(self.counted("lint", "lint", self.write("c", "lint: a.cc"))[-1], "0 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
