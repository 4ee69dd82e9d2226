"""Checks that each line of time_limits.txt names a test that ctest knows, because ctest ignores limits of unknown
tests."""

import json
import os
import pathlib
import subprocess
import unittest

LIST = pathlib.Path(__file__).with_name("time_limits.txt")


def tests_of(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {test["name"] for test in json.loads(listed.stdout)["tests"]}


def faults(text, tests):
    """An error for each line of the list that names no test."""
    return [f"tests/time_limits/time_limits.txt:{number}: there is no test '{line.split()[1]}': correct or remove the line"
            for number, line in enumerate(text.splitlines(), 1)
            if line and not line.startswith("#") and line.split()[1] not in tests]


class TimeLimitsTest(unittest.TestCase):
    def test_each_line_names_a_test(self):
        self.assertEqual(faults(LIST.read_text(), tests_of(os.environ["KYMO_BUILD_DIR"])), [])

    def test_a_line_that_names_no_test_is_a_fault(self):
        found = faults("# comment\n90 web.page slow\n\n90 web.pages slow\n", {"web.page"})
        self.assertEqual(found, ["tests/time_limits/time_limits.txt:4: there is no test 'web.pages': correct or remove the line"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
