"""What the tests of `kymo export` share: a way to run it, and recordings to export."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    from prometheus_client.samples import Timestamp
except ImportError:  # the tests of ClickHouse do not need it
    pass
else:
    # The library's comparison says that 1.9 s is later than 2.1 s. So it would refuse each recording that crosses a
    # full second.
    Timestamp.__gt__ = lambda one, other: (one.sec, one.nsec) > (other.sec, other.nsec)

KYMO = os.environ["KYMO"]
BIG = 2**64 - 1
START_NS = 1_795_251_436_363_364_903
MONOTONIC_NS = 2_259_791_948_175
# Characters that can break an output format, in names that a header can have.
HOSTILE = ['quote"d', "comma,d", "back\\slash", "back`tick", "apos'trophe", "</script>", "{curly}", "dup", "dup",
           "DUP", "time_ns", "# EOF", "é", "x[a,b]", "x[c\"d]", "1digit", "kymo", "x_total", "[]", "percent%s", "semi;colon"]


def read_recording(path):
    """The names and rows of a plain recording, as text."""
    lines = pathlib.Path(path).read_bytes().decode(errors="replace").split("\n")
    names = lines[0].split("\t")
    return names, [[int(value) for value in line.split("\t")] for line in lines[1:-1]]


def scope(name, start, duration, *parts, **more):
    made = {"name": name, "start_ns": MONOTONIC_NS + start, "duration_ns": duration, **more}
    return {**made, "components": list(parts)} if parts else made


class ExportTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def kymo(self, *arguments, **options):
        return subprocess.run([KYMO, "export", *map(str, arguments)], capture_output=True, text=True, check=False,
                              timeout=200, **options)

    def export(self, recording, name, *arguments):
        """The exported file."""
        output = self.folder / name
        ran = self.kymo(recording, "--output", output, *arguments)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.said = ran.stderr
        self.assertFalse(output.with_name(name + ".new").exists())
        return output

    def recorded(self):
        """A recording of the real recorder."""
        path = self.folder / "dump.tsv"
        subprocess.run([os.environ["MAKE_RECORDING"], str(path)], check=True, timeout=60)
        return path

    def written(self, columns, rows, metadata=None, gaps=None, name="made.tsv"):
        path = self.folder / name
        text = "\t".join(["Time (ns)", *columns]) + "\n"
        text += "".join("\t".join(map(str, row)) + "\n" for row in rows)
        path.write_bytes(text.encode(errors="surrogateescape"))
        stem = name.removesuffix(".tsv")
        if metadata is not None:
            self.folder.joinpath(stem + ".meta.json").write_text(json.dumps(metadata))
        if gaps is not None:
            lines = ["Start (ns)\tEnd (ns)\tTicks\tCause", *("\t".join(map(str, gap)) for gap in gaps)]
            self.folder.joinpath(stem + ".gaps.tsv").write_text("\n".join(lines) + "\n")
        return path

    def with_own_scopes(self):
        """A program's own scopes: two trees at the same time, on two threads, and one that fails."""
        trees = [scope("request", 1_000_000, 4_000_000,
                       scope("parse", 1_500_000, 1_000_000, thread=41, category="cpu", bytes=9),
                       scope("copy", 2_000_000, 2_000_000, thread=42, parallel=True), thread=41),
                 scope("request", 2_500_000, 2_000_000, scope("parse", 2_600_000, 7, thread=43, error="no <input>"), thread=43)]
        return self.written(["steps"], [[i * 1_000_000, i] for i in range(1, 9)],
                            {"format_version": 1, "state": "ended", "start_unix_ns": START_NS, "pid": 77, "host": "db3",
                             "start_monotonic_ns": MONOTONIC_NS, "scopes": trees, "scope_trees_left_out": 3}, [])

    def hostile(self):
        """Names that can break output formats, and numbers that can break readers."""
        rows = [[time, *((BIG - time if i % 3 == 0 else time * i) for i in range(len(HOSTILE)))]
                for time in (1, 1_000_001, 2_000_002, 2_000_002, 5_123_456_789)]
        fields = {"": "", "le\"a": "new\nline", "__name__": "stolen", "é": "\\"}
        columns = [{"name": "quote\"d", "metric": "quote\"d", "kind": "gauge", "unit": "bytes",
                    "help": "\"quoted\" \\ and\nbroken", "fields": fields},
                   {"name": "dup", "metric": "dup", "kind": "counter", "unit": "nanoseconds", "help": "", "fields": {}}]
        metadata = {"format_version": 1, "state": "ended", "start_unix_ns": START_NS,
                    "start_monotonic_ns": MONOTONIC_NS, "columns": columns,
                    "marks": [{"name": "a\"b'c`d\\e</script>", "at_ns": 1_000_000}, {"name": "late", "at_ns": 2**63}],
                    "about": {"job": "'; DROP TABLE samples; --"}}
        return self.written(HOSTILE, rows, metadata, [])

    def dumped(self):
        """A recording as kymod leaves it: phases, gaps as a damaged list could have them, and a timing tree with
        parallel parts."""
        tree = scope("dump", 1_000_000, 9_000_000,
                     scope("criu", 0, 0,  # a wrapper, which gives its name to its parts
                           scope("starts", 1_500_000, 1_000_000, bytes=77, category="criu"),
                           scope("drain", 2_500_000, 5_000_000)),
                     scope("compress", 2_000_000, 6_500_000, scope("block", 2_100_000, 50_001), parallel=True),
                     scope("longer than its parent", 9_000_000, 7_000_000, redundant=True),
                     scope("at once", 9_000_000, 0, error="no \"room\""))
        metadata = {"format_version": 1, "state": "ended", "start_unix_ns": START_NS, "interval_ns": 1_000_000,
                    "start_monotonic_ns": MONOTONIC_NS, "host": "db3",
                    "columns": [{"name": "image_written_bytes", "metric": "image_written_bytes", "kind": "counter",
                                 "unit": "bytes", "help": "Bytes of images.", "fields": {}},
                                {"name": "frozen_time_us", "metric": "frozen_time_us", "kind": "counter",
                                 "unit": "microseconds", "help": "Time frozen.", "fields": {}},
                                {"name": "wait_ns", "metric": "wait_ns", "kind": "gauge", "unit": "nanoseconds",
                                 "help": "A wait.", "fields": {}},
                                {"name": "criu_calls[dump,ok]", "metric": "criu_calls", "kind": "counter",
                                 "unit": "count", "help": "Calls.", "fields": {"call": "dump", "result": "ok"}},
                                {"name": "criu_calls[dump,error]", "metric": "criu_calls", "kind": "counter",
                                 "unit": "count", "help": "Calls.", "fields": {"call": "dump", "result": "error"}}],
                    "marks": [{"name": "pre-dump", "at_ns": 1_000_000}, {"name": "post-dump", "at_ns": 4_000_000},
                              {"name": "after the rows", "at_ns": 90_000_000}],
                    "about": {"request": "dump", "timing": tree}}
        columns = [column["name"] for column in metadata["columns"]]
        rows = [[i * 1_000_000 + 450 + i % 7, i * 4096, 1_000_001 * i, 999_999_999 + i, i // 5, 0] for i in range(1, 20)]
        gaps = [[3_000_000, 5_000_000, 2, "late"], [4_000_000, 6_000_000, 2, "ring_full"],
                [8_000_000, 9_000_000, 1, "frozen"]]
        return self.written(columns, rows, metadata, gaps)
