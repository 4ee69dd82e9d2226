#!/usr/bin/python3
"""Finds what tests have left, or ends it.

    leftovers.py SCRATCH [OURS]
    leftovers.py --end SCRATCH [OURS]

Prints the ids of processes, one a line. With --end, kills them, and takes away all that is mounted below SCRATCH.
SCRATCH is the scratch folder of scripts/test, which is also the value of KYMO_TEST_RUN in the environment of all that the
tests start, also through setsid and a restore. A container has another environment, but its root is below SCRATCH, also
after the folder was removed. The process OURS and all below it are no leftovers (default: the process that started this
program).
"""
import os
import pathlib
import signal
import subprocess
import sys


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended, or it is a thread of the kernel
        return b""


def is_of_tests(process, scratch):
    if f"KYMO_TEST_RUN={scratch}".encode() in read(process / "environ").split(b"\0"):
        return True
    mounts = (line.split() for line in read(process / "mountinfo").splitlines())
    return any(mount[4] == b"/" and any(scratch.encode() + b"/" in field for field in mount) for mount in mounts)


def parent_of(process):
    words = read(process / "stat").rpartition(b")")[2].split()
    return int(words[1]) if words else 0


def leftovers(scratch, ours):
    """The processes of the tests that do not descend from the process `ours`, and are not `ours`."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        above = pid = int(process.name)
        while above not in (0, ours):
            above = parent_of(pathlib.Path(f"/proc/{above}"))
        if above != ours and is_of_tests(process, scratch):
            found.append(pid)
    return sorted(found)


def end(scratch, ours):
    """Kills these processes, and takes away what is mounted below SCRATCH. Returns the ids of the processes."""
    found = leftovers(scratch, ours)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    mounts = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for mount in reversed([mount for mount in mounts if mount.startswith(f"{scratch}/")]):
        if subprocess.run(["umount", "-l", mount], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            subprocess.run(["fusermount3", "-uz", mount], stderr=subprocess.DEVNULL, check=False)
    return found


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--end"]
    do = end if "--end" in sys.argv else leftovers
    print("\n".join(map(str, do(words[0], int(words[1]) if len(words) > 1 else os.getppid()))))
