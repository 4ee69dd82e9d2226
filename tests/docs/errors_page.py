"""Compares docs/errors.md with the catalogue of failures that it is made from. With --write, writes the page."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "src/checkpoint/failures/catalogue.json"
LOGS = ROOT / "tests/checkpoint/failures/public_logs.txt"
TRIAL = ROOT / "tests/checkpoint/failures/blind_trial.json"
PAGE = ROOT / "docs/errors.md"

HEAD = """# Why dumps and restores fail

Read this page if a dump or restore failed. It lists the failures that Kymograph knows. Each has an **id** that never
changes.

    kymo explain dump.log           # any log of CRIU 3.17 or later, also of runc, podman and containerd
    kymo explain - < dump.log       # the same from standard input; --json for programs
    kymo explain web                # the newest dump or restore of a job, or a checkpoint's directory or id

Kymograph looks for the **root line** in CRIU's log: the first error that is not noise, not a test of a feature of the
kernel, and not a step that failed because of an earlier error. The first entry of this page that has a **message** in
the root line explains the failure; `...` in it is any text. If there is none, the id is `unknown`: read the root line and
the log.

Some remedies are options of CRIU. Pass them to `kymo dump`, which takes [only some](runtimes.md#options-for-criu) for a
container. Write the others, without the dashes, into `/etc/criu/runc.conf`.

The ids also stand in error messages, in `failure` in `checkpoint.json` and of `--json`, in the trailer `failure-bin` of
the API ([api.md](api.md#trailers)), and as the label `reason` of the metric `kymo_failures_total`
([metrics.md](metrics.md)).
"""
TITLES = {"dump": "Dumps", "restore": "Restores", "start": "Start of CRIU", "both": "Dumps and restores",
          "own": "Failures of Kymograph itself"}


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def messages(entry):
    return ", ".join("`" + text.replace("{1}", "...").replace("`", "'").strip().replace("|", "\\|") + "`" for text in entry["match"])


def public_logs():
    """How well the choice of the root line and the catalogue worked on logs that they were not made from."""
    logs = [dict(line.split(": ", 1) for line in log.splitlines()[1:5] if ": " in line) for log in LOGS.read_text().split("\n=== ")[1:]]
    first = [log["first"] for log in logs]
    missed = sum("now" in log for log in logs)
    return f"""
## How good it is

A reader judged {len(logs)} logs from public issues that Kymograph had not seen (`tests/checkpoint/failures/public_logs.txt`). The rule took
the reader's line for the root in {len(first) - first.count("other line")} of them, and {first.count("right")} had the right explanation; most of the others had none. With
the messages that were missing, the root is right in all, the explanation in {len(logs) - missed} (`PublicLogs.*`). A new log may be
`unknown` as well.

[Ten dumps that fail](../tests/checkpoint/failures/ten_dumps.md) show what `criu`, `runc` and `podman` alone say, and what `kymo` says.
"""


def found(answer):
    """What a reader found in a minute."""
    names = " and ".join(name for name in ("cause", "remedy") if answer[name]) or "neither"
    return f"{names}, {answer['seconds']} s"


def trial():
    """How far readers came who did not know the causes. blind_trial.json has the answers, as they were judged afterwards."""
    if not TRIAL.exists():
        return ""
    rows = json.loads(TRIAL.read_text())
    text = f"""
## Ten failures, seen by readers who did not know them

One reader saw what `kymo dump` printed, another what `criu`, `runc` or `podman` printed, and the log of CRIU (at `-v4`).
Neither knew the causes or used the Web. The table has what was right, and the time as the reader estimated it
(`tests/checkpoint/failures/blind_trial.json`).

| what was wrong | dumped by | with `kymo` | without |
| --- | --- | --- | --- |
"""
    for row in rows:
        text += f"| {cell(row['what'])} | {row['by']} | {found(row['kymo'])} | {found(row['alone'])} |\n"
    for name in ("cause", "remedy"):
        right = [sum(row[side][name] and row[side]["seconds"] <= 60 for row in rows) for side in ("kymo", "alone")]
        text += f"| **right {name} within a minute** | | {right[0]} of {len(rows)} | {right[1]} of {len(rows)} |\n"
    return text


def page():
    entries = json.loads(CATALOGUE.read_text())
    text = HEAD
    for phase, title in TITLES.items():
        text += f"\n## {title}\n\n| id | what happened, and why | what to do | does a retry help? | messages |\n"
        text += "| --- | --- | --- | --- | --- |\n"
        for entry in entries:
            if entry["phase"] == phase:
                what = entry["what"][0].upper() + entry["what"][1:]
                text += (f"| `{entry['id']}` | {cell(what)}. {cell(entry['why'])} | {cell(entry['remedy'])} | "
                         f"{entry['retry']} | {messages(entry)} |\n")
    return text + public_logs() + trial()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page())
    elif not PAGE.exists() or PAGE.read_text() != page():
        sys.exit("docs/errors.md differs from src/checkpoint/failures/catalogue.json: run tests/docs/errors_page.py --write")
