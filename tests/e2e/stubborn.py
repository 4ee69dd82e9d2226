"""Programs that CRIU cannot dump, each for a different reason: stubborn.py REASON [FOLDER]. Prints `ready` when it has
what CRIU cannot dump, or `cannot: WHY` if this kernel does not permit it. Then it counts until it is killed."""

import ctypes
import mmap
import os
import select
import socket
import subprocess
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
BPF, IO_URING_SETUP, PIDFD_OPEN, USERFAULTFD = 321, 425, 434, 323


def system_call(number, *arguments):
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result


def tcp_established():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    return server, client, server.accept()


def tcp_in_flight():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    select.select([server], [], [])  # only then the server also has the connection
    return server, client


def socket_proto():
    mptcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    mptcp.bind(("127.0.0.1", 0))
    mptcp.listen()
    return mptcp


def udp_corked():
    corked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    corked.connect(("127.0.0.1", 9))
    corked.setsockopt(socket.IPPROTO_UDP, 1, 1)
    corked.send(b"x")
    return corked


def socket_unknown():
    return socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)


def outside_peer(kind):
    """A pair of sockets. A process outside the dumped tree has the other end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    subprocess.Popen(["setsid", "--fork", "sleep", "60"], stdin=theirs, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]}).wait()
    theirs.close()
    return ours


def unix_external():
    return outside_peer(socket.SOCK_DGRAM)


def unix_half():
    return outside_peer(socket.SOCK_STREAM)


def unix_in_flight():
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(sys.argv[2], "in-flight"))
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(server.getsockname())
    client.send(b"x")
    return server, client


def fd_unsupported():
    return system_call(USERFAULTFD, 1)


def io_uring_fd():
    return system_call(IO_URING_SETUP, 8, ctypes.create_string_buffer(120))


def mapping_unsupported():
    return mmap.mmap(io_uring_fd(), 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)


def bpf():
    array, four_bytes = 2, 4
    attributes = (ctypes.c_uint32 * 18)(array, four_bytes, four_bytes, 1)
    return system_call(BPF, 0, attributes, ctypes.sizeof(attributes))


def pidfd():
    return system_call(PIDFD_OPEN, 1, 0)


def pipe_packet():
    ends = os.pipe2(os.O_DIRECT)
    os.write(ends[1], b"x")
    return ends


def ghost_big():
    path = os.path.join(sys.argv[2], "ghost")
    file = open(path, "wb", buffering=0)
    file.write(bytes(200 << 20))
    os.unlink(path)
    return file


def link_remap():
    first, second = (os.path.join(sys.argv[2], name) for name in ("first", "second"))
    file = open(first, "w")
    os.link(first, second)
    os.unlink(first)
    return file


def fsnotify():
    watch = LIBC.inotify_init()
    LIBC.inotify_add_watch(watch, b"/sys/kernel", 2)
    return watch


def tun():
    return os.open("/dev/net/tun", os.O_RDWR)


def sysv_shm():
    LIBC.shmat.restype = ctypes.c_void_p
    memory = LIBC.shmget(0, 4096, 0o1600)
    LIBC.shmat(memory, None, 0)
    return LIBC.shmctl(memory, 0, None)  # the kernel removes it when no process uses it


try:
    held = globals()[sys.argv[1].replace("-", "_")]()
    print("ready", flush=True)
except OSError as error:
    print(f"cannot: {error}", flush=True)
count = 0
while True:
    count += 1
    print(count, flush=True)
    time.sleep(0.05)
