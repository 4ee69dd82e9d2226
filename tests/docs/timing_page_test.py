"""Compares the example in docs/timing.md with the steps of a dump: it must have a row for each, in their order."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class TimingPageTest(unittest.TestCase):
    def test_the_sample_has_a_row_for_each_step_of_a_dump(self):
        source = (ROOT / "src/daemon/request/dump.cc").read_text()
        table = source.split("kDumpSteps{{")[1].split("}};")[0]
        steps = re.findall(r'{"([^"]+)",', table)
        self.assertGreater(len(steps), 10)
        sample = (ROOT / "docs/timing.md").read_text().split("```")[1]
        header, *lines = sample.strip("\n").splitlines()[1:]
        rows = [line[header.index("name"):] for line in lines]  # parts of a step are indented
        self.assertEqual([row for row in rows if row in steps], steps)


if __name__ == "__main__":
    unittest.main()
