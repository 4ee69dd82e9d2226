"""When CRIU can be killed without killing the process that it dumps: the rule of src/checkpoint/criu/repair/borrowed.h, for CRIUs that
are stopped."""

import contextlib
import os
import pathlib
import platform
import re

# The numbers of recvfrom(2) and recvmsg(2), in which CRIU's code in a process waits for a command.
WAITS = {"x86_64": ("45", "47"), "aarch64": ("207", "212")}.get(platform.machine(), ())
INJECTED = 16  # bytes at the start of a mapping where CRIU makes the process execute system calls


def stand_still(pids, root=pathlib.Path("/proc")):
    """Whether all of these processes are stopped or gone."""
    def state(pid):
        try:
            return (root / str(pid) / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0]
        except OSError:
            return "X"
    return all(state(pid) in "TtXZ" for pid in pids)


def in_foreign_code(doing, maps):
    """Whether a thread with this content of /proc/PID/task/TID/syscall may be in CRIU's code."""
    if doing.strip() == "running":
        return True
    place = int(doing.split()[-1], 16)
    for line in maps.splitlines():
        begin, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if "x" in rights and int(begin, 16) <= place < int(end, 16):
            if "CRIUMFD" in line:
                return doing.split()[0] not in WAITS
            return place - int(begin, 16) < INJECTED
    return False


def borrow_a_process(tracers, root=pathlib.Path("/proc")):
    """Whether one of these CRIUs executes its own code in a process that it traces."""
    for entry in root.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            tracer = int(re.search(r"^TracerPid:\s*(\d+)", (entry / "status").read_text(errors="replace"), re.M)[1])
            if tracer not in tracers:
                continue
            maps = (entry / "maps").read_text(errors="replace")
            for thread in os.listdir(entry / "task"):
                if in_foreign_code((entry / "task" / thread / "syscall").read_text(errors="replace"), maps):
                    return True
    return False
