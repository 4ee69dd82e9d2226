#!/usr/bin/python3
"""Provokes each failure that can be provoked on the test machine with CRIU alone. Before the dump, `kymo check` must
foresee it, if it can. After the failure, `kymo explain` must name it from the log. After a failed dump, the process
must still run.

Prints a table: the failure, whether it was foreseen, how it was explained. The arguments are failures, or `dumps` or
`restores`. KYMO names the program, KYMO_TEST_CRIU and KYMO_TEST_CRIU_FALLBACK the two CRIUs."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from provoking import CRIU, PYTHON, run, until

ROOT = pathlib.Path(__file__).resolve().parents[3]
KYMO = os.environ["KYMO"]
OLD_CRIU = os.environ.get("KYMO_TEST_CRIU_FALLBACK", "")
LIBC = ctypes.CDLL(None, use_errno=True)
SUBREAPER = 36
NEW_MOUNTS = 0x20000
NOTHING = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
LOOP = "i=0; while :; do i=$((i+1)); sleep 0.05; done"


class NotHere(Exception):
    """The failure cannot be provoked on this machine."""


def reap():
    """Reaps all children that have ended. A dumped or restored process is a child of this program, and keeps its pid until
    then."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def leave_others_mounts():
    """Enters a mount namespace in which nothing is mounted that a container or another test may have mounted: CRIU would find
    it first in a process that has a mount namespace of its own."""
    if LIBC.unshare(NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    places = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for place in reversed(places):
        if place.startswith(("/tmp/", "/run/", "/var/lib/")) and not f"{ROOT}/".startswith(f"{place}/"):
            subprocess.run(["umount", "-l", place], check=True)


class Provoker:
    """One provoked failure: its process, its folders, and CRIU's messages."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.images = self.folder / "images"
        self.images.mkdir()
        self.log = self.images / "criu.log"
        self.pids, self.mounts, self.cleanups = [], [], []
        self.found = None  # what kymo check found: {failure: grade}

    def path(self, name):
        return self.folder / name

    # --- processes ---

    def start(self, *words, ready=True, **more):
        """Starts a process in a session of its own, and returns its pid."""
        if ready:
            out = self.path("out")
            with out.open("w") as file:
                child = subprocess.Popen([str(word) for word in words], start_new_session=True,
                                         **{**NOTHING, "stdout": file, **more})
            until(lambda: "\n" in out.read_text() or child.poll() is not None, f"{words} is ready")
            if not out.read_text().startswith("ready"):
                raise NotHere(out.read_text().strip())
            self.told = out.read_text().split()[1:]
        else:
            child = subprocess.Popen([str(word) for word in words], start_new_session=True, **{**NOTHING, **more})
        self.pids.append(child.pid)
        return child.pid

    def python(self, code, **more):
        return self.start(PYTHON, "-uc", f"{code}\nprint('ready')\nimport time\nwhile True: time.sleep(0.05)", **more)

    def stubborn(self, reason):
        return self.start(PYTHON, ROOT / "tests/e2e/stubborn.py", reason, self.folder)

    def target(self, what):
        pid = self.start(PYTHON, ROOT / "tests/checkpoint/preflight/target.py", what, self.folder)
        return int(self.told[0]) if self.told and self.told[0].isdigit() else pid

    def mount_tmpfs(self, size):
        where = self.path("disk")
        where.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", where], check=True)
        self.mounts.append(where)
        return where

    # --- kymo and CRIU ---

    def look(self, *words):
        seen = run(KYMO, "--socket", self.path("none"), "check", *words, "--json")
        report = json.loads(seen.stdout)
        self.found = {finding["failure"]: finding["grade"] for finding in report["findings"]}

    def criu(self, *words, before=(), program=CRIU, log=True, **more):
        """Runs CRIU. If it writes no log, the result has its output."""
        logging = ["-o", self.log, "-v4"] if log else ["-v4"]
        done = run(*before, program, *words, *logging, **more)
        reap()
        if done.returncode == 0:
            raise NotHere("CRIU did not fail")
        return done

    def dump(self, pid, *flags, look=True, alive=True, **more):
        if look:
            self.look("process", pid, *[flag for flag in flags if flag in KNOWN_FLAGS])
        self.criu("dump", "-t", pid, "-D", self.images, *flags, **more)
        if alive and not pathlib.Path(f"/proc/{pid}").exists():
            raise AssertionError("the process does not run on")

    def checkpoint(self, pid, *flags):
        """Makes a dump that succeeds."""
        done = run(CRIU, "dump", "-t", pid, "-D", self.images, "-o", "dump.log", "-v3", "--file-locks", *flags)
        if done.returncode != 0:
            raise AssertionError(f"the dump failed: {(self.images / 'dump.log').read_text()[-2000:]}")
        until(lambda: reap() or "--leave-running" in flags or not pathlib.Path(f"/proc/{pid}").exists(), "the dumped process ends")

    def restore(self, *flags, look=True, **more):
        if look:
            self.look(self.images, "--criu", CRIU)
        self.criu("restore", "-D", self.images, "-d", "--file-locks", *flags, **more)

    def explained(self):
        """The id of the failure, from the log or, without a log, from CRIU's output."""
        told = run(KYMO, "explain", self.log, "--json")
        return json.loads(told.stdout)["id"] if told.returncode == 0 else f"kymo explain failed: {told.stderr}"

    def keep(self, done):
        """Uses CRIU's output as its log."""
        self.log.write_text(done.stdout + done.stderr)

    def end(self):
        for pid in self.pids:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for cleanup in self.cleanups:
            cleanup()
        for where in self.mounts:
            subprocess.run(["umount", "-l", where], check=False)
        time.sleep(0.02)
        reap()


KNOWN_FLAGS = {"--tcp-established", "--ext-unix-sk", "--shell-job", "--link-remap"}


# --- dumps ---------------------------------------------------------------------------------------

def held(reason, *flags):
    return lambda p: p.dump(p.stubborn(reason), *flags)


def of_target(what, *flags):
    return lambda p: p.dump(p.target(what), *flags)


def counting(p):
    return p.start("/bin/sh", "-c", f"echo ready; {LOOP}")


def cannot_attach(p):
    pid = counting(p)
    p.start(PYTHON, "-uc", f"import ctypes, time\nassert ctypes.CDLL(None).ptrace(0x4206, {pid}, None, None) == 0\n"
            "print('ready')\ntime.sleep(600)")
    p.dump(pid)


def criu_died(p):
    """The kernel ends CRIU with a signal when it has written this much of the memory."""
    p.dump(p.python("held = bytes(16 << 20).replace(bytes(1), b'x')"), before=["prlimit", "--fsize=8000000"])


def criu_in_tree(p):
    p.criu(program="/bin/sh", before=["/bin/sh", "-c", f"{CRIU} dump -t $$ -D {p.images} -o {p.log} -v4; exit 1"], log=False)


def file_locks(p):
    p.dump(p.python(f"import fcntl\nf = open('{p.path('l')}', 'w')\nfcntl.flock(f, 2)"))


def freezer_missing(p):
    p.dump(counting(p), "--freeze-cgroup", p.path("none"))


def map_files(p):
    p.dump(counting(p), before=["prlimit", "--nofile=12:12"])


def mnt_chroot(p):
    root = p.path("root")
    root.mkdir()
    shutil.copy("/bin/busybox", root / "busybox")
    loop = LOOP.replace("sleep", "/busybox sleep")
    p.dump(p.start("unshare", "-m", "--propagation", "private", "chroot", root, "/busybox", "sh", "-c", f"echo ready; {loop}"))


def with_own_mounts(p, source="", kind="", flags=0):
    """A process in a mount namespace of its own, in which only / and /proc are mounted, and, with a source, that. Also
    returns the path at which that is mounted."""
    where = p.path("mounted")
    where.mkdir()
    mount = f"assert libc.mount(b'{source}', b'{where}', b'{kind}', {flags}, None) == 0\n" if source else ""
    return p.start("unshare", "-m", "--propagation", "private", PYTHON, "-uc",
                   "import ctypes, os, time\nlibc = ctypes.CDLL(None)\n" + mount +
                   "points = [line.split()[4] for line in open('/proc/self/mountinfo')]\n"
                   "for point in sorted(points, key=len, reverse=True):\n"
                   f"    if point not in ('/', '/proc', '{where}'): libc.umount2(point.encode(), 2)\n"
                   "os.chdir('/')\nos.write(1, b'ready\\n')\n"
                   "for fd in range(3): os.close(fd)\n"
                   "while True: time.sleep(0.05)"), where


def with_part_mounted(p):
    """The same, with a part of a file system, but not the root of that file system."""
    bind = 4096
    part = p.mount_tmpfs("1m") / "part"
    part.mkdir()
    return with_own_mounts(p, part, flags=bind)


def fs_unsupported(p):
    p.dump(with_own_mounts(p, "none", "ramfs")[0])


def mnt_root(p):
    p.dump(with_part_mounted(p)[0])


def no_space(p):
    disk = p.mount_tmpfs("64k")
    p.images = disk
    p.dump(counting(p), look=False)


def overmounted(p):
    where = p.mount_tmpfs("1m")
    pid = p.python(f"f = open('{where}/file', 'w')")
    subprocess.run(["mount", "-t", "tmpfs", "none", where], check=True)
    p.mounts.append(where)
    p.dump(pid)


def pidns_init(p):
    first = p.start("unshare", "-p", "-f", "--mount-proc", "--kill-child", "/bin/sh", "-c", f"echo ready; {LOOP}")
    init = int(run("pgrep", "-P", first).stdout.split()[0])
    entered = p.start("nsenter", "-t", init, "-p", "setsid", "/bin/sh", "-c", f"echo ready; {LOOP}")
    p.dump(int(run("pgrep", "-P", entered).stdout.split()[0]))


def session_outside(p):
    first = p.start("unshare", "-p", "-f", "--mount-proc", "--kill-child", "/bin/sh", "-c", f"echo ready; {LOOP}")
    p.dump(int(run("pgrep", "-P", first).stdout.split()[0]))


def sockopt_616(p):
    if not OLD_CRIU or tuple(map(int, os.uname().release.split(".")[:2])) < (6, 16):
        raise NotHere("needs CRIU before 4.2 and Linux 6.16")
    # As kymod tells an old CRIU where hardware breakpoints stop nothing: it would wait for one for ever.
    p.dump(p.python("import socket\ns = socket.create_server(('127.0.0.1', 0))"), program=OLD_CRIU,
           env={**os.environ, "CRIU_FAULT": "130"})


def tool_missing(p):
    pid = p.start("unshare", "-n", PYTHON, "-uc",
                  "import socket, subprocess\nprint('ready')\nimport time\nwhile True: time.sleep(0.05)")
    p.dump(pid, env={**os.environ, "PATH": "/nonexistent"})


def track_mem(p):
    pid = counting(p)
    p.keep(p.criu("pre-dump", "--track-mem", "-t", pid, "-D", p.images, log=False))


def on_terminal(p):
    """A process on a terminal whose other end is open in its parent."""
    p.start(PYTHON, "-uc", "import os, pty, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\npid, master = pty.fork()\n"
            f"if pid == 0: os.execv('/bin/sh', ['sh', '-c', 'echo here; {LOOP}'])\n"
            "os.read(master, 4)\nprint('ready', pid)\ntime.sleep(600)")
    p.pids.append(int(p.told[0]))
    return p.pids[-1]


def tty_external(p):
    p.dump(on_terminal(p))


def tty_session(p):
    p.start("/bin/sh", "-c", f"(trap '' HUP; {LOOP}) & echo ready $!; wait")
    p.dump(int(p.told[0]))


def action_script(p):
    script = p.path("script")
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    p.dump(counting(p), "--action-script", script)


# --- restores ------------------------------------------------------------------------------------

def caps_restore(p):
    p.checkpoint(counting(p))
    p.restore(before=["setpriv", "--bounding-set", "-net_raw"])


def cgroup_restore(p):
    group = pathlib.Path(f"/sys/fs/cgroup/cpu/kymo-provoked-{os.getpid()}")
    if not group.parent.exists():
        raise NotHere("no cgroup of version 1")
    group.mkdir()
    p.cleanups.append(lambda: group.exists() and group.rmdir())
    pid = counting(p)
    (group / "cgroup.procs").write_text(str(pid))
    p.checkpoint(pid, "--manage-cgroups=full")
    until(lambda: not (group / "cgroup.procs").read_text(), "the cgroup is empty")
    group.rmdir()
    p.restore("--manage-cgroups=none")


def without_image(pattern):
    def provoke(p):
        p.checkpoint(counting(p))
        for image in p.images.glob(pattern):
            image.unlink()
        p.restore()
    return provoke


def file_buildid(p):
    program = p.path("program")
    shutil.copy("/bin/sleep", program)
    p.checkpoint(p.start(program, "600", ready=False))
    notes = run("readelf", "-n", program).stdout
    build_id = bytes.fromhex(next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line))
    content = program.read_bytes()
    program.write_bytes(content.replace(build_id, bytes([build_id[0] ^ 1]) + build_id[1:]))
    p.restore()


def with_file(change):
    def provoke(p):
        file = p.path("file")
        file.write_text("content")
        p.checkpoint(p.python(f"f = open('{file}', 'r+')"))
        change(file)
        p.restore()
    return provoke


def file_forbidden(p):
    file = p.path("file")
    file.write_text("content")
    p.checkpoint(p.python(f"f = open('{file}', 'r+')"))
    if run("chattr", "+i", file).returncode != 0:
        raise NotHere("this file system has no immutable files")
    try:
        p.restore()
    finally:
        run("chattr", "-i", file)


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def end_hanging(p, hangs):
    """Restores, and ends CRIU and the restored processes as soon as CRIU hangs. `hangs` gets the pids and says whether
    it hangs."""
    criu = subprocess.Popen([CRIU, "restore", "-D", p.images, "-d", "--file-locks", "-o", p.log, "-v4"], start_new_session=True, **NOTHING)
    tree = lambda: [criu.pid, *map(int, run("pgrep", "-P", criu.pid).stdout.split())]  # noqa: E731
    until(lambda: hangs(tree()) or criu.poll() is not None, "CRIU hangs")
    for pid in tree():
        os.kill(pid, signal.SIGKILL)
    criu.wait()


def lock_wait(p):
    file = p.path("file")
    p.checkpoint(p.python(f"import fcntl\nf = open('{file}', 'w')\nfcntl.flock(f, 2)"))
    p.python(f"import fcntl\nf = open('{file}', 'r')\nfcntl.flock(f, 2)")
    p.look(p.images, "--criu", CRIU)
    end_hanging(p, lambda members: any("lock" in read(f"/proc/{pid}/wchan") for pid in members))


def mnt_restore(p):
    pid, bound = with_part_mounted(p)
    p.checkpoint(pid, "--external", f"mnt[{bound}]:data")
    p.restore()


def pages_cut(p):
    p.checkpoint(counting(p))
    pages = next(iter(p.images.glob("pages-*.img")))
    os.truncate(pages, 8192)
    p.look(p.images, "--criu", CRIU)
    end_hanging(p, lambda _: p.log.exists() and p.log.stat().st_size > 1 << 20)


def pid_taken(p):
    p.checkpoint(counting(p), "--leave-running")
    p.restore()


def root_missing(p):
    """A service with PrivateTmp=yes has such a mount namespace."""
    p.checkpoint(with_own_mounts(p)[0])
    p.restore()


def remap_gone(p):
    pid = p.python(f"import os\nf = open('{p.path('first')}', 'w')\nos.link('{p.path('first')}', '{p.path('second')}')\n"
                   f"os.unlink('{p.path('first')}')")
    p.checkpoint(pid, "--link-remap")
    for link in p.folder.glob("link_remap.*"):
        link.unlink()
    p.restore()


def restore_nofile(p):
    p.checkpoint(counting(p))
    p.restore(before=["prlimit", "--nofile=20:20"])


def session_lost(p):
    pid = p.target("lost-session")
    p.look("process", pid)
    p.checkpoint(pid)
    p.restore(look=False)


def tty_restore(p):
    p.checkpoint(on_terminal(p), "--shell-job")
    p.restore("--shell-job")


# --- starts --------------------------------------------------------------------------------------

def images_dir(p):
    p.keep(p.criu("dump", "-t", counting(p), "-D", p.path("missing"), log=False))


def kerndat(p):
    p.keep(p.criu("check", log=False, before=["unshare", "-n"]))


def need_caps(p):
    p.folder.chmod(0o755)
    p.keep(p.criu("dump", "-t", counting(p), "-D", p.images, log=False, before=["setpriv", "--reuid=65534", "--clear-groups"]))


# The failure, the function that provokes it, and what kymo check says before: refuses, warns, another (it refuses because of
# another failure), missed (kymo check could see it, but does not), unseen (kymo check cannot see it, because it is caused by
# options or by the time).
FAILURES = [
    ("bpf", held("bpf"), "warns"), ("cannot-attach", cannot_attach, "refuses"), ("criu-died", criu_died, "unseen"),
    ("criu-in-tree", criu_in_tree, "unseen"), ("fd-unsupported", held("fd-unsupported"), "refuses"),
    ("file-locks", file_locks, "unseen"), ("freeze-timeout", of_target("traced-child", "--timeout", "3"), "refuses"),
    ("freezer-missing", freezer_missing, "unseen"), ("fs-unsupported", fs_unsupported, "refuses"),
    ("fsnotify", held("fsnotify"), "warns"), ("ghost-big", held("ghost-big"), "refuses"),
    ("huge-pages", of_target("huge-pages"), "warns"),
    ("io-uring-fd", held("io-uring-fd"), "refuses"), ("limits-unseen", of_target("other-user"), "refuses"), ("link-remap", held("link-remap"), "refuses"), ("map-files", map_files, "unseen"),
    ("mapping-unsupported", held("mapping-unsupported"), "refuses"), ("mnt-chroot", mnt_chroot, "warns"),
    ("mnt-root", mnt_root, "warns"), ("mnt-sharing", of_target("slave-mount"), "warns"),
    ("mount-lookup", of_target("lost-mount"), "refuses"), ("nested-ns", of_target("nested-names"), "refuses"),
    ("no-space", no_space, "unseen"), ("nofile-low", of_target("few-files"), "refuses"), ("overmounted", overmounted, "refuses"), ("pidfd", held("pidfd"), "refuses"),
    ("pidns-init", pidns_init, "refuses"), ("pipe-packet", held("pipe-packet"), "warns"), ("secret-memory", of_target("secret-memory"), "refuses"), ("session-outside", session_outside, "refuses"),
    ("socket-proto", held("socket-proto"), "refuses"), ("socket-unknown", held("socket-unknown"), "refuses"),
    ("sockopt-616", sockopt_616, "unseen"), ("sysv-shm", held("sysv-shm"), "refuses"),
    ("tcp-in-flight", held("tcp-in-flight", "--tcp-established"), "warns"), ("tool-missing", tool_missing, "unseen"),
    ("track-mem", track_mem, "unseen"), ("tty-external", tty_external, "refuses"), ("tty-session", tty_session, "refuses"),
    ("tun", held("tun"), "refuses"), ("udp-corked", held("udp-corked"), "warns"), ("unix-external", held("unix-external"), "refuses"),
    ("unix-half", held("unix-half", "--ext-unix-sk"), "refuses"), ("unix-in-flight", held("unix-in-flight"), "warns"),
    ("action-script", action_script, "unseen"),
    ("caps-restore", caps_restore, "unseen"), ("cgroup-restore", cgroup_restore, "unseen"), ("crash-signal", without_image("mm-*.img"), "another"),
    ("file-buildid", file_buildid, "refuses"), ("file-forbidden", file_forbidden, "unseen"), ("file-missing", with_file(lambda file: file.unlink()), "refuses"),
    ("file-mode", with_file(lambda file: file.chmod(0o600)), "refuses"),
    ("file-size", with_file(lambda file: file.write_text("longer content")), "refuses"),
    ("images-broken", without_image("inventory.img"), "refuses"), ("lock-wait", lock_wait, "refuses"), ("mnt-restore", mnt_restore, "unseen"),
    ("pages-cut", pages_cut, "refuses"), ("pages-missing", without_image("pages-*.img"), "refuses"), ("pid-taken", pid_taken, "refuses"),
    ("remap-gone", remap_gone, "another"), ("root-missing", root_missing, "unseen"),
    ("restore-nofile", restore_nofile, "unseen"), ("session-lost", session_lost, "refuses"), ("tty-restore", tty_restore, "unseen"),
    ("images-dir", images_dir, "unseen"), ("kerndat", kerndat, "unseen"), ("need-caps", need_caps, "unseen"),
]
# CRIU prints nothing about these failures, so the log alone gives a more general one.
SILENT = {"lock-wait": "criu-died", "pages-cut": "criu-died"}


def foreseen(failure, found):
    """What kymo check said about this failure."""
    if found is None:
        return "unseen"
    if failure in found:
        return found[failure]
    return "another" if "refuses" in found.values() else "missed"


class ProvokedTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or run(CRIU, "check").returncode != 0:
            self.skipTest("needs root and a CRIU that works")
        LIBC.prctl(SUBREAPER, 1)
        leave_others_mounts()

    def test_each_failure_is_explained_and_most_are_foreseen(self):
        rows, not_here = [], []
        for failure, provoke, expected in FAILURES:
            if failure not in ONLY:
                continue
            with self.subTest(failure), tempfile.TemporaryDirectory(prefix="kymo-provoked-") as folder:
                provoker = Provoker(folder)
                try:
                    provoke(provoker)
                    said, seen = provoker.explained(), foreseen(failure, provoker.found)
                    if (seen, expected) == ("missed", "unseen"):
                        seen = "unseen"
                    rows.append((failure, seen, said))
                    self.assertEqual(said, SILENT.get(failure, failure), provoker.log.read_text(errors="replace")[-3000:])
                    self.assertEqual(seen, expected, provoker.found)
                except NotHere as why:
                    not_here.append(f"{failure}: {why}")
                finally:
                    provoker.end()
        for row in rows:
            print("%-20s %-8s %s" % row)
        for line in not_here:
            print("not provoked here:", line)
        seen = [seen for _, seen, _ in rows]
        print(f"{len(rows)} provoked: {len(rows) - seen.count('missed') - seen.count('unseen')} foreseen, "
              f"{seen.count('missed')} missed, {seen.count('unseen')} that cannot be seen before")
        self.assertGreaterEqual(10 * len(rows), 8 * len(ONLY), not_here)


ALL = [failure for failure, _, _ in FAILURES]
FIRST_RESTORE = ALL.index("caps-restore")
GROUPS = {"dumps": ALL[:FIRST_RESTORE], "restores": ALL[FIRST_RESTORE:]}
ONLY = [name for word in sys.argv[1:] or GROUPS for name in GROUPS.get(word, [word])]

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
