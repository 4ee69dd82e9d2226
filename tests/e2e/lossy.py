"""Has all the state that CRIU does not save: lossy.py FOLDER. Writes what it has, by name, to the file `before`, and again to
the file `after` when the file `go` appears. The names are those of src/checkpoint/preflight/lost_state_checks.cc and socket_state.cc."""

import ctypes
import fcntl
import json
import mmap
import os
import pathlib
import re
import select
import socket
import struct
import sys
import time

FOLDER = pathlib.Path(sys.argv[1])
LIBC = ctypes.CDLL(None, use_errno=True)
MPOL_BIND, ONFAULT, BEST_EFFORT_7 = 2, 1, (2 << 13) | 7
TCP, UDP, IP, IP6, ANY = 6, 17, 0, 41, 1  # levels
# The name, the number and a value that no new socket has.
OPTIONS = {
    ANY: [("SO_TIMESTAMPNS", 35, 1), ("SO_TIMESTAMPING", 37, 24), ("SO_BUSY_POLL", 46, 50), ("SO_PREFER_BUSY_POLL", 69, 1),
          ("SO_RXQ_OVFL", 40, 1), ("SO_MAX_PACING_RATE", 47, 100000), ("SO_ZEROCOPY", 60, 1), ("SO_SELECT_ERR_QUEUE", 45, 1),
          ("SO_PEEK_OFF", 42, 0), ("SO_WIFI_STATUS", 41, 1), ("SO_RCVMARK", 75, 1), ("SO_PASSPIDFD", 76, 1),
          ("SO_RCVPRIORITY", 82, 1), ("SO_LOCK_FILTER", 44, 1), ("SO_INCOMING_CPU", 49, 1)],
    TCP: [("TCP_USER_TIMEOUT", 18, 5000), ("TCP_DEFER_ACCEPT", 9, 10), ("TCP_MAXSEG", 2, 700), ("TCP_FASTOPEN", 23, 16),
          ("TCP_FASTOPEN_NO_COOKIE", 34, 1), ("TCP_NOTSENT_LOWAT", 25, 4096), ("TCP_SYNCNT", 7, 3), ("TCP_LINGER2", 8, 17),
          ("TCP_WINDOW_CLAMP", 10, 32768), ("TCP_SAVE_SYN", 27, 1), ("TCP_THIN_LINEAR_TIMEOUTS", 16, 1), ("TCP_INQ", 36, 1),
          ("TCP_TX_DELAY", 37, 1000), ("TCP_RTO_MAX_MS", 44, 9000), ("TCP_CONGESTION", 13, b"reno")],
    UDP: [("UDP_SEGMENT", 103, 1200), ("UDP_GRO", 104, 1), ("UDP_ENCAP", 100, 2), ("UDP_NO_CHECK6_TX", 101, 1),
          ("UDP_NO_CHECK6_RX", 102, 1)],
    IP: [("IP_MTU_DISCOVER", 10, 0), ("IP_RECVERR", 11, 1), ("IP_RECVERR_RFC4884", 26, 1), ("IP_RECVTTL", 12, 1),
         ("IP_RECVTOS", 13, 1), ("IP_RECVOPTS", 6, 1), ("IP_RETOPTS", 7, 1), ("IP_RECVORIGDSTADDR", 20, 1),
         ("IP_RECVFRAGSIZE", 25, 1), ("IP_CHECKSUM", 23, 1), ("IP_PASSSEC", 18, 1), ("IP_MULTICAST_TTL", 33, 7),
         ("IP_MULTICAST_LOOP", 34, 0), ("IP_MULTICAST_ALL", 49, 0), ("IP_BIND_ADDRESS_NO_PORT", 24, 1), ("IP_MINTTL", 21, 4),
         ("IP_UNICAST_IF", 50, socket.htonl(1)), ("IP_TRANSPARENT", 19, 1), ("IP_LOCAL_PORT_RANGE", 51, 0x00050001)],
    IP6: [("IPV6_UNICAST_HOPS", 16, 9), ("IPV6_MULTICAST_HOPS", 18, 9), ("IPV6_MULTICAST_LOOP", 19, 0), ("IPV6_MULTICAST_IF", 17, 1),
          ("IPV6_MULTICAST_ALL", 29, 0), ("IPV6_TCLASS", 67, 16), ("IPV6_RECVTCLASS", 66, 1), ("IPV6_RECVHOPLIMIT", 51, 1),
          ("IPV6_RECVERR", 25, 1), ("IPV6_RECVPATHMTU", 60, 1), ("IPV6_RECVDSTOPTS", 58, 1), ("IPV6_RECVRTHDR", 56, 1),
          ("IPV6_RECVHOPOPTS", 53, 1), ("IPV6_RECVORIGDSTADDR", 74, 1), ("IPV6_MTU_DISCOVER", 23, 0), ("IPV6_DONTFRAG", 62, 1),
          ("IPV6_ADDR_PREFERENCES", 72, 2), ("IPV6_MINHOPCOUNT", 73, 5), ("IPV6_UNICAST_IF", 76, socket.htonl(1)),
          ("IPV6_TRANSPARENT", 75, 1)],
}


def text(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError as error:
        return str(error)


def pages():
    """Memory, and its address."""
    held = mmap.mmap(-1, 1 << 20)
    return held, ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(held)))


def set_options(sockets):
    """Sets each option of each socket, as far as the kernel permits it. Returns those that it has set."""
    done = []
    for level, rows in OPTIONS.items():
        for name, number, value in rows:
            for one in sockets:
                try:
                    one.setsockopt(level, number, value)
                    done.append((name, one, level, number))
                except OSError:
                    pass
    return done


udp, udp6, tcp = (socket.socket(family, kind) for family, kind in
                  ((socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_INET6, socket.SOCK_DGRAM), (socket.AF_INET, socket.SOCK_STREAM)))
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for one, address in ((udp, "127.0.0.1"), (udp6, "::1"), (tcp, "127.0.0.1")):
    one.bind((address, 0))
udp.setsockopt(IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + socket.inet_aton("127.0.0.1"))
OPTIONS_SET = set_options([udp, udp6, tcp, pair[0]])
tcp.listen()
unread = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
unread.bind(("127.0.0.1", 0))
unread.sendto(b"unread", unread.getsockname())

semaphore = os.eventfd(3, 1)
notify = LIBC.inotify_init()
(FOLDER / "watched").mkdir()
LIBC.inotify_add_watch(notify, bytes(FOLDER / "watched"), 0x100)  # IN_CREATE
(FOLDER / "watched" / "new").touch()
ends = os.pipe()
watch = select.epoll()
watch.register(ends[0], select.EPOLLIN | select.EPOLLONESHOT)
os.write(ends[1], b"x")
assert watch.poll(0) and not watch.poll(0)

LIBC.personality(0x0040000)  # ADDR_NO_RANDOMIZE
pathlib.Path("/proc/self/coredump_filter").write_text("0x70")
LIBC.syscall(238, MPOL_BIND, ctypes.byref(ctypes.c_ulong(1)), 64)  # set_mempolicy(2)
locked, at = pages()
LIBC.syscall(325, at, 1 << 20, ONFAULT)  # mlock2(2)
LIBC.syscall(251, 1, 0, BEST_EFFORT_7)  # ioprio_set(2)
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
LIBC.prctl(29, 777777)  # PR_SET_TIMERSLACK
LIBC.unshare(0x20000000)  # CLONE_NEWPID


def state():
    flags = [line for line in text("/proc/self/smaps").splitlines() if line.startswith("VmFlags")]
    found = {f"{name}@{one.fileno()}": str(one.getsockopt(level, number, 16)) for name, one, level, number in OPTIONS_SET}
    found |= {
        "its personality (personality(2))": text("/proc/self/personality"),
        "its coredump_filter": text("/proc/self/coredump_filter"),
        "its timer slack": text("/proc/self/timerslack_ns"),
        "its NUMA policy": text("/proc/self/numa_maps").split()[1:2],
        "MLOCK_ONFAULT of its memory": any(" lf" in line for line in flags),
        "the pid namespace of its children (unshare(2))": os.path.exists("/proc/self/ns/pid_for_children"),
        "its CPU affinity": sorted(os.sched_getaffinity(0)),
        "its I/O priority": LIBC.syscall(252, 1, 0),
        "EFD_SEMAPHORE": "semaphore: 1" in text(f"/proc/self/fdinfo/{semaphore}"),
        "that a watch is disarmed (EPOLLONESHOT)": re.findall("events: *([0-9a-f]+)", text(f"/proc/self/fdinfo/{watch.fileno()}")),
        "its unread events": struct.unpack("i", fcntl.ioctl(notify, 0x541B, bytes(4)))[0] > 0,
        "its unread datagrams": struct.unpack("i", fcntl.ioctl(unread, 0x541B, bytes(4)))[0] > 0,
        "its multicast groups": "030201EF" in text("/proc/self/net/igmp"),
    }
    return found


def write(name):
    (FOLDER / "part").write_text(json.dumps(state()))
    (FOLDER / "part").rename(FOLDER / name)


write("before")
while not (FOLDER / "go").exists():
    time.sleep(0.05)
write("after")
while True:
    time.sleep(1)
