#!/usr/bin/python3
"""Each option, command and configuration name in a remedy of the catalogue exists. A remedy that names an option which
does not exist costs the reader more time than no remedy.

KYMO and KYMOD name the programs, KYMO_TEST_CRIU names CRIU, whose help lists the options of its configuration files."""

import json
import os
import pathlib
import re
import unittest

from provoking import CRIU, run

ROOT = pathlib.Path(__file__).resolve().parents[3]
CATALOGUE = json.loads((ROOT / "src/checkpoint/failures/catalogue.json").read_text())
OPTION = re.compile(r"--[a-z][a-z-]+")
# Options of other programs, with the words of the remedy that name the program.
FOREIGN = {"--make-rprivate": "mount --make-rprivate", "--rbind": "mount --rbind", "--bind": "mount --bind", "--mount-proc": "unshare .*--mount-proc",
           "--init": "podman run --init", "--security-opt": "its container with --security-opt", "--all": "criu check --all",
           "--work-dir": "criu lazy-pages", "--memory": "docker update --memory", "--memory-swap": "docker update .*--memory-swap",
           "--pids-limit": "docker update --pids-limit", "--userns": "docker run --userns=host", "--uidmap": "podman run without .*--uidmap",
           "--mount": "podman.*--mount type=image"}
# "write NAME VALUE into /etc/criu/..." or "NAME VALUE in /etc/criu/...": an option without its dashes.
CONFIGURED = re.compile(r"([a-z][a-z-]+)(?: [\w.]+)? (?:in|into) /etc/criu/")
SECOND_CONFIGURED = re.compile(r"write ([a-z][a-z-]+) and ")


def options_of(*words):
    done = run(*words)
    return set(OPTION.findall(done.stdout + done.stderr))


class RemediesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kymo, kymod = os.environ["KYMO"], os.environ["KYMOD"]
        cls.ours = options_of(kymo, "dump", "process", "--help") | options_of(kymo, "restore", "process", "--help") | options_of(kymod, "--help-all")
        cls.verbs = run(kymo, "--help").stdout
        shown = run(CRIU, "--help")
        # CRIU's help leaves some out, which kymo passes on to CRIU by the same name.
        cls.criu = {option[2:] for option in OPTION.findall(shown.stdout + shown.stderr)}
        cls.criu |= {option[2:] for option in cls.ours if cls.criu}

    def test_the_programs_list_their_options(self):
        self.assertIn("--ghost-limit", self.ours)
        self.assertIn("--inherit-fd", self.ours)
        self.assertIn("--criu-timeout", self.ours)

    def test_each_option_exists(self):
        seen = 0
        for entry in CATALOGUE:
            text = entry["why"] + " " + entry["remedy"]
            for option in OPTION.findall(text):
                with self.subTest(failure=entry["id"], option=option):
                    seen += 1
                    if option in FOREIGN:
                        self.assertRegex(text, FOREIGN[option])
                    elif f"criu restore {option}" in text:
                        self.assertIn(option[2:], self.criu)
                    else:
                        self.assertIn(option, self.ours)
        self.assertGreater(seen, 20)

    def test_each_name_for_crius_configuration_exists(self):
        if "ghost-limit" not in self.criu:
            self.skipTest(f"{CRIU} does not start here")
        seen = set()
        for entry in CATALOGUE:
            for name in CONFIGURED.findall(entry["remedy"]) + SECOND_CONFIGURED.findall(entry["remedy"]):
                with self.subTest(failure=entry["id"], name=name):
                    seen.add(name)
                    self.assertIn(name, self.criu)
        self.assertLessEqual({"ghost-limit", "skip-in-flight", "force-irmap", "irmap-scan-path", "timeout"}, seen)

    def test_each_verb_of_kymo_exists(self):
        seen = 0
        for entry in CATALOGUE:
            for verb in re.findall(r"\bkymo ([a-z]+)", entry["remedy"]):
                with self.subTest(failure=entry["id"], verb=verb):
                    seen += 1
                    self.assertRegex(self.verbs, rf"(?m)^ +{verb}\b")
        self.assertGreaterEqual(seen, 4)


if __name__ == "__main__":
    unittest.main()
