"""Programs that are difficult to checkpoint. Each prints a JSON line when it is ready, and runs until it is killed.
After a restore, it must do the same as before.

    subject.py listen             a TCP server that answers each line with the same line in capitals
    subject.py locks FILE         holds a lock of flock(2) on FILE, and one of fcntl(2) on FILE.posix
    subject.py ghost FILE SIZE    has the deleted FILE of SIZE bytes open, and counts while its content is right
    subject.py renamed FILE       the same with a FILE that has another name, FILE.other
    subject.py late FILE          a server like `listen`, which accepts no connection until FILE exists
    subject.py mount FOLDER IN    in a mount namespace of its own: FOLDER is mounted at IN, and the file IN/count grows.
                                  FOLDER "tmpfs" is a new tmpfs
    subject.py send SOCKET        sends a growing number to a unix datagram socket of another process
    subject.py log FILE           appends a growing number to FILE, which it keeps open
    subject.py share N            N processes share memory; each counts in a cell of its own
"""

import ctypes
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time

CELL = struct.Struct("<Q")


def ready(**facts):
    print(json.dumps({"pid": os.getpid(), **facts}), flush=True)


def listen():
    # A single process without threads serves all connections.
    import selectors
    server = socket.create_server(("127.0.0.1", 0))
    chosen = selectors.DefaultSelector()
    chosen.register(server, selectors.EVENT_READ)
    ready(port=server.getsockname()[1])
    while True:
        for key, _ in chosen.select():
            if key.fileobj is server:
                chosen.register(server.accept()[0], selectors.EVENT_READ)
                continue
            text = key.fileobj.recv(65536)
            if text:
                key.fileobj.sendall(text.upper())
            else:
                chosen.unregister(key.fileobj)
                key.fileobj.close()


def late(path):
    server = socket.create_server(("127.0.0.1", 0))
    ready(port=server.getsockname()[1])
    while not os.path.exists(path):
        time.sleep(0.02)
    while True:
        accepted = server.accept()[0]
        accepted.sendall(accepted.recv(65536).upper())
        accepted.close()


def hold_deleted(path, content):
    """Counts while the deleted file that had this path has the expected content, and while it grows by what is written
    to it."""
    with open(path, "w+b", buffering=0) as file:
        fd = file.fileno()
        file.write(content)
        os.unlink(path)
        ready()
        number = 0
        while os.pread(fd, len(content), 0) == content and os.fstat(fd).st_size == len(content) + number:
            os.pwrite(fd, b"+", len(content) + number)
            number += 1
            print(number, flush=True)
            time.sleep(0.02)
        sys.exit("the deleted file has another content")


def ghost(path, size):
    hold_deleted(path, os.urandom(1 << 16) * (int(size) >> 16))


def renamed(path):
    open(path, "w").close()
    os.link(path, path + ".other")
    hold_deleted(path, b"the content")


def locks(path):
    whole = open(path, "w")
    fcntl.flock(whole, fcntl.LOCK_EX)
    record = open(path + ".posix", "w")
    fcntl.lockf(record, fcntl.LOCK_EX)
    ready()
    while True:
        signal.pause()


def mount(folder, inside):
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name, *arguments):
        if getattr(libc, name)(*arguments) != 0:
            raise OSError(ctypes.get_errno(), name)

    new_namespace, recursive, private, bind, detach = 0x20000, 1 << 14, 1 << 18, 1 << 12, 2
    call("unshare", new_namespace)
    call("mount", None, b"/", None, recursive | private, None)
    # Unmounts the file systems that this test does not need, because CRIU would have to dump them, too.
    points = [line.split()[4] for line in open("/proc/self/mountinfo")]
    for point in sorted(points, key=len, reverse=True):
        if point not in ("/", "/proc"):
            libc.umount2(point.encode(), detach)
    if folder == "tmpfs":
        call("mount", b"tmpfs", inside.encode(), b"tmpfs", 0, None)
    else:
        call("mount", folder.encode(), inside.encode(), None, bind, None)
    # No file of the namespace before may stay open. So the program opens its output again and starts itself again.
    output = os.readlink("/proc/self/fd/1")
    os.chdir("/")
    os.close(0)
    for fd in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), fd)
    os.closerange(3, 64)
    os.execv(sys.executable, [sys.executable, __file__, "count", inside])


def count(inside):
    # The number is the size of the file, so that no file is open during a dump: CRIU would look for it in the folder
    # of the restore.
    path = os.path.join(inside, "count")
    ready()
    number = 0
    while True:
        number += 1
        if not os.path.exists(path):
            os.mknod(path)
        os.truncate(path, number)
        time.sleep(0.02)


def send(path):
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    out.connect(path)
    ready()
    number = 0
    while True:
        number += 1
        try:
            out.send(str(number).encode(), socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass  # nobody reads at the moment
        time.sleep(0.02)


def log(path):
    with open(path, "a", buffering=1) as file:
        ready()
        number = 0
        while True:
            number += 1
            print(number, file=file)
            time.sleep(0.02)


def share(count):
    cells = mmap.mmap(-1, CELL.size * (count + 1))
    children = []
    for cell in range(count):
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no process outlives the first one
            while True:
                number = CELL.unpack_from(cells, cell * CELL.size)[0]
                CELL.pack_into(cells, cell * CELL.size, number + 1)
                time.sleep(0.02)
        children.append(child)
    ready(children=children)
    while True:
        # One line has the numbers of all processes, so it shows that they share the memory.
        numbers = [CELL.unpack_from(cells, cell * CELL.size)[0] for cell in range(count)]
        print(json.dumps(numbers), flush=True)
        time.sleep(0.05)


VERBS = {"listen": listen, "locks": locks, "mount": mount, "count": count, "send": send, "log": log,
         "share": lambda n: share(int(n)), "ghost": ghost, "renamed": renamed, "late": late}
VERBS[sys.argv[1]](*sys.argv[2:])
