"""Reads the rows of a recording, also of a damaged one, for kymo_recording.py."""

import pathlib
import subprocess
import tempfile

import numpy
import pandas

TIME_COLUMN = "Time (ns)"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class RecordingError(Exception):
    """An error in one line: what was tried, on what, and what is wrong with it."""


class HeaderError(RecordingError):
    """Somebody has cut the file within its header."""


def load(path, notes):
    """The rows of a recording. Adds a note for each line that is left out."""
    try:
        with open(path, "rb", buffering=0) as file:  # a child process inherits its descriptor
            if file.read(len(ZSTD_MAGIC)) != ZSTD_MAGIC:
                return _load_plain_rows(path, path, notes)
            file.seek(0)
            with tempfile.NamedTemporaryFile(suffix=".tsv") as plain:
                _decompress(path, file, plain, notes)
                return _load_plain_rows(path, pathlib.Path(plain.name), notes)
    except OSError as error:
        raise RecordingError(f"open recording {path}: {error.strerror}") from error


def _decompress(path, file, plain, notes):
    """Decompresses what is undamaged: zstd writes it before it reports the damage."""
    try:
        done = subprocess.run(["zstd", "-dcq"], stdin=file, stdout=plain, stderr=subprocess.PIPE, check=False)
    except FileNotFoundError as error:
        raise RecordingError(f"open recording {path}: it is compressed; install zstd") from error
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().rpartition(": ")[2]
        notes.append(f"cut short or damaged ({reason}): what follows the last whole frame is left out")


def _load_plain_rows(path, plain, notes):
    """Reads the rows of the plain text in `plain`. Messages name it `path`."""
    with open(plain, "rb") as file:
        header = file.readline()
        names = header.decode("ascii", "replace").rstrip("\n").split("\t")
        if not header.endswith(b"\n") and TIME_COLUMN.startswith(names[0]):
            raise HeaderError(f"read {path}: the file is empty, or ends in the middle of its header, so it has no rows")
        if names[0] != TIME_COLUMN:
            raise RecordingError(f"read {path}: its first line is not the header of a recording")
        body_at = file.tell()
        whole = _whole_length(file)
    try:
        frame = _parse_fast(plain, names, whole, body_at)
    except (ValueError, OverflowError):
        frame = _parse_tolerant(plain, names, notes)
    else:
        if whole != plain.stat().st_size:
            notes.append(f"line {len(frame) + 2}: cut short, left out")
    return frame.set_index(TIME_COLUMN)


def _whole_length(file, piece=1 << 20):
    """The number of bytes up to the last line end. A row after it is cut short."""
    end = at = file.seek(0, 2)
    while at > 0:
        at = max(0, at - piece)
        file.seek(at)
        found = file.read(min(piece, end - at)).rfind(b"\n")
        if found >= 0:
            return at + found + 1
    return 0


def _parse_fast(path, names, whole, body_at):
    """Reads the whole file with pandas' own parser. Raises ValueError if a line is not a row."""
    if whole == body_at:
        return pandas.DataFrame({name: pandas.Series(dtype="uint64") for name in names})
    with open(path, "rb") as file:
        frame = pandas.read_csv(_Limited(file, whole), sep="\t", header=0, names=names, index_col=False, dtype="uint64",
                                engine="c", skip_blank_lines=False, quoting=3, na_filter=False, on_bad_lines="error")
    times = frame[TIME_COLUMN].to_numpy()
    if (times[1:] < times[:-1]).any():
        raise ValueError("time goes back")
    return frame


class _Limited:
    """A file that seems to end early, for a parser that would fail at the last, incomplete line."""

    def __init__(self, file, size):
        self._file = file
        self._left = size

    def read(self, size=-1):
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= len(data)
        return data

    def __iter__(self):
        return iter(self.read().splitlines(keepends=True))


def _parse_tolerant(path, names, notes):
    """Reads a damaged file line by line. Keeps the good rows, and adds a note for each bad line."""
    columns = [[] for _ in names]
    last_time = 0
    with open(path, "rb") as file:
        next(file)
        for number, line in enumerate(file, start=2):
            values, reason = _parse_line(line, len(names))
            if not reason and values[0] < last_time:
                reason = "its time is before that of the row above"
            if reason:
                notes.append(f"line {number}: {reason}, left out")
                continue
            last_time = values[0]
            for column, value in zip(columns, values):
                column.append(value)
    return pandas.DataFrame({name: numpy.array(column, dtype="uint64") for name, column in zip(names, columns)})


def _parse_line(line, count):
    if not line.endswith(b"\n"):
        return [], "cut short"
    fields = line[:-1].split(b"\t")
    if len(fields) != count:
        return [], f"{len(fields)} values where the header has {count}"
    if not all(field.isdigit() for field in fields):
        return [], "a value is not a whole number"
    values = [int(field) for field in fields]
    return ([], "a value is past 2^64 - 1") if max(values) >= 2**64 else (values, "")
