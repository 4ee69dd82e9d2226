#!/usr/bin/python3
"""How long a process stands still while it is dumped, as `kymo record -p` sees it from outside, next to CRIU's frozen
time.

    bench/outside_downtime.py --dumps 8 --criu "$(scripts/setup --criu)"

The process counts about once a millisecond in a counter file. The recorder samples the file at 1 kHz, and does not know
about dumps. Its result is the longest time between two rows in which the counter did not change. Checked: each dump has
written pages, the process counts on, and rows were taken while it stood still.
"""
import json
import pathlib
import subprocess
import sys

import common
from dump_overhead import Bench, add_options


class OutsideBench(Bench):
    def start_workload(self):
        program = self.bin / "tests/support/publisher"
        self.run_kymo("run", "process", "--name", "counted", "--", program, self.folder / "counters", "8")
        job = json.loads(self.run_kymo("ps", "--json"))[0]
        self.pid = job["pid"]
        common.wait_until(lambda: "ready" in pathlib.Path(job["stdout_path"]).read_text(), "the publisher does not start")

    def dump(self, number):
        recording, target = self.folder / f"run-{number}.tsv", self.folder / f"dump-{number}"
        recorder = subprocess.Popen([self.kymod.kymo[0], "record", "-p", str(self.pid), "--duration", "2", "--output", recording],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        common.wait_until(lambda: recording.exists() and recording.stat().st_size > 1000, "kymo record does not start")
        stats = json.loads(self.run_kymo("dump", "process", "counted", "--dir", target, "--leave-running", "--json"))["stats"]
        if recorder.wait(60) != 0:
            sys.exit(f"outside_downtime: kymo record ended with {recorder.returncode}")
        self.run_kymo("delete", target)  # waits for the end of the recording
        if stats["pages_written"] < 10:
            sys.exit(f"outside_downtime: only {stats['pages_written']} pages were written")
        told = json.loads(recording.with_suffix(".meta.json").read_text())["stats"]
        seen = standstill(recording)
        return {"seen": seen, "criu.frozen": stats["frozen_time_us"] * 1000, "captured": told["rows_written"] / told["ticks_due"]}


def standstill(recording):
    """The longest time in nanoseconds in which the counter `ticks` did not change, from the first to the last row with
    one value. Two rows alone are a gap in the recording, because no tick was taken between them."""
    lines = (line.split("\t") for line in recording.read_text().splitlines())
    header = next(lines)
    at, longest, stood_at, first, rows, value = header.index("ticks"), 0, None, 0, 0, None
    for line in lines:
        now, ticks = int(line[0]), int(line[at])
        if ticks != value:
            first, rows, value = now, 0, ticks
        rows += 1
        if rows >= 3 and now - first > longest:
            longest, stood_at = now - first, ticks
    if stood_at in (None, value):
        sys.exit("outside_downtime: " + ("no rows were taken while it stood still" if stood_at is None else "it does not count on"))
    return longest


def main():
    parser = common.parser_of(__doc__)
    parser.add_argument("--dumps", type=int, default=8)
    add_options(parser, 0, 0)
    arguments = parser.parse_args()
    with common.scratch_folder(arguments.folder) as folder, OutsideBench(arguments, folder) as bench:
        bench.start_workload()
        dumps = [bench.dump(number) for number in range(arguments.dumps)]
    common.finish(arguments, f"{len(dumps)} dumps, ns", {name: [dump[name] for dump in dumps] for name in dumps[0]})


if __name__ == "__main__":
    main()
