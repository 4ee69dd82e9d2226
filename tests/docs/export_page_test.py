"""Compares docs/export.md with scripts/kymo_recording.py: what the page uses must exist, and help() must describe all of it.

It reads the text of the module, so it does not need pandas.
"""

import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "scripts/kymo_recording.py"
PAGE = ROOT / "docs/export.md"


def public(nodes):
    return [node for node in nodes if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


class ExportPageTest(unittest.TestCase):
    def setUp(self):
        module = ast.parse(MODULE.read_text())
        classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        recording = classes["Recording"]
        self.functions = public(module.body)
        self.members = public(recording.body)
        self.of_module = {node.name for node in self.functions} | set(classes)
        self.of_recording = {node.name for node in self.members}
        self.of_recording |= {node.target.id for node in recording.body if isinstance(node, ast.AnnAssign)}

    def test_help_describes_each_public_function(self):
        for functions in (self.functions, self.members):
            self.assertGreater(len(functions), 5)
            for function in functions:
                self.assertTrue(ast.get_docstring(function), f"{function.name} of {MODULE.name} has no docstring")

    def test_what_the_page_uses_exists(self):
        text = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
        used = set(re.findall(r"\bkymo_recording\.(\w+)", text))
        of_run = set(re.findall(r"\brun\.(\w+)", re.sub(r'"[^"]*"', "", text)))
        self.assertGreater(min(len(used), len(of_run)), 3)
        self.assertEqual(used - self.of_module, set())
        self.assertEqual(of_run - self.of_recording, set())


if __name__ == "__main__":
    unittest.main()
