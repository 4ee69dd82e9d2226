"""Reads gVisor's profiling file with a separate reader, which is written from the description of the format and shares
no code with kymo: every byte must follow the grammar, and every checksum must be that of zlib."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import zlib

BIG = 2**64 - 1
PREFIX = "GVISOR_METRICS\t"
META_KEYS = {"name", "prometheusName", "description", "cumulative", "sync", "type", "units", "fields", "distributionBucketLowerBounds"}
STATS_KEYS = {"collection_rate_nanos", "cheap_start_nanos", "cheap_last_collection_nanos", "total_snapshots",
              "total_sleep_timing_error_nanos", "total_collection_timing_error_nanos", "num_backoff_sleeps",
              "total_backoff_sleep_nanos"}


class Broken(Exception):
    pass


def unsigned(text):
    if not re.fullmatch(r"0|[1-9]\d*", text) or int(text) > BIG:
        raise Broken(f"no unsigned number: {text!r}")
    return int(text)


class Plain:
    """Reads META lines, START_TIME, the header, rows and STATS, in this order. Each line ends with a line feed."""

    def __init__(self, text):
        if not text.endswith("\n"):
            raise Broken("the last line has no end")
        self.metrics, self.rows, self.stats = {}, [], None
        lines = iter(text[:-1].split("\n"))
        line = next(lines)
        while line.startswith("META\t"):
            word, name, described = line.split("\t")
            described = json.loads(described)
            if described["name"] != name or not set(described) <= META_KEYS or "prometheusName" not in described:
                raise Broken(line)
            self.metrics[name] = described
            line = next(lines)
        word, start = line.split("\t")
        if word != "START_TIME":
            raise Broken(line)
        self.start = unsigned(start)
        time, *self.columns = next(lines).split("\t")
        if time != "Time (ns)":
            raise Broken(time)
        for line in lines:
            if self.stats is not None:
                raise Broken(f"a line behind the last: {line!r}")
            word, *values = line.split("\t")
            if word == "STATS":
                self.stats = json.loads(*values)
                continue
            if len(values) != len(self.columns):
                raise Broken(f"{len(values)} values of {len(self.columns)} columns")
            self.rows.append([unsigned(word), *map(unsigned, values)])
        if self.stats is None or not STATS_KEYS <= set(self.stats):
            raise Broken("no STATS, or not all of it")


def without_sums(log):
    """Extracts the plain text from a lossy file. Checks the checksum of each line, and the last one over the whole text."""
    plain, covered, ended = "", b"", False
    for line in log.split("\n"):
        if not line.startswith(PREFIX):
            continue  # a line of another program, or a blank line around a flush
        if ended:
            raise Broken("a line behind the last")
        text = line[len(PREFIX):]
        body, _, total = text.rpartition("\t")
        if not re.fullmatch(r"0x(0|[1-9a-f][0-9a-f]*)", total):
            raise Broken(f"no sum: {text!r}")
        if body == "ADLER32":
            if int(total, 16) != zlib.adler32(covered):
                raise Broken("the sum over everything")
            ended = True
            continue
        if int(total, 16) != zlib.adler32(body.encode()):
            raise Broken(f"the sum of {body!r}")
        covered += (text + "\n").encode()
        if body.startswith("Time (ns)\t"):
            body, _, last = body.rpartition("\t")
            if last != "Checksum":
                raise Broken("the header has no column Checksum")
        plain += body + "\n"
    if not ended:
        raise Broken("it does not end in ADLER32")
    return plain


class Grammar(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def recorded(self, form):
        path = self.folder / form
        subprocess.run([os.environ["ANNOTATED_PROGRAM"], str(path), form], check=True, timeout=60)
        return path.read_bytes().decode()

    def check(self, read):
        self.assertEqual(read.columns, ["calls[ok]", "calls[error]", "lag_ns"])
        self.assertEqual(read.metrics["calls"], {
            "name": "calls", "prometheusName": "calls_total", "description": "Calls", "cumulative": True,
            "fields": [{"fieldName": "result", "allowedValues": ["ok", "error"]}]})
        self.assertEqual(read.metrics["lag_ns"]["units"], "UNITS_NANOSECONDS")
        self.assertGreater(len(read.rows), 50)
        times = [row[0] for row in read.rows]
        self.assertEqual(times, sorted(set(times)))
        self.assertEqual(read.rows[-1][1:], [1000, 7, BIG], "what the program counted; no value is negative")
        self.assertEqual(read.stats["total_snapshots"], len(read.rows))
        self.assertEqual(read.stats["collection_rate_nanos"], 1_000_000)
        begun, last = read.stats["cheap_start_nanos"], read.stats["cheap_last_collection_nanos"]
        self.assertGreaterEqual(last - begun, times[-1])
        self.assertLess(abs(read.start - int(os.path.getmtime(self.folder) * 1e9)), 60 * 10**9)

    def test_plain(self):
        self.check(Plain(self.recorded("annotated")))

    def test_lossy_with_every_checksum(self):
        text = self.recorded("annotated-lossy")
        self.check(Plain(without_sums(text)))
        # There are only our lines and blank ones. Each piece has a blank line before and after it.
        others = {line for line in text.split("\n") if not line.startswith(PREFIX)}
        self.assertEqual(others, {""})
        self.assertTrue(text.startswith("\n" + PREFIX))
        self.assertRegex(text, "\n\n" + PREFIX + r"STATS\t.*\n\n")

    def test_the_reader_here_refuses_what_is_damaged(self):
        text = self.recorded("annotated-lossy")
        for damaged in (text.replace("\t1000\t", "\t1001\t"), text.replace("ADLER32\t0x", "ADLER32\t0x1"),
                        text[: text.rindex(PREFIX)], re.sub(r"(?m)^(GVISOR_METRICS\t\d.*)\n", "", text, count=1)):
            with self.assertRaises(Broken):
                Plain(without_sums(damaged))


if __name__ == "__main__":
    unittest.main(verbosity=2)
