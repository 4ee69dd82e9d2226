"""Writes a profile by the definition of the pprof format: pprof_of.py FILE KIND [NS [PHASE]] < STACKS.

KIND is cpu or wait. Each input line has a number of samples and, separated by tabs, the functions from the outermost
to the innermost one. Each sample stands for NS nanoseconds. PHASE, if given, is the phase of all samples."""
import gzip
import sys


def number(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(at, value):
    if isinstance(value, int):
        return number(at << 3) + number(value)
    return number(at << 3 | 2) + number(len(value)) + value


def packed(at, values):
    return field(at, b"".join(number(value) for value in values))


def main():
    path, kind, ns = sys.argv[1], sys.argv[2], int((sys.argv[3:] or ["10000000"])[0])
    strings = [""]

    def text(value):
        if value not in strings:
            strings.append(value)
        return strings.index(value)

    count = "samples" if kind == "cpu" else "contentions"
    out = b"".join(field(1, field(1, text(name)) + field(2, text(unit)))
                   for name, unit in ((count, "count"), (kind, "nanoseconds")))
    phase = sys.argv[4] if len(sys.argv) > 4 else None
    label = field(3, field(1, text("phase")) + field(2, text(phase))) if phase else b""
    functions = []
    samples = 0
    for line in sys.stdin:
        value, *stack = line.rstrip("\n").split("\t")
        functions += [name for name in stack if name not in functions]
        ids = [functions.index(name) + 1 for name in reversed(stack)]
        out += field(2, packed(1, ids) + packed(2, [int(value), int(value) * ns]) + label)
        samples += int(value)
    out += field(3, field(1, 1) + field(5, text("/usr/bin/app")))
    for at, name in enumerate(functions, 1):
        out += field(4, field(1, at) + field(2, 1) + field(4, field(1, at)))
        out += field(5, field(1, at) + field(2, text(name)))
    out += field(10, samples * ns)
    out += b"".join(field(6, value.encode()) for value in strings)
    with open(path, "wb") as file:
        file.write(gzip.compress(out))


main()
