"""Each command of kymo and kymod in README and docs/ has only verbs and options that the programs have.

The variables KYMO and KYMOD name the programs.
"""

import functools
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@functools.lru_cache(maxsize=None)
def help_of(program, *words):
    asked = "--help-all" if program == "KYMOD" else "--help"
    return subprocess.run([os.environ[program], *words, asked], check=True, stdout=subprocess.PIPE, text=True,
                          timeout=60).stdout


def options_in(text):
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", text))


def subcommands_in(text):
    """The verbs of kymo, or the kinds that a verb takes."""
    return set(re.findall(r"^  ([a-z]+) ", text, re.MULTILINE))


def commands_in(text):
    """(line number, command, whether it is a line of its own)"""
    for number, line in enumerate(text.splitlines(), 1):
        own = re.match(r"    ((?:sudo )?kymod? .*)", line)
        if own:
            for part in re.split(r"\s+#\s.*|; |\s\|\s|\s&", own.group(1)):
                if part and re.match(r"kymod? ", part):
                    yield number, part, True
        else:
            for span in re.findall(r"`(kymod? [a-z-][^`]*)`", line):
                yield number, span.split(" | ")[0], False


def wrong_in(command, exact):
    """What of a command the programs do not have."""
    program, *words = command.split()
    if "--" in words:
        words = words[:words.index("--")]
    options = options_in(help_of(program.upper()))
    if program == "kymo":
        verb = re.match(r"[a-z|]+", words[0])
        for name in verb.group().split("|") if verb else ():
            # `view` becomes another program, which says what it takes.
            if name not in subcommands_in(help_of("KYMO")):
                return name
            if name == "view":
                return None
            text = help_of("KYMO", name)
            options |= options_in(text)
            kinds = subcommands_in(text)
            given = kinds & set(words[1:])
            # Without a kind it is a process or job. A command within a sentence may leave out what it is about.
            for kind in given or (kinds & {"process"} if exact else kinds):
                options |= options_in(help_of("KYMO", name, kind))
    for word in words:
        option = re.match(r"\[?(--?[a-zA-Z][a-z-]*)", word)
        if option and option.group(1) not in options:
            return option.group(1)
    return None


class CommandsTest(unittest.TestCase):
    def test_each_command_in_the_documents_exists(self):
        wrong = []
        seen = 0
        for page in PAGES:
            for number, command, exact in commands_in(page.read_text()):
                seen += 1
                if what := wrong_in(command, exact):
                    wrong.append(f"{page.name}:{number}: {command}: there is no {what}")
        self.assertEqual(wrong, [])
        self.assertGreater(seen, 200)

    def test_what_does_not_exist_is_found(self):
        self.assertEqual(wrong_in("kymo dumpp process web", True), "dumpp")
        self.assertEqual(wrong_in("kymo recorder --log FILE", True), "--log")
        self.assertEqual(wrong_in("kymo dump process web --bundle DIR", True), "--bundle")
        self.assertEqual(wrong_in("kymod --keep-days 3", True), "--keep-days")
        self.assertIsNone(wrong_in("kymo dump --checksums", False))
        self.assertIsNone(wrong_in("kymo run podman --name shop -- --network none", True))


if __name__ == "__main__":
    unittest.main()
