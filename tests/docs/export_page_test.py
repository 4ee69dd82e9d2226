"""Compares the functions in docs/export.md with the docstrings of scripts/kymo_recording.py. With --write, writes them.

It reads the text of the module, so it does not need pandas.
"""

import ast
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "scripts/kymo_recording.py"
PAGE = ROOT / "docs/export.md"
BEGIN = "<!-- generated: kymo_recording.py -->\n"
END = "<!-- end -->\n"


def public(nodes):
    return [node for node in nodes if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def meaning(node):
    """The first sentence of its docstring. help() shows all of it."""
    text = re.split(r"(?<=\.) ", " ".join((ast.get_docstring(node) or "").split()))[0].replace("|", "\\|")
    return linked(text.replace("*", "\\*"))


def linked(text):
    """Names of pages as links."""
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text)


def call(function, of=""):
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ")
    is_property = any(getattr(one, "id", "") == "property" for one in function.decorator_list)
    return f"`{of}{function.name}`" if is_property else f"`{of}{function.name}({arguments})`"


def fields(recording, lines):
    """Name and comment of each field of the dataclass."""
    for node in recording.body:
        if isinstance(node, ast.AnnAssign):
            comment = lines[node.lineno - 1].partition("  # ")[2]
            yield f"`run.{node.target.id}`", linked(comment)


def tables(text):
    """The rows of both tables, as (name, meaning): of the module, and of a recording."""
    module = ast.parse(text)
    recording = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Recording")
    functions = [(call(node), meaning(node)) for node in public(module.body)]
    members = list(fields(recording, text.splitlines()))
    members += [(call(node, "run."), meaning(node)) for node in public(recording.body)]
    return functions, members


def page(text):
    parts = []
    for (head, rows) in zip(("of the module", "of a recording `run`"), tables(text)):
        parts.append("\n".join([f"| {head} | meaning |", "| --- | --- |", *(f"| {a} | {b} |" for a, b in rows)]))
    return "\n" + "\n\n".join(parts) + "\n\n"


class ExportPageTest(unittest.TestCase):
    def test_each_public_function_has_a_docstring(self):
        for rows in tables(MODULE.read_text()):
            self.assertGreater(len(rows), 5)
            for name, text in rows:
                self.assertTrue(text, f"{name} of {MODULE.name} has no docstring or comment")

    def test_the_page_is_what_the_docstrings_say(self):
        text = PAGE.read_text()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        made = page(MODULE.read_text())
        if "--write" in sys.argv:
            PAGE.write_text(text[:begin] + made + text[end:])
            return
        self.assertEqual(text[begin:end], made, "docs/export.md is stale: run tests/docs/export_page_test.py --write")


if __name__ == "__main__":
    unittest.main(argv=[arg for arg in sys.argv if arg != "--write"])
