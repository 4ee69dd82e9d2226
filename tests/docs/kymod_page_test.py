"""Compares the table of docs/kymod.md with `kymod --help-all`. With --write, writes the table.

The variable KYMOD names the program.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/kymod.md"
BEGIN = "<!-- generated: kymod --help-all -->\n"
END = "<!-- end -->\n"


def options(text):
    """(names, default, environment, meaning) of each option in a help text of CLI11."""
    lines = text.split("Options:\n")[1].splitlines()
    column = re.match(r"  -h,--help +", lines[0]).end()
    for line, after in zip(lines, [*lines[1:], ""]):
        if not line.startswith("  -"):
            continue
        words = line.strip().split(" ", 1)
        names = words[0].replace("{false}", "")
        rest = words[1] if len(words) > 1 else ""
        begins_on_next = after.startswith(" " * column)
        meaning = after.strip() if begins_on_next else line[column:].strip()
        types = rest if begins_on_next else line[:column]
        environment = re.search(r"\(Env:(\w+)\)", types)
        default = re.search(r"=([^\s=]+)(?: \(Env|\s*$)", types)
        names, _, joined = names.partition("=")  # the default of a flag is next to its name
        names = re.sub(r"\{\d+\}", "[=N]", names)  # a flag that can have a number
        yield (names, default.group(1) if default else joined, environment.group(1) if environment else "", meaning)


def table(text):
    rows = ["| flag | default | variable | meaning |", "| --- | --- | --- | --- |"]
    for names, default, environment, meaning in options(text):
        shown = ", ".join(f"`{name}`" for name in names.split(","))
        cells = [shown, *(f"`{cell}`" if cell else "" for cell in (default, environment)), meaning.replace("|", "\\|")]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


class KymodPageTest(unittest.TestCase):
    def test_the_table_is_what_the_help_says(self):
        text = PAGE.read_text()
        made = table(subprocess.run([os.environ["KYMOD"], "--help-all"], check=True, stdout=subprocess.PIPE, text=True,
                                    env={"PATH": os.environ["PATH"]}).stdout)
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        if "--write" in sys.argv:
            PAGE.write_text(text[:begin] + "\n" + made + "\n" + text[end:])
            return
        self.assertGreater(made.count("\n"), 20)
        self.assertEqual(text[begin:end], "\n" + made + "\n",
                         "docs/kymod.md is stale: run KYMOD=... tests/docs/kymod_page_test.py --write")

    def test_it_lists_each_variable_that_the_code_reads(self):
        read = re.compile(r'(?:getenv|variable_or)\("(\w+)"')
        files = [*(ROOT / "src").rglob("*.cc"), *(ROOT / "tools/kymod").rglob("*.cc")]
        names = {name for file in files for name in read.findall(file.read_text())}
        self.assertTrue({"CONTAINERD_ADDRESS", "DOCKER_HOST", "HOME", "NO_COLOR", "PATH"} <= names, names)
        text = PAGE.read_text()
        self.assertEqual([name for name in sorted(names) if f"| `{name}` |" not in text], [])


if __name__ == "__main__":
    unittest.main(argv=[arg for arg in sys.argv if arg != "--write"])
