"""More programs that have what CRIU cannot dump, besides those of tests/e2e/stubborn.py: target.py WHAT [FOLDER].
Prints `ready` (with a pid if a child has it) when it is set up, or `cannot: WHY` if this machine does not permit it.
Then it sleeps until it is killed."""

import ctypes
import mmap
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, NEW_NAMES, NEW_NET, NEW_TIME = 0x20000, 0x4000000, 0x40000000, 0x80
OWN_FILES, OWN_FOLDERS = 0x400, 0x200
RECURSIVE, PRIVATE, SLAVE, SHARED, DETACH = 1 << 14, 1 << 18, 1 << 19, 1 << 20, 2


def call(name, *arguments):
    if getattr(LIBC, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def path(name):
    return os.path.join(sys.argv[2], name)


def give_away(fd):
    """Gives the file to a process outside of the tree. Only that process has it when this one closes it."""
    subprocess.Popen(["setsid", "--fork", "sleep", "60"], stdin=fd, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL,
                     env={"PATH": os.environ["PATH"]}).wait()


def plain(threads=100):
    """Opens files, pipes, listening and connected sockets and watches, and starts threads, as many programs do."""
    held = [open("/dev/null"), open("/dev/urandom", "rb"), open("/etc/passwd"), os.pipe(), socket.socketpair(),
            socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0), mmap.mmap(-1, 1 << 20), os.memfd_create("memory"),
            select.epoll(), os.eventfd(0), LIBC.inotify_init()]
    held[-3].register(held[4][0], select.EPOLLIN)
    small = open(path("small"), "wb", buffering=0)
    small.write(bytes(4096))
    os.unlink(path("small"))
    os.ftruncate(held[-4], 8 << 20)
    os.write(held[-4], bytes(4 << 20))  # a memfd must not count as a deleted file, however large it is
    for _ in range(threads):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return held, small


def ordinary():
    return plain(10)


def traced_child():
    ends = os.pipe()
    if os.fork() == 0:
        LIBC.ptrace(0, 0, None, None)  # PTRACE_TRACEME
        os.write(ends[1], b"x")
        time.sleep(600)
    os.read(ends[0], 1)


def main_thread_ends():
    def go_on():
        while open("/proc/self/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
            time.sleep(0.01)
        print("ready", flush=True)
        while True:
            time.sleep(1)
    threading.Thread(target=go_on).start()
    LIBC.syscall(60, 0)  # exit(2), which ends only this thread


def orphan():
    """Leaves a process in this session that is no descendant any more."""
    if (pid := os.fork()) == 0:
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.waitpid(pid, 0)


def lost_session():
    """A child takes an orphan over whose session has no leader any more."""
    ends = os.pipe()
    if os.fork() == 0:
        call("prctl", 36, 1)  # PR_SET_CHILD_SUBREAPER
        if (leader := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                while os.getppid() == os.getsid(0):
                    time.sleep(0.01)
                call("prctl", 1, 9)  # PR_SET_PDEATHSIG: it has a session of its own, so it would live on
                os.write(ends[1], b"x")
                time.sleep(600)
            os._exit(0)
        os.waitpid(leader, 0)
        time.sleep(600)
    os.read(ends[0], 1)


def message_queue():
    name = b"/kymo-test-%d" % os.getpid()
    queue = LIBC.mq_open(name, os.O_RDWR | os.O_CREAT, 0o600, None)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    LIBC.mq_unlink(name)


def secret_memory():
    call("syscall", 447, 0)  # memfd_secret(2)


def secret_mapping():
    fd = LIBC.syscall(447, 0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "memfd_secret")
    os.ftruncate(fd, 4096)
    held = mmap.mmap(fd, 4096)
    os.close(fd)
    return held


def shared_memory():
    """Has memory that is in no page table, as a restore leaves it: two objects of 16 MiB."""
    held = [mmap.mmap(-1, 16 << 20) for _ in range(2)]
    for one in held:
        while one.tell() < len(one):
            one.write(bytes(1 << 16))
        one.madvise(mmap.MADV_DONTNEED)
    return held


def huge_pages():
    if int(open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").read()):
        raise OSError(0, "there are free huge pages")
    fd = os.memfd_create("huge", 4)  # MFD_HUGETLB
    os.ftruncate(fd, 2 << 20)
    return fd


def few_files():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))


def other_user():
    if LIBC.prctl(23, 24):  # PR_CAPBSET_READ, CAP_SYS_RESOURCE
        raise OSError(0, "has CAP_SYS_RESOURCE")
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


def unshared_thread(what):
    ready = threading.Event()

    def unshare():
        call("unshare", what)
        ready.set()
        time.sleep(600)
    threading.Thread(target=unshare, daemon=True).start()
    ready.wait()


def thread_names():
    unshared_thread(NEW_NAMES)


def thread_files():
    unshared_thread(OWN_FILES)


def thread_folders():
    unshared_thread(OWN_FOLDERS)


def nested_names():
    if os.fork() == 0:
        call("unshare", NEW_NAMES)
        print("ready", flush=True)
        time.sleep(600)
    time.sleep(600)


def time_of_children():
    call("unshare", NEW_TIME)


def reopen():
    """Opens standard input and output again, in this mount namespace."""
    output = os.readlink("/proc/self/fd/1")
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for fd in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), fd)
    os.closerange(3, 64)


def own_mounts():
    call("unshare", NEW_MOUNTS)
    call("mount", None, b"/", None, RECURSIVE | PRIVATE, None)
    # Unmounts the file systems that this test does not need.
    points = [line.split()[4] for line in open("/proc/self/mountinfo")]
    for point in sorted(points, key=len, reverse=True):
        if point not in ("/", "/proc", "/dev"):
            LIBC.umount2(point.encode(), DETACH)
    reopen()


def inherited_files():
    os.dup2(0, 100)  # a file that was opened in the old mount namespace
    own_mounts()


def lost_mount():
    own_mounts()
    os.mkdir(path("lost"))
    call("mount", b"lost", path("lost").encode(), b"tmpfs", 0, None)
    file = open(path("lost/file"), "w")
    call("umount2", path("lost").encode(), DETACH)
    return file


def covered_mount():
    own_mounts()
    os.mkdir(path("covered"))
    call("mount", b"covered", path("covered").encode(), b"tmpfs", 0, None)
    file = open(path("covered/file"), "w")
    call("mount", b"cover", path("covered").encode(), b"tmpfs", 0, None)
    return file


def slave_mount():
    own_mounts()
    os.mkdir(path("shared"))
    call("mount", b"shared", path("shared").encode(), b"tmpfs", 0, None)
    call("mount", None, path("shared").encode(), None, SHARED, None)
    if os.fork() == 0:
        call("prctl", 1, 9)  # PR_SET_PDEATHSIG: it has a session of its own, so it would live on
        os.setsid()
        call("unshare", NEW_MOUNTS)
        reopen()
        call("mount", None, path("shared").encode(), None, SLAVE, None)
        print("ready", os.getpid(), flush=True)
        time.sleep(600)
    time.sleep(600)


def chrooted():
    own_mounts()
    os.chroot("/usr")


def place_in_file(function):
    """The file of a function in a library, and the offset of the function in that file."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    for line in open("/proc/self/maps"):
        span, _, offset, _, _, *name = line.split()
        begin, end = (int(text, 16) for text in span.split("-"))
        if begin <= address < end:
            return name[0], address - begin + int(offset, 16)
    raise OSError("the function is not mapped")


def probed():
    """A process outside of the tree has a uprobe on code of this process."""
    kind = int(open("/sys/bus/event_source/devices/uprobe/type").read())
    file, offset = place_in_file(LIBC.getppid)
    name = ctypes.create_string_buffer(file.encode())
    attributes = ctypes.create_string_buffer(struct.pack("<II48xQQ", kind, 128, ctypes.addressof(name), offset), 128)
    perf_event_open, close_on_exec = 298, 8
    probe = LIBC.syscall(perf_event_open, attributes, 0, -1, -1, close_on_exec)
    if probe < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    give_away(probe)
    os.close(probe)
    os.getppid()  # the kernel makes the mapping at the first hit


def netlink_unread():
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    link.send(b"\x20\x00\x00\x00\x12\x00\x01\x03" + bytes(24))  # RTM_GETLINK for all links
    return link


def epoll_closed():
    """Only a process outside of the tree still has the watched pipe open."""
    watch = select.epoll()
    ends = os.pipe()
    watch.register(ends[0], select.EPOLLIN)
    give_away(ends[0])
    os.close(ends[0])
    os.close(ends[1])
    return watch


def epoll_copied():
    watch = select.epoll()
    ends = os.pipe()
    copy = os.dup(ends[0])
    watch.register(ends[0], select.EPOLLIN)
    os.close(ends[0])
    return watch, ends[1], copy


def big_deleted_mapping():
    with open(path("library"), "wb") as file:
        file.write(bytes(3 << 20))
    with open(path("library"), "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    os.unlink(path("library"))
    return mapped


def file_named_deleted():
    return open(path("file (deleted)"), "w")


def kvm():
    return os.open("/dev/kvm", os.O_RDWR)


def own_net_unix_pair():
    call("unshare", NEW_NET)
    return socket.socketpair()


def forking_pairs():
    """Starts one child after the other. Has a connection to each, and a pidfd of it."""
    print("ready", flush=True)
    while True:
        ours, theirs = socket.socketpair()
        if (pid := os.fork()) == 0:
            ours.close()
            os._exit(len(theirs.recv(1)))
        theirs.close()
        watch = os.pidfd_open(pid)
        time.sleep(0.001)
        ours.close()
        os.waitpid(pid, 0)
        os.close(watch)


def many_files():
    return [os.dup(0) for _ in range(4200)]


def tcp_closing():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    client.shutdown(socket.SHUT_WR)
    return server, client, accepted


try:
    held = globals()[sys.argv[1].replace("-", "_")]()
    print("ready", flush=True)
except OSError as error:
    print(f"cannot: {error}", flush=True)
time.sleep(600)
