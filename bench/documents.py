"""Writes the figures and outputs in docs/performance.md and the README from the results in bench/results.

The text between `<!-- generated: NAME -->` and `<!-- end -->` is written by the generator of this name, and must not be
changed by hand: tests/docs/performance_page_test.py generates it again and compares.
"""

import json
import re

import figures
import parts
from parts import PARTS

RESULTS = "bench/results/published.json"
DEMO = "bench/results/demo.txt"
DOCUMENTS = ("README.md", "docs/performance.md", "docs/library.md")
MARKED = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->\n)", re.S)


# --- docs/performance.md -------------------------------------------------------------------------

def machine_text(results):
    machine = results["machine"]
    return (f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB of memory, Linux {machine['kernel']},\n"
            f"{machine['compiler']}.")


def noise(result):
    """What else ran, if the machine was not quiet."""
    load = result["load"]
    return f"**Not on a quiet machine:** other work took {load['others_cores']:.2f} cores, the hypervisor {100 * load['steal']:.1f} %."


def entries_of(part, result):
    """The results of the part's figures, with the texts of now."""
    texts = {figure.name: figure.text for figure in part.figures}
    return {name: {**entry, "text": texts[name]} for name, entry in result["figures"].items()}


def rival(entry, entries):
    """The ratio to the rival, and the rival with its median. Leaves out of its name what the figure's has, too."""
    other = entries[entry["beside"]["name"]]
    own, name = (one["text"].replace("**", "") for one in (entry, other))
    begin, colon, rest = name.rpartition(": ")
    if colon and own.startswith(begin):
        name = rest
    while ", " in name and own.endswith(", " + name.rpartition(", ")[2]):
        own, name = own.rpartition(", ")[0], name.rpartition(", ")[0]
    share = entry["beside"]["share"]
    ratio = figures.tell_ratios(entry["beside"]) if share or "goal" in entry else figures.tell_ratio(entry["beside"]["median"], share)
    return f"{ratio} {'against' if share else 'of'} {name} ({figures.tell(other['median'], other['unit'])})"


def line(entry, entries):
    said = [figures.tell_all(entry, entry["unit"])]
    if "beside" in entry:
        said.append(rival(entry, entries))
    if "goal" in entry:
        said.append(f"goal {figures.tell_goal(entry)}, {figures.tell_met(entry['goal'])}")
    return f"- {entry['text']}: {'; '.join(said)}"


def missed(entry):
    return "goal" in entry and not entry["goal"]["met"]


def shown(entry):
    """Whether the page has a line for it: for what a part is about, and for each goal that is not met."""
    return "**" in entry["text"] or missed(entry)


def part_text(part, result):
    lines = [f"## {part.title}: `scripts/bench {part.name}`", "", part.text, ""]
    if result is None:
        return "\n".join([*lines, "Not measured yet.", ""])
    if not result["load"]["quiet"]:
        lines += [noise(result), ""]
    entries = entries_of(part, result)
    told = [line(entry, entries) for entry in entries.values() if shown(entry)]
    return "\n".join([*lines, *told, *([""] if told else [])])


def on_page(part, result):
    return part.page or (result is not None and any(missed(entry) for entry in result["figures"].values()))


def parts_text(results):
    of_parts = [(part, results["parts"].get(name)) for name, part in PARTS.items()]
    return "\n".join(part_text(part, result) for part, result in of_parts if on_page(part, result))


def goals_text(results):
    """The goals that are not met, each with the reason."""
    goals = [(name, entry) for name, result in results["parts"].items() for entry in entries_of(PARTS[name], result).values()
             if "goal" in entry]
    not_met = [(name, entry) for name, entry in goals if missed(entry)]
    reasons = {}
    for name, entry in not_met:
        reasons.setdefault((name, why_missed(name, entry["text"])), []).append(
            f"{entry['text'].replace('**', '')}: {figures.tell_reached(entry)}")
    rows = [f"- `{name}`, {'; '.join(said)}. {why}" for (name, why), said in reasons.items()]
    return "\n".join([f"{len(goals)} goals, {len(not_met)} of them not met.", *([""] if not_met else []), *rows])


# Why a goal is not met, by its part and a word of its text. Only those that are not met now are shown.
WHY_MISSED = [
    ("sample", "beside a thread", "While a thread adds, its cells are in the cache of its CPU. A sample must fetch each of their cache "
     "lines from there, and this takes longer than to read them."),
    ("scope", "to open", "Besides the read of the clock, a scope reserves a node of the tree by an atomic addition, and fills it in."),
    ("busy", "real-time policy", "Both miss so few ticks that the ratio of the two says little: see the shares of ticks in the part."),
    ("busy", "normal policy", "Both have to wait for a CPU. The recorder does more in each tick than a loop that only sleeps, so it "
     "has more CPU time to its account. Use `realtime_priority` where ticks must not be missed."),
    ("reading", "all threads", "The threads of a process hand their pieces over in the order of the file, so one may wait for another. "
     "The processes beside it never wait for each other."),
    ("dump", "1 MiB", "kymod's own time is nearly the same for every size, so a small dump shows it most. "
     "[timing.md](timing.md) has the steps that it consists of."),
    ("container", "own time", "It is work for the CPU, while the bare command mostly waits: with a slower CPU its share is larger. On an "
     "Intel Xeon it was 0.044."),
    ("watch", "watched", "One dump differs from the next by more than the goal: see the interval."),
]
NO_REASON = "The reason is not known yet."


def why_missed(part, text):
    return next((why for name, word, why in WHY_MISSED if name == part and word in text), NO_REASON)


# --- README --------------------------------------------------------------------------------------

# What is measured, the figures of Kymograph, and those of its rivals. {part:figure} becomes the median. With |all, its
# interval is added. With |ratio, it becomes the ratio to the rival.
COSTS = [
    ("a counter's addition", "{counter:kymo_counter/threads:1}; by two threads {counter:kymo_counter/threads:2}",
     "`std::atomic` {counter:std_atomic/threads:1}, shared by two threads {counter:std_atomic/threads:2}; prometheus-cpp "
     "{counter:prometheus_counter/threads:1} and {counter:prometheus_counter/threads:2}"),
    ("a histogram's record", "{histogram:kymo_histogram/threads:1}", "prometheus-cpp {histogram:prometheus_histogram/threads:1}"),
    ("a sample of 16 counters", "{sample:sample/16}",
     "loads of 16 `std::atomic` {sample:atomic_loads/16}; prometheus-cpp's `Collect` {sample:prometheus_collect/16}"),
    ("1 kHz, thrifty (the default)", "{recorder:thrifty.cores}", "a loop that only sleeps {recorder:thrifty.sleeping.cores}"),
    ("1 MHz, 16 counters, to disk", "{recorder:megahertz.on_time} of the ticks on time, {recorder:megahertz.cores}",
     "a bare loop that reads the clock {recorder:megahertz.bare.on_time}"),
    ("rows to text, on one core", "{text:formatter/changing:16}", "a loop over `std::to_chars` {text:to_chars_loop/changing:16}"),
    ("reading a recording, every value summed, on one core", "{reading:kymo.per_core}",
     "DuckDB {reading:duckdb.per_core}, pandas {reading:pandas.per_core}, awk {reading:awk.per_core}"),
    ("a report of a recording of 250 MB", "{report:kymo.wall}, {report:kymo.memory}",
     "DuckDB {report:duckdb.wall}, {report:duckdb.memory}; pandas {report:pandas.wall}, {report:pandas.memory}"),
    ("a dump of 512 MiB, recorded at 1 kHz: shorter than CRIU's own, because the images go through kymod's pipes; recording it costs "
     "nothing measurable", "{dump:kymo.wall|ratio}; frozen time {dump:kymo.frozen|ratio}; kymod's own time {dump:kymo.own}",
     "a bare `criu dump` {dump:bare.wall}"),
    ("a dump of a container, kymod's own time", "{container:runc.own} with runc, {container:podman.own} with podman",
     "podman's own time over runc {container:podman.over_runc}"),
    ("watching a dump", "{watch:watched.duration|ratio} of its time", "the same dump alone {watch:alone.duration}"),
    ("a page of 10 million rows of 4 counters", "{page:page.size}, charts after {page:page.envelopes}, every single sample after "
     "{page:page.whole}", "a page of as many bytes of text: loaded after {page:inert.whole}; the recording by `gzip` {page:gzip.size}"),
    ("a dump of compressible memory onto a disk of 20 MB/s, `--compression zstd`", "{stream:zstd.duration}",
     "as CRIU writes it itself {stream:plain.duration}"),
]
PLACE = re.compile(r"\{(\w+):([^}|]+)(?:\|(\w+))?\}")


def filled(template, results):
    def tell(match):
        part, name, how = match.groups()
        entry = results["parts"][part]["figures"][name]
        if how == "ratio":
            return figures.tell_ratios(entry["beside"])
        return figures.tell_all(entry, entry["unit"]) if how == "all" else figures.tell(entry["median"], entry["unit"])
    return PLACE.sub(tell, template)


# The costs for a program that embeds libkymo (docs/library.md), and the command that measures each.
EMBEDDING = [
    ("an addition to a counter, one thread", "{counter:kymo_counter/threads:1}", "`scripts/bench counter`"),
    ("an addition, two threads to the same counter", "{counter:kymo_counter/threads:2}", "`scripts/bench counter`"),
    ("a histogram's record", "{histogram:kymo_histogram/threads:1}", "`scripts/bench histogram`"),
    ("a sample of 16 counters, one thread", "{sample:sample/16}", "`scripts/bench sample`"),
    ("the same, beside a thread that adds to them", "{sample:sample_beside_a_writer/16}", "`scripts/bench sample`"),
    ("a sample of 64 counters, one thread", "{threads:sample_of_threads/1}", "`scripts/bench threads`"),
    ("the same, 16 threads", "{threads:sample_of_threads/16}", "`scripts/bench threads`"),
    ("the same, 64 threads", "{threads:sample_of_threads/64}", "`scripts/bench threads`"),
    ("the same, 256 threads", "{threads:sample_of_threads/256}", "`scripts/bench threads`"),
    ("the collector at 1 kHz, thrifty (the default)", "{recorder:thrifty.cores}", "`scripts/bench recorder`"),
    ("the collector at 1 kHz, precise", "{recorder:precise.cores}", "`scripts/bench recorder`"),
    ("collector and writer at 1 MHz, 16 counters", "{recorder:megahertz.cores}", "`scripts/bench recorder`"),
    ("to open and close a scope", "{scope:open_and_close/60}", "`scripts/bench scope`"),
]


# What a recording costs by its rate (docs/library.md), and where this is measured.
RATES = [(text, f"{{rates:{name}.cores}}", f"{{rates:{name}.hour}}") for name, (text, _) in parts.RATES.items()]


def rates_text(results):
    if "rates" not in results["parts"]:
        return "Not measured yet: `scripts/bench rates`."
    rows = [f"| {what} | {filled(cores, results)} | {filled(hour, results)} |" for what, cores, hour in RATES]
    quiet = results["parts"]["rates"]["load"]["quiet"]
    note = [] if quiet else ["", "The machine was not quiet while these were measured."]
    return "\n".join(["| rows a second, 16 counters | CPU | disk for an hour |", "| --- | --- | --- |", *rows, *note])


def costs_text(results):
    return cost_table(results, COSTS, "beside")


def embedding_text(results):
    return cost_table(results, EMBEDDING, "measured by")


def cost_table(results, costs, last):
    rows, missing = [], []
    head = [f"| | here | {last} |", "| --- | --- | --- |"]
    shown = set()
    for what, here, beside in costs:
        parts = {part for part, _, _ in PLACE.findall(here + beside)}
        if parts <= set(results["parts"]):
            shown |= parts
            rows.append(f"| {what} | {filled(here, results)} | {filled(beside, results)} |")
        else:
            missing.append(what)
    if missing:
        return "\n".join([*([*head, *rows, ""] if rows else []), "Not measured yet: " + "; ".join(missing) + "."])
    noisy = [name for name, result in results["parts"].items() if not result["load"]["quiet"] and (costs is COSTS or name in shown)]
    note = ["", "The machine was not quiet while these were measured: " + ", ".join(noisy) + "."] if noisy else []
    return "\n".join([*head, *rows, *note])


# The lines of the demo's output that the README shows, in their order. They are at most eight, because the block is on the
# README's first screen.
DEMO_LINES = re.compile("|".join([
    r"^dumped pid", r"^it had counted to", r"^restored pid", r"^it counts on",
    r"^  The process stood still for", r"^  The restore took", r"^  The longest phase"]))


def demo_text(path):
    """These lines, indented as code of Markdown."""
    if not path.exists():
        return "(No run is recorded yet: `scripts/bench --demo` writes one here.)"
    headline, *lines = path.read_text().splitlines()
    return "\n".join([headline + ":", "", *("    " + line for line in lines if DEMO_LINES.match(line))])


# --- both ----------------------------------------------------------------------------------------

def generators(root):
    """Returns {name: text}, without the marks."""
    results = json.loads((root / RESULTS).read_text())
    return {"machine": machine_text(results), "parts": parts_text(results), "goals": goals_text(results),
            "costs": costs_text(results), "embedding": embedding_text(results), "rates": rates_text(results), "demo": demo_text(root / DEMO)}


def generated(text, made):
    """The document with newly generated parts."""
    def marked(match):
        body = made[match[2]].strip("\n")
        return f"{match[1]}\n{body}\n\n{match[3]}"

    return MARKED.sub(marked, text)


def write_all(root):
    made = generators(root)
    for name in DOCUMENTS:
        path = root / name
        path.write_text(generated(path.read_text(), made))
        print(f"bench: wrote {name}")
    return 0
