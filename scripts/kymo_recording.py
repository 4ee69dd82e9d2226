"""Loads Kymograph recordings into pandas: rows, metadata, marks and gaps (docs/formats.md).

    import kymo_recording
    run = kymo_recording.load("dump.tsv")
    run.rates()["image_written_bytes"].max()
    run.phase("post-dump").values()                    # that phase alone; counters as rates, gauges as values

    runs = kymo_recording.load_all(["old", "new.tsv"])  # of a folder all, of a checkpoint its recordings
    kymo_recording.table(runs)                         # a row a run: when, how long, phases, totals
    kymo_recording.aligned(runs, "image_written_bytes")  # a column a run, from the same phase on

Needs Debian's python3-pandas; plot() also python3-matplotlib, and a compressed recording (.tsv.zst) zstd.
"""

import dataclasses
import json
import pathlib
import re
import signal
import sys

import numpy
import pandas

import kymo_recording_rows
from kymo_recording_rows import TIME_COLUMN, HeaderError, RecordingError

FORMAT_VERSION = 1
COMPANIONS = (".gaps.tsv", ".meta.json")  # files next to a recording
_BUCKET = re.compile(r"(?P<metric>[^\[\]]+)\[(?P<low>\d+)-(?P<high>\d+|inf)\]")


@dataclasses.dataclass
class Recording:
    """A recording. The index of `rows` is nanoseconds since its start. It has one uint64 column for each metric."""

    path: pathlib.Path  # the recording itself
    rows: pandas.DataFrame  # a row for each sample, a column for each metric
    metadata: dict | None  # what NAME.meta.json says (docs/formats.md), None if it cannot be read
    gaps: pandas.DataFrame  # start_ns, end_ns, ticks, cause
    notes: list[str]  # what was left out, and what is missing

    @property
    def name(self):
        """NAME of NAME.tsv."""
        return _stem(self.path)

    @property
    def about(self):
        """What the recording is of: request, job, target, outcome."""
        about = (self.metadata or {}).get("about")
        return about if isinstance(about, dict) else {}

    @property
    def part(self):
        """If this is a part of a longer recording: its `number`, and the file names of the `previous` and the `next` one."""
        part = (self.metadata or {}).get("part")
        return part if isinstance(part, dict) else {}

    @property
    def finished(self):
        """False while it is being written, and also if its recorder was killed: its end may then be missing."""
        return (self.metadata or {}).get("state") != "running"

    @property
    def duration_ns(self):
        """The time from the first row to the last. Without rows, the value in the metadata."""
        if len(self.rows):
            return int(self.rows.index[-1]) - int(self.rows.index[0])
        return ((self.metadata or {}).get("stats") or {}).get("duration_ns", 0)

    @property
    def columns(self):
        """What the metadata says about each column, by its name."""
        return {column["name"]: column for column in (self.metadata or {}).get("columns", [])}

    @property
    def marks(self):
        """The named times, as a DataFrame of name and at_ns, in the order of time."""
        marks = (self.metadata or {}).get("marks", [])
        frame = pandas.DataFrame(marks, columns=["name", "at_ns"])
        return frame.sort_values("at_ns", kind="stable").reset_index(drop=True)

    @property
    def start(self):
        """The wall clock at the time 0 of the recording, or None without metadata."""
        unix_ns = (self.metadata or {}).get("start_unix_ns")
        return None if unix_ns is None else pandas.Timestamp(unix_ns, unit="ns", tz="UTC")

    def kind(self, name):
        """`counter` or `gauge`. Without metadata, a column that never decreases counts as a counter."""
        if name in self.columns:
            return self.columns[name]["kind"]
        values = self.rows[name].to_numpy()
        return "counter" if (values[1:] >= values[:-1]).all() else "gauge"

    def unit(self, name):
        """The unit of a column, such as `bytes`. Empty without metadata."""
        return self.columns.get(name, {}).get("unit", "")

    def counters(self):
        """The names of the columns that are counters."""
        return [name for name in self.rows.columns if self.kind(name) == "counter"]

    def moving(self):
        """The columns whose values changed."""
        return [name for name in self.rows.columns if self.rows[name].nunique() > 1]

    def elapsed(self, name):
        """By how much a column changed from the first row to the last: of a counter the sum of all steps up, without those back."""
        values = self.rows[name].to_numpy()
        fell = numpy.flatnonzero(values[1:] < values[:-1]) if self.kind(name) == "counter" else []
        return int(values[-1]) - int(values[0]) + sum(int(values[i]) - int(values[i + 1]) for i in fell) if len(values) else 0

    def rates(self, window="10ms"):
        """Counters as rates, in their unit per second, over windows of at least this length. A rate has the time at which its
        window ends. A window in which a counter decreased (a restart) has no rate. Windows of values that were read before their
        row (_times_of) have at least 100 ms, and overlap; the first have no rate."""
        index, rates = self.rows.index.to_numpy(), {}
        ends = _window_ends(index, pandas.Timedelta(window).value)
        for name in self.counters():
            times, length = self._times_of(name, window)
            times, values, begins = times[ends], self.rows[name].to_numpy()[ends], numpy.arange(max(len(ends) - 1, 0))
            begins = numpy.clip(numpy.searchsorted(times, times[1:] - length, side="right") - 1, 0, begins)
            passed = times[1:] - times[begins]
            # Differences of unsigned numbers wrap. So decreases are found before the subtraction.
            fell = values[1:] < values[begins]
            grown = numpy.where(fell, 0, values[1:] - values[begins]).astype("float64")
            grown[fell | (passed < max(length, 1))] = numpy.nan
            rates[name] = grown / (numpy.maximum(passed, 1) / 1e9)
        return pandas.DataFrame(rates, index=pandas.Index(index[ends][1:], name=TIME_COLUMN))

    def highest_rates(self, window="10ms"):
        """The highest rate of each counter over the windows of at least this length that begin or end at a row: a DataFrame
        of rate and at_ns (where that window begins), by counter. Of a shorter recording it is the mean rate."""
        found = {}
        for name in self.counters():
            (times, length), rows = self._times_of(name, window), numpy.arange(len(self.rows))
            begin = numpy.searchsorted(times, times - length, side="right") - 1  # the last one of a window that ends at a row
            end = numpy.searchsorted(times, times + length, side="left")  # the first one of a window that begins there
            begins = numpy.concatenate([begin[begin >= 0], rows[end < len(times)]])
            ends = numpy.concatenate([rows[begin >= 0], end[end < len(times)]])
            if not len(ends) and len(times) > 1 and times[-1] > times[0]:
                begins, ends = numpy.array([0]), numpy.array([len(times) - 1])
            values = self.rows[name].to_numpy()
            grown = numpy.where(values[ends] < values[begins], 0, values[ends] - values[begins]).astype("float64")
            rates = grown / ((times[ends] - times[begins]) / 1e9)
            best = int(numpy.argmax(rates)) if len(rates) else -1
            found[name] = (rates[best], int(times[begins[best]])) if best >= 0 else (0.0, 0)
        return pandas.DataFrame.from_dict(found, orient="index", columns=["rate", "at_ns"])

    def mean(self, name):
        """The mean of a gauge over the time. Rows may be missing just when it is high, so it is not the mean of the rows."""
        times, values = self._times_of(name)[0], self.rows[name].to_numpy().astype("float64")
        if len(values) < 2 or times[0] == times[-1]:
            return float(values[0]) if len(values) else float("nan")
        return float(numpy.average((values[1:] + values[:-1]) / 2, weights=numpy.diff(times)))

    def _times_of(self, name, window="10ms"):
        """The time in ns of each row's value, and the shortest window of its rates. Values of NAME_... were read before the row
        by profiler_NAME_age_ns, if there is such a column (src/base/reading_age.h)."""
        times, length = self.rows.index.to_numpy().astype("int64"), pandas.Timedelta(window).value
        age = f"profiler_{name.partition('_')[0]}_age_ns"
        if age not in self.rows.columns:
            return times, length
        return numpy.maximum.accumulate(times - self.rows[age].to_numpy().astype("int64")), max(length, 100_000_000)

    def phases(self):
        """The phases, from each mark to the next, as a DataFrame of name, begin_ns, end_ns."""
        marks = self.marks
        last = int(self.rows.index[-1]) if len(self.rows) else 0
        ends = list(marks["at_ns"][1:]) + [last]
        frame = pandas.DataFrame({"name": marks["name"], "begin_ns": marks["at_ns"]})
        frame["end_ns"] = [max(b, e) for b, e in zip(frame["begin_ns"], ends)]
        return frame

    def values(self, window="10ms"):
        """All columns at the ends of windows of at least this length: counters as rates, gauges as their values."""
        times = self.rows.index.to_numpy()
        ends = _window_ends(times, pandas.Timedelta(window).value)
        frame = self.rows.iloc[ends[1:]].copy() if len(ends) else self.rows.copy()
        rates = self.rates(window)
        return frame.assign(**{name: rates[name] for name in rates.columns})

    def mark(self, name):
        """The time in ns of the first mark with this name. Raises RecordingError if there is none."""
        found = self.marks.loc[self.marks["name"] == name, "at_ns"]
        if found.empty:
            known = ", ".join(self.marks["name"]) or "none"
            raise RecordingError(f"find the mark {name} in {self.path}: its marks are {known}")
        return int(found.iloc[0])

    def between(self, begin_ns, end_ns):
        """The same recording with only the rows between these times, and the gaps that overlap them."""
        times = self.rows.index.to_numpy()
        rows = self.rows[(times >= max(begin_ns, 0)) & (times <= max(end_ns, 0))]
        gaps = self.gaps[(self.gaps["end_ns"] >= max(begin_ns, 0)) & (self.gaps["start_ns"] <= max(end_ns, 0))]
        return dataclasses.replace(self, rows=rows, gaps=gaps)

    def phase(self, name):
        """The same recording with only the rows from this mark to the next."""
        begin = self.mark(name)
        phases = self.phases()
        return self.between(begin, int(phases.loc[phases["begin_ns"] == begin, "end_ns"].max()))

    def histograms(self):
        """The names of the histograms (docs/library.md), each of which has a column for each bucket."""
        return list(dict.fromkeys(bucket.group("metric") for bucket in map(_BUCKET.fullmatch, self.rows.columns) if bucket))

    def quantile(self, name, share, window=None):
        """The value that this share (0 to 1) of a histogram's values does not exceed. NaN if nothing was recorded.

        Without `window`, a number for the whole recording. With `window`, a Series: the value of each window at its end.
        Values are assumed to be evenly distributed in a bucket. In the first one, the result is its upper bound: the
        quantile is not above it. In the last one, the result is its lower bound.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"quantile of {name}: the share {share} is not between 0 and 1")
        buckets = _buckets(self, name)
        values = self.rows[[column for _, _, column in buckets]].to_numpy()
        if window is None:
            return _quantile(buckets, values[-1].astype("int64") - values[0].astype("int64"), share) if len(values) else numpy.nan
        times = self.rows.index.to_numpy()
        ends = _window_ends(times, pandas.Timedelta(window).value)
        if len(ends) < 2:
            raise RecordingError(f"quantile of {name} in {self.path}: it is shorter than the window {window}")
        found = [_quantile(buckets, row, share) for row in numpy.diff(values[ends].astype("int64"), axis=0)]
        return pandas.Series(found, index=pandas.Index(times[ends][1:], name=TIME_COLUMN), name=name, dtype="float64")

    def plot(self, path, names=None, window="10ms"):
        """Draws the totals and rates of these counters into a file. Without names: of bytes and pages, at most
        12, those that changed in most rows. The picture and a line on stderr name the others."""
        import kymo_recording_plot

        kymo_recording_plot.draw(self, path, names, window)


def run_script(main):
    """Runs a script's main() and exits with its exit code. Ends quietly if nobody reads its output any more (`| head`)."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())


def load(path, rows=True):
    """Loads a recording, or a list of the parts of one as a whole, in any order. Without its rows, which is fast, it loads
    only the files next to them.

    Raises RecordingError if the file is not a recording, if its metadata is of a newer version, or if the parts do not
    follow each other.
    """
    if isinstance(path, (list, tuple)):
        return _joined([_load_part(part, rows) for part in find_all(path)])
    path = pathlib.Path(path)
    _refuse_companion(path)
    notes = []
    stem = _stem(path)
    metadata = _load_metadata(path.with_name(stem + ".meta.json"), notes)
    frame = kymo_recording_rows.load(path, notes) if rows else _no_rows(path, metadata)
    notes.extend(_metadata_notes(metadata or {}, len(frame) if rows else None))
    gaps = _load_gaps(path.with_name(stem + ".gaps.tsv"), notes)
    if metadata is not None:
        described = {column["name"] for column in metadata.get("columns", [])}
        unknown = [name for name in frame.columns if name not in described]
        if unknown:
            notes.append(f"the metadata does not describe {', '.join(unknown)}")
    return Recording(path, frame, metadata, gaps, notes)


def _load_part(path, rows):
    """A recording, whose rows are None if its header is not whole: the other parts are read all the same."""
    try:
        return load(path, rows)
    except HeaderError as error:
        return dataclasses.replace(load(path, rows=False), rows=None, notes=[str(error)])


def _joined(parts):
    """The parts of a rotated recording as one. The times of all of them count from one start."""
    if not parts:
        raise RecordingError("load a recording: no part is named")
    parts = sorted(parts, key=lambda run: run.part.get("number", 0))
    for before, after in zip(parts, parts[1:]):
        if before.part.get("next") != after.path.name and after.part.get("previous") != before.path.name:
            raise RecordingError(f"join {after.path} to {before.path}: it is not the part after it")
    cut = [note for run in parts if run.rows is None for note in run.notes]
    parts = [run for run in parts if run.rows is not None]
    if not parts:
        raise RecordingError(cut[0])
    for other in parts[1:]:
        if list(other.rows.columns) != list(parts[0].rows.columns):
            raise RecordingError(f"join {other.path} to {parts[0].path}: it has other columns")
    if len(parts) == 1:
        return dataclasses.replace(parts[0], notes=cut + parts[0].notes)
    part = {**parts[0].part, "next": parts[-1].part.get("next")}
    stats = [(run.metadata or {}).get("stats") or {} for run in parts]
    metadata = {**(parts[-1].metadata or {}), "part": part,
                # What a part has of them are counts, but for one.
                "stats": {name: sum(one.get(name, 0) for one in stats) for name in stats[0] if name != "sample_window_max_ns"},
                "longest_gaps": sorted((gap for run in parts for gap in (run.metadata or {}).get("longest_gaps", [])),
                                       key=lambda gap: -gap["ticks"])[:100]}
    notes = [f"{run.path.name}: {note}" for run in parts for note in run.notes if not note.startswith("it is only part")]
    return Recording(parts[0].path, pandas.concat([run.rows for run in parts]), metadata,
                     pandas.concat([run.gaps for run in parts if len(run.gaps)] or [parts[0].gaps], ignore_index=True),
                     cut + notes + list(_metadata_notes({"part": part}, None)))


def _recording_beside(path):
    """The path, without its ending, of the recording to which a companion file belongs. None for another file."""
    names = [path.name.removesuffix(ending) for ending in COMPANIONS if path.name.endswith(ending)]
    return path.with_name(names[0]) if names else None


def _refuse_companion(path):
    stem = _recording_beside(path)
    if stem is not None:
        names = [stem.with_name(stem.name + ending) for ending in (".tsv", ".tsv.zst")]
        recording = names[1] if names[1].exists() and not names[0].exists() else names[0]
        raise RecordingError(f"read {path}: it is a companion file of a recording; give {recording}")


def find(path):
    """The recordings that a path stands for: a file itself, or all in a checkpoint or another folder, sorted by name."""
    path = pathlib.Path(path)
    if not path.is_dir():
        _refuse_companion(path)
        return [path]
    for folder in (path / "recordings", path):
        found = [file for file in sorted(folder.glob("*.tsv*"))
                 if file.name.endswith((".tsv", ".tsv.zst")) and not file.name.endswith(COMPANIONS)]
        if found:
            return found
    raise RecordingError(f"look for recordings in {path}: there is none")


def find_all(paths):
    """The recordings that these paths stand for, each once. Leaves out companion files, which a shell's *.tsv matches, too."""
    paths = [pathlib.Path(path) for path in paths]
    stems = {path.with_name(_stem(path)) for path in paths if not path.name.endswith(COMPANIONS)}
    found = [file for path in paths if _recording_beside(path) not in stems for file in find(path)]
    return list({file.resolve(): file for file in reversed(found)}.values())[::-1]


def load_all(paths, rows=True):
    """Loads all recordings that these paths stand for (see find_all), the parts of one as one. Returns a list."""
    runs = [_load_part(file, rows) for file in find_all(paths)]
    chains = {}  # the parts of a recording, by the path of the newest of them
    for run in sorted(runs, key=lambda run: run.part.get("number", 0)):
        before = run.path.parent / str(run.part.get("previous", ""))
        chains[run.path] = [*chains.pop(before, []), run]
    whole = {chain[0].path: _joined(chain) for chain in chains.values()}
    return [whole[run.path] for run in runs if run.path in whole]


def table(runs):
    """A table with a row for each run: when it began, how long it took, the nanoseconds of each phase, and for each
    column the total growth of a counter or the mean of a gauge (only of recordings that were loaded with rows)."""
    rows = []
    for run in runs:
        row = {"path": str(run.path), "start": run.start, "duration_ns": run.duration_ns,
               "request": run.about.get("request"), "outcome": run.about.get("outcome")}
        for phase in run.phases().itertuples():
            name = f"phase: {phase.name}"
            row[name] = row.get(name, 0) + int(phase.end_ns) - int(phase.begin_ns)
        for name in run.rows.columns if len(run.rows) else []:
            row[name] = run.elapsed(name) if run.kind(name) == "counter" else run.mean(name)
        rows.append(row)
    return pandas.DataFrame(rows)


def common_mark(runs):
    """The first mark that all runs have, or None if there is none."""
    names = runs[0].marks["name"] if runs else []
    return next((name for name in names if all(name in set(run.marks["name"]) for run in runs)), None)


def aligned(runs, column, phase=None, step="1ms", window="10ms"):
    """One column of several runs on one time axis: ns since `phase` began (default: since the first mark that all have,
    or else the first row). A run is a column, with counters as rates, and NaN where the run has no value."""
    phase = phase or common_mark(runs)
    step_ns = pandas.Timedelta(step).value
    lines = {}
    for i, run in enumerate(runs):
        if column not in run.rows.columns:
            raise RecordingError(f"align {run.path}: it has no column {column}")
        origin = run.mark(phase) if phase else int(run.rows.index[0]) if len(run.rows) else 0
        values = run.values(window)[column].astype("float64")
        slots = (values.index.to_numpy().astype("int64") - origin) // step_ns * step_ns
        line = values.groupby(slots).mean()
        lines[run.name if run.name not in lines else f"{run.name} ({i})"] = line
    frame = pandas.DataFrame(lines)
    frame.index.name = "since " + (phase or "the first row")
    # A rate is valid for its whole window, so it is copied backwards over all steps of the window.
    back = max(1, pandas.Timedelta(window).value // step_ns)
    if not len(frame):
        return frame
    first, last = int(frame.index.min()) - back * step_ns, int(frame.index.max())
    steps = pandas.Index(range(first, last + step_ns, step_ns), name=frame.index.name)
    return frame.reindex(steps).bfill(limit=back)


def _stem(path):
    return path.name.removesuffix(".zst").removesuffix(".tsv")


def _no_rows(path, metadata):
    if not path.exists():
        raise RecordingError(f"open recording {path}: No such file or directory")
    names = [column["name"] for column in (metadata or {}).get("columns", [])]
    index = pandas.Index([], dtype="uint64", name=TIME_COLUMN)
    return pandas.DataFrame({name: pandas.Series(dtype="uint64") for name in names}, index=index)


def _load_metadata(path, notes):
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
        version = metadata["format_version"]
        if not isinstance(version, int):
            raise TypeError("format_version is no number")
    except OSError as error:
        notes.append(f"read metadata {path}: {error.strerror}")
        return None
    except (ValueError, KeyError, TypeError):
        notes.append(f"read metadata {path}: not the metadata of a recording")
        return None
    if version > FORMAT_VERSION:
        raise RecordingError(f"read metadata {path}: format_version {version} is newer than {FORMAT_VERSION}, "
                             "the newest that this module reads; use a newer one")
    return metadata


def _metadata_notes(metadata, rows):
    """What the metadata says about missing rows. `rows` is how many the file has, or None if they were not read."""
    if rows == 1:
        yield "only one row, so nothing can be compared: what was counted before it is in no figure"
    stats = metadata.get("stats") if metadata.get("state") in ("ended", "recovered") else None
    if rows is not None and isinstance(stats, dict) and stats.get("rows_written", rows) != rows:
        yield f"the metadata count {stats['rows_written']} rows, the file holds {rows}: all figures are of these"
    if metadata.get("state") == "running":
        yield "unfinished: it does not say that it has ended; its last rows and totals may be missing"
    for error in metadata.get("callback_errors", []):
        if error.get("no_value"):
            yield f"{error.get('metric')} never had a value, because its callback has thrown each time: its columns are 0, which means nothing"
    part = metadata.get("part")
    for key, where in (("previous", "before"), ("next", "after")):
        if isinstance(part, dict) and isinstance(part.get(key), str):
            yield f"it is only part {part.get('number', 0)} of a longer recording: the rows {where} are in {part[key]}"


def _load_gaps(path, notes):
    names = ["start_ns", "end_ns", "ticks", "cause"]
    empty = pandas.DataFrame(columns=names).astype(dict.fromkeys(names[:3], "uint64"))
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        notes.append(f"read list of gaps {path}: {error.strerror}")
        return empty
    gaps = []
    for number, line in enumerate(lines[1:-1], start=2):
        fields = line.decode("ascii", "replace").split("\t")
        if len(fields) == 4 and all(field.isdigit() for field in fields[:3]):
            gaps.append([int(field) for field in fields[:3]] + [fields[3]])
        else:
            notes.append(f"list of gaps, line {number}: no gap, left out")
    return pandas.DataFrame(gaps, columns=names) if gaps else empty


def _window_ends(times, window_ns):
    """The numbers of the rows at which windows of at least `window_ns` end. The first begins with row 0, the last ends with the last row."""
    ends = [0] if len(times) else []
    while ends:
        at = int(numpy.searchsorted(times, times[ends[-1]] + numpy.uint64(window_ns)))
        if at >= len(times):
            break
        ends.append(max(at, ends[-1] + 1))
    if len(ends) > 1:
        ends[-1] = len(times) - 1  # what comes after the last window belongs to it
    return numpy.array(ends, dtype="int64")


def _buckets(run, name):
    """The buckets of a histogram as (low, high, column), sorted by value."""
    found = [match for match in map(_BUCKET.fullmatch, run.rows.columns) if match and match["metric"] == name]
    if not found:
        known = ", ".join(run.histograms()) or "none"
        raise RecordingError(f"find the histogram {name} in {run.path}: its histograms are {known}")
    return sorted((int(match["low"]), float(match["high"]), match.group()) for match in found)


def _quantile(buckets, counts, share):
    left = share * counts.sum()
    if left < 0 or counts.sum() <= 0 or (counts < 0).any():
        return numpy.nan
    for (low, high, _), count in zip(buckets, counts):
        if count > 0 and left <= count:
            if low == 0:
                return float(high)
            return float(low) if high == float("inf") else low + (high - low) * left / count
        left -= count
    return float(buckets[-1][0])
