#!/usr/bin/python3
"""How often CRIU waits for the disk in a cold dump and in a warm one, by which `kymo history` distinguishes them.

    bench/cold_dumps.py --dumps 20 --criu "$(scripts/setup --criu)"      # as root: it drops the page cache

A process that has files mapped (Python's own libraries, and a file of 16 MiB that it has read completely) is dumped and
left running, alternately after `echo 3 > /proc/sys/vm/drop_caches` and again immediately. Prints the sorted major
faults of the CRIU process (ru_majflt, wait4(2)), from which kymod takes them, too. Checked: each dump succeeds, and the
process runs on.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

TARGET = """
import mmap, sys, time
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(mapped[at] for at in range(0, len(mapped), 4096))
open(sys.argv[2], "w").close()
while True:
    time.sleep(0.1)
"""
NULL = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def dump(criu, target, folder):
    images = folder / "images"
    images.mkdir()
    dumping = subprocess.Popen([criu, "dump", "--tree", str(target.pid), "--images-dir", images, "--leave-running",
                                "--log-file", "dump.log", "-v4"], **NULL)
    _, status, used = os.wait4(dumping.pid, 0)
    if status != 0 or target.poll() is not None:
        sys.exit("cold_dumps: a dump failed:\n" + (images / "dump.log").read_text()[-2000:])
    shutil.rmtree(images)
    return used.ru_majflt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dumps", type=int, default=20)
    parser.add_argument("--criu", default="criu")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kymo-bench-"))
    (folder / "mapped").write_bytes(os.urandom(16 << 20))
    target = subprocess.Popen([sys.executable, "-c", TARGET, folder / "mapped", folder / "ready"],
                              start_new_session=True, cwd="/", **NULL)
    try:
        while not (folder / "ready").exists():
            if target.poll() is not None:
                sys.exit("cold_dumps: the process to be dumped has ended")
        faults = {"cold": [], "warm": []}
        for _ in range(arguments.dumps):
            os.sync()
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            faults["cold"].append(dump(arguments.criu, target, folder))
            faults["warm"].append(dump(arguments.criu, target, folder))
        print(f"{os.cpu_count()} cores, kernel {os.uname().release}, {arguments.dumps} dumps each, major faults of CRIU")
        for name, counts in faults.items():
            print(f"{name}: {min(counts)} to {max(counts)}, median {statistics.median(counts):g}: {sorted(counts)}")
        if max(faults["warm"]) >= min(faults["cold"]):
            print("they overlap: no threshold tells them apart")
    finally:
        target.kill()
        target.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
