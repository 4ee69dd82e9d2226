"""Compares what `kymo stats --json` says about a checkpoint with CRIU's own decoder, crit's library pycriu.

    compare.py PYCRIU IMAGES WORK < STATS.json

Prints what it compared. Exits with 1 and a line for each difference, or with 77 if pycriu cannot be used.
"""

import glob
import json
import os
import re
import sys

PAGE = 4096
IN_PARENT, LAZY, PRESENT = 1, 2, 4
IN_MICROSECONDS = ("freezing_time", "frozen_time", "memdump_time", "memwrite_time", "irmap_resolve",
                   "forking_time", "restore_time")


def load(path):
    with open(path, "rb") as file:
        return pycriu.images.load(file)["entries"]


def statistics(path, which):
    if not os.path.exists(path):
        return None
    return {name + "_us" if name in IN_MICROSECONDS else name: value
            for name, value in load(path)[0][which].items()}


def of_process(images, pid):
    """A process as kymo shows it: its command, its pages, and the pages of each mapping that has some."""
    runs = load(f"{images}/pagemap-{pid}.img")[1:]
    mappings = []
    for vma in load(f"{images}/mm-{pid}.img")[0]["vmas"]:
        pages = lazy = 0
        for run in runs:
            begin = max(run["vaddr"], vma["start"])
            end = min(run["vaddr"] + run["nr_pages"] * PAGE, vma["end"])
            if begin < end and run["flags"] & PRESENT:
                pages += (end - begin) // PAGE
                lazy += (end - begin) // PAGE if run["flags"] & LAZY else 0
        if pages:
            mappings.append([hex(vma["start"]), hex(vma["end"]), pages, lazy])
    present = sum(run["nr_pages"] for run in runs if run["flags"] & PRESENT)
    return {"command": load(f"{images}/core-{pid}.img")[0]["tc"]["comm"], "pages": present,
            "mappings": sorted(mappings)}


def main():
    images, work = sys.argv[2:4]
    ours = json.load(sys.stdin)
    pids = sorted(int(match[1]) for match in
                  (re.fullmatch(r".*/pagemap-(\d+)\.img", path) for path in glob.glob(images + "/*"))
                  if match)
    theirs = {"dump": statistics(work + "/stats-dump", "dump"),
              "restore": statistics(work + "/stats-restore", "restore"),
              "processes": {pid: of_process(images, pid) for pid in pids}}
    seen = {"dump": ours["dump"], "restore": ours["restore"],
            "processes": {process["pid"]: {
                "command": process["command"], "pages": process["pages"],
                "mappings": sorted([mapping["start"], mapping["end"], mapping["pages"],
                                    mapping["pages_lazy"]] for mapping in process["mappings"])}
                for process in ours["processes"]}}
    differences = [f"{part}: crit says {theirs[part]}, kymo {seen[part]}"
                   for part in theirs if theirs[part] != seen[part]]
    print("\n".join(differences) or
          f"{len(pids)} processes, {sum(len(p['mappings']) for p in theirs['processes'].values())} mappings, "
          f"{sum(p['pages'] for p in theirs['processes'].values())} pages, statistics of "
          + " and ".join(which for which in ("dump", "restore") if theirs[which]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    try:
        import pycriu
    except ImportError as error:
        print(f"no pycriu: {error}")
        sys.exit(77)
    sys.exit(main())
