"""Checks the tree against the rules of docs/architecture.md: what may include what (by the table of that page and the doors of the wings), public
headers that compile alone, the size of files, forbidden words, and atomic operations without a memory order. Prints one
line for each fault. Exits with 1 if there is any."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

# The rows of the table in docs/architecture.md. A file may include its own folder and the folders of lower floors. 2.3.1
# is a floor inside 2.3.
ROW = re.compile(r"^\| (\d+(?:\.\d+)*) \| `src/([\w/]+)/` \|", re.M)


def floors_of(document):
    """The floor of each folder of src/, a tuple of numbers, by the document's table."""
    return {folder: tuple(map(int, floor.split("."))) for floor, folder in ROW.findall(document.read_text())}


ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOORS = floors_of(ROOT / "docs/architecture.md")
# What other wings may include of a wing, one header a line, stands in src/WING/door.txt. What has no door is for all.
DOOR = "door.txt"
WITHOUT_DOOR = {"base", "api", "client"}
# The folder to which each public header belongs. A header that is not listed is a fault.
PUBLIC = {
    "version.h": "base", "export.h": "base", "result.h": "base",
    "metric.h": "recorder/metrics", "counter.h": "recorder/metrics", "counter_file.h": "recorder/metrics",
    "registry.h": "recorder/metrics", "gauge.h": "recorder/metrics", "histogram.h": "recorder/metrics",
    "profiling_only.h": "recorder/metrics",
    "scope.h": "recorder/timing", "timed_scope.h": "recorder/timing", "count_bytes.h": "recorder/timing",
    "sink.h": "recorder/sampling", "profiler.h": "recorder/sampling", "trouble.h": "recorder/sampling",
    "flight_recorder.h": "recorder/sampling", "recover.h": "recorder/sampling",
    "annotated_sink.h": "recorder/sampling", "kymo.h": "recorder/sampling",
    "prometheus.h": "recorder/prometheus",
}
MOST_LINES = 600
MOST_LINES_OF_API = 750  # clients are promised an API in one file without imports
SOURCES = (".h", ".cc", ".c", ".py", ".sh", ".bats", ".cmake", ".proto", ".js", ".css", ".html")

# Split into pieces, so that this file itself does not contain the forbidden words.
FORBIDDEN = [".".join(parts) for parts in (
    ("deb", "debian", "org"), ("snapshot", "debian", "org"), ("security", "debian", "org"),
    ("registry", "npmjs", "org"), ("registry", "yarnpkg", "com"), ("pypi", "org"),
    ("files", "pythonhosted", "org"), ("proxy", "golang", "org"), ("sum", "golang", "org"),
    ("crates", "io"), ("index", "docker", "io"), ("quay", "io"), ("ghcr", "io"))]
FORBIDDEN += ["/".join(parts) for parts in (("", "work", "main"), ("", "work", "shared"), ("", "tmp", "wt"))]

# Calls of a member function of std::atomic. Other functions are also named `load` and `store`. A `load` with
# arguments, or a `store` without, is one of those.
ATOMIC_CALL = re.compile(r"(?:\.|->)\s*(load|store|exchange|fetch_\w+|compare_exchange_\w+|test_and_set)\s*\(")
ATOMIC_NAME = re.compile(r"std::atomic<(?:[^<>;]|<[^<>;]*>)*>&?\s+(\w+)\s*[{;=]")
# An atomic that is used without a call, with the default order seq_cst. Names without a trailing underscore may
# belong to something else. So assignments to them, and reads of them, are not found.
ATOMIC_OPERATOR = (r"(?:\+\+|--)(?:[\w.]|->)*\b{0}\b|(?<![.>])\b{0}\b(?:\+\+|--|\s*[-+|&^]=)|\b{0}(?<=_)\s*=(?!=)"
                   r"|\b(?:return|if|while) \(?!?{0}(?<=_)[;)]")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def tracked(root):
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return sorted(root / name for name in set(names) if (root / name).is_file())
    return sorted(path for path in root.rglob("*") if path.is_file())


def includes(path):
    return [(kind == '"', name) for kind, name in INCLUDE.findall(path.read_text(errors="replace"))]


def folder_of(name):
    """The folder of src/ to which an included file belongs. None if there is none, "?" for an unlisted public header."""
    if name.startswith("kymo/v1/"):
        return "api"
    if name.startswith("kymo/"):
        return PUBLIC.get(name[5:], "?")
    folder = name.rpartition("/")[0]
    while folder and folder not in FLOORS:
        folder = folder.rpartition("/")[0]
    return folder or None


def runtime_of(name):
    """The runtime to whose folder a file below src/ belongs. None if it belongs to none."""
    found = re.match(r"checkpoint/runtimes/(\w+)/", name)
    return found.group(1) if found and found.group(1) != "shared" else None


def wing_of(folder):
    return folder.partition("/")[0]


def may_include(folder, other):
    return folder == other or folder.startswith(other + "/") or FLOORS[other] < FLOORS[folder]


def floor_text(folder):
    return ".".join(map(str, FLOORS[folder]))


class Doors:
    """What other wings may include of each wing, and what they do include."""

    def __init__(self, root):
        self._listed = {}
        for door in sorted(root.glob(f"src/*/{DOOR}")):
            wing = door.parent.name
            self._listed[wing] = {f"{wing}/{line}" for line in door.read_text().split()}
        self._used = set()

    def includes(self, wing, name):
        """Notes that a file of this wing, or of tools, includes a header. Returns whether the door is open for it."""
        other = wing_of(name)
        if wing == other or other in WITHOUT_DOOR or other not in {wing_of(folder) for folder in FLOORS}:
            return True
        self._used.add(name)
        return name in self._listed.get(other, set())

    def unused(self):
        return sorted(name for names in self._listed.values() for name in names - self._used)


def check_source_file(root, path, doors):
    """Faults of a file below src/."""
    name = path.relative_to(root / "src").as_posix()
    folder = folder_of(name)
    where = path.relative_to(root)
    if folder is None:
        yield f"{where}: folder src/{name.rpartition('/')[0]} stands on no floor: give it one in docs/architecture.md"
        return
    own_runtime = runtime_of(name)
    for quoted, name in includes(path):
        other = folder_of(name)
        if name.endswith(".skel.h"):  # generated for this folder (cmake/KymoBpf.cmake)
            continue
        if other == "?":
            yield f"{where}: includes {name}, a public header that check_tree.py gives no folder"
        elif other is None and quoted:
            yield f'{where}: includes "{name}", which names no folder of src/'
        elif other is not None and not may_include(folder, other):
            yield (f"{where}: {folder} (floor {floor_text(folder)}) must not include {name}"
                   f" ({other}, floor {floor_text(other)})")
        elif own_runtime and runtime_of(name) not in (None, own_runtime):
            yield f"{where}: must not include {name}, which is another runtime's"
        elif not name.startswith("kymo/") and not doors.includes(wing_of(folder), name):
            yield f"{where}: must not include {name}, which is not in src/{wing_of(name)}/{DOOR}"


def check_public_header(root, path):
    where, own = path.relative_to(root), path.name
    if own not in PUBLIC:
        yield f"{where}: a public header that check_tree.py gives no folder"
        return
    for _, name in includes(path):
        if name.startswith("kymo/"):
            other = folder_of(name)
            if other == "?" or not may_include(PUBLIC[own], other):
                yield f"{where}: must not include {name}"
        elif re.search(r"[/.]", name):
            yield f"{where}: includes {name}; a public header includes standard C++ headers and kymo/ alone"


def check_example(root, path):
    for quoted, name in includes(path):
        if quoted and not (name.startswith("kymo/") and name[5:] in PUBLIC):
            yield f'{path.relative_to(root)}: includes "{name}"; an example uses the public headers alone'


def check_includes(root, files):
    doors = Doors(root)
    for path in files:
        parts = path.relative_to(root).parts
        if path.suffix not in (".h", ".cc"):
            continue
        if parts[0] == "src":
            yield from check_source_file(root, path, doors)
        elif parts[:2] == ("include", "kymo"):
            yield from check_public_header(root, path)
        elif parts[0] == "tools":
            for _, name in includes(path):
                if "/" in name and not doors.includes("tools", name):
                    yield f"{path.relative_to(root)}: must not include {name}, which is not in src/{wing_of(name)}/{DOOR}"
        elif parts[0] == "examples":
            yield from check_example(root, path)
    for name in doors.unused():
        yield f"src/{wing_of(name)}/{DOOR}: no other wing includes {name}: take it out"


def check_sizes(root, files):
    for path in files:
        if path.suffix in SOURCES or path.parent.name == "scripts":
            lines = path.read_bytes().count(b"\n")
            most = MOST_LINES_OF_API if path.suffix == ".proto" else MOST_LINES
            if lines > most:
                yield f"{path.relative_to(root)}: {lines} lines; split it (at most {most})"


def check_words(root, files):
    for path in files:
        text = path.read_bytes()
        for word in FORBIDDEN:
            if word.encode() in text:
                yield f"{path.relative_to(root)}: holds '{word}'; no file names a registry's host or a private path"


def arguments_at(text, begin):
    """The arguments of a call: the text from `begin` to the closing parenthesis."""
    depth = 1
    for i in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin:i].strip()
    return text[begin:]


def atomics_near(path, text):
    """The atomics that this file, or a header in the same folder, declares."""
    texts = [text, *(header.read_text(errors="replace") for header in path.parent.glob("*.h"))]
    return sorted({name for one in texts for name in ATOMIC_NAME.findall(one)})


def check_memory_orders(root, files):
    for path in files:
        if path.suffix not in (".h", ".cc") or path.relative_to(root).parts[0] not in ("src", "include", "tools"):
            continue
        text = path.read_text(errors="replace")
        for call in ATOMIC_CALL.finditer(text):
            name, arguments = call.group(1), arguments_at(text, call.end())
            foreign = arguments if name == "load" else not arguments
            if not foreign and "memory_order" not in arguments:
                line = text.count("\n", 0, call.start()) + 1
                yield f"{path.relative_to(root)}:{line}: {name}() names no memory order"
        for name in atomics_near(path, text):
            for use in re.finditer(ATOMIC_OPERATOR.format(re.escape(name)), text):
                line = text.count("\n", 0, use.start()) + 1
                yield f"{path.relative_to(root)}:{line}: {name} is used without a memory order: call load() or the like"


def check_headers_alone(root, files, compiler, generated):
    headers = [path for path in files if path.relative_to(root).parts[:2] == ("include", "kymo")]
    with tempfile.TemporaryDirectory() as scratch:
        unit = pathlib.Path(scratch) / "unit.cc"
        for path in headers:
            line = f'#include "kymo/{path.name}"\n'
            unit.write_text(line + line)  # twice, to check the include guard
            command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                       "-I", str(root / "include"), "-I", str(generated or root / "include"), str(unit)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                yield f"{path.relative_to(root)}: does not compile alone:\n{result.stderr}"


def check_tree(root, compiler=None, generated=None):
    """All faults of the tree at `root`. The headers are compiled only if a compiler is given."""
    files = tracked(root)
    faults = [*check_includes(root, files), *check_sizes(root, files), *check_words(root, files),
              *check_memory_orders(root, files)]
    if compiler:
        faults += check_headers_alone(root, files, compiler, generated)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--compiler")
    parser.add_argument("--generated", type=pathlib.Path, help="folder of the generated kymo/version.h")
    arguments = parser.parse_args()
    faults = check_tree(arguments.root.resolve(), arguments.compiler, arguments.generated)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
