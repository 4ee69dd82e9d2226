"""Holds the tree against the rules of docs/architecture.md: what may include what (by the page's own table), public
headers that stand alone, the size of files, and words that must not be in them. Prints one line a fault; exit 1 if any."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

# A folder may include itself and the folders of lower floors: the table of docs/architecture.md.
ROW = re.compile(r"^\| (\d+) \| `src/(\w+)/` \|", re.M)


def floors_of(document):
    """The floor of each folder of src/, by the document's table."""
    return {folder: int(floor) for floor, folder in ROW.findall(document.read_text())}


FLOORS = floors_of(pathlib.Path(__file__).resolve().parents[2] / "docs/architecture.md")
# On the same floor, and allowed all the same: the document names them as well.
EXCEPTIONS = {("daemon", "report"), ("export", "report"), ("runtimes", "runtime")}
# The folder that each public header is the face of; one that is not listed is a fault.
PUBLIC = {
    "version.h": "base", "export.h": "base", "result.h": "base",
    "metric.h": "metrics", "counter.h": "metrics", "counter_file.h": "metrics", "registry.h": "metrics",
    "histogram.h": "metrics", "profiling_only.h": "metrics",
    "sink.h": "sampling", "profiler.h": "sampling", "trouble.h": "sampling",
    "flight_recorder.h": "sampling",
    "scope.h": "timing",
    "prometheus.h": "prometheus",
}
MOST_LINES = 600
MOST_LINES_OF_API = 750  # clients are promised one file that imports nothing
SOURCES = (".h", ".cc", ".c", ".py", ".sh", ".bats", ".cmake", ".proto", ".js", ".css", ".html")

# In pieces, so that this file does not hold what it looks for.
FORBIDDEN = [".".join(parts) for parts in (
    ("deb", "debian", "org"), ("snapshot", "debian", "org"), ("security", "debian", "org"),
    ("registry", "npmjs", "org"), ("registry", "yarnpkg", "com"), ("pypi", "org"),
    ("files", "pythonhosted", "org"), ("proxy", "golang", "org"), ("sum", "golang", "org"),
    ("crates", "io"), ("index", "docker", "io"), ("quay", "io"), ("ghcr", "io"))]
FORBIDDEN += ["/".join(parts) for parts in (("", "work", "main"), ("", "work", "shared"), ("", "tmp", "wt"))]

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
    """The folder of src/ that an include names, None if it names none, "?" for an unlisted public header."""
    first, _, rest = name.partition("/")
    if first == "kymo":
        return "api" if rest.startswith("v1/") else PUBLIC.get(rest, "?")
    return first if first in FLOORS else None


def may_include(folder, other):
    return folder == other or FLOORS[other] < FLOORS[folder] or (folder, other) in EXCEPTIONS


def check_source_file(root, path):
    """Faults of a file below src/."""
    folder = path.relative_to(root / "src").parts[0]
    where = path.relative_to(root)
    if folder not in FLOORS:
        yield f"{where}: folder src/{folder} stands on no floor: give it one in docs/architecture.md"
        return
    for quoted, name in includes(path):
        other = folder_of(name)
        if other == "?":
            yield f"{where}: includes {name}, a public header that check_tree.py gives no folder"
        elif other is None and quoted:
            yield f'{where}: includes "{name}", which names no folder of src/'
        elif other is not None and not may_include(folder, other):
            yield (f"{where}: {folder} (floor {FLOORS[folder]}) must not include {name}"
                   f" ({other}, floor {FLOORS[other]})")


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
    for path in files:
        parts = path.relative_to(root).parts
        if path.suffix not in (".h", ".cc"):
            continue
        if parts[0] == "src":
            yield from check_source_file(root, path)
        elif parts[:2] == ("include", "kymo"):
            yield from check_public_header(root, path)
        elif parts[0] == "examples":
            yield from check_example(root, path)


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


def check_headers_alone(root, files, compiler, generated):
    headers = [path for path in files if path.relative_to(root).parts[:2] == ("include", "kymo")]
    with tempfile.TemporaryDirectory() as scratch:
        unit = pathlib.Path(scratch) / "unit.cc"
        for path in headers:
            line = f'#include "kymo/{path.name}"\n'
            unit.write_text(line + line)  # twice: the guard is part of standing alone
            command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                       "-I", str(root / "include"), "-I", str(generated or root / "include"), str(unit)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                yield f"{path.relative_to(root)}: does not compile alone:\n{result.stderr}"


def check_tree(root, compiler=None, generated=None):
    """Every fault of the tree at `root`; headers are compiled where a compiler is given."""
    files = tracked(root)
    faults = [*check_includes(root, files), *check_sizes(root, files), *check_words(root, files)]
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
