"""Compares docs/api.md with the API: the table must have a row for each call, and no other row."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ApiPageTest(unittest.TestCase):
    def setUp(self):
        self.page = (ROOT / "docs/api.md").read_text()
        self.proto = (ROOT / "src/api/kymo/v1/kymo.proto").read_text()

    def test_every_call_has_a_row_and_every_row_is_a_call(self):
        calls = re.findall(r"^  rpc (\w+)\(", self.proto, re.M)
        table = self.page.split("| call |")[1].split("\n\n")[0]
        rows = re.findall(r"^\| `(\w+)` \|", table, re.M)
        self.assertGreater(len(calls), 5)
        self.assertEqual(sorted(rows), sorted(calls))

    def test_every_status_is_grpcs(self):
        codes = re.findall(r"^  (\w+) = \d+,", (ROOT / "include/kymo/result.h").read_text(), re.M)
        table = self.page.split("| status |")[1].split("\n\n")[0]
        rows = re.findall(r"^\| `(\w+)` \|", table, re.M)
        self.assertGreater(len(rows), 5)
        self.assertLessEqual(set(rows), {code.upper() for code in codes})


if __name__ == "__main__":
    unittest.main()
