"""Programs whose dump or restore is slow for a known reason. Each prints `ready`, and then runs until it is killed.

    shape.py mappings N P   has N mappings of P pages
    shape.py scattered M G  has M MiB of memory, with G pages between any two that are not used
    shape.py files N        has N files open
    shape.py threads N      has N threads that do nothing
    shape.py shared M       has M MiB of shared memory
    shape.py writes PATH    writes MiB after MiB into a file, and waits each time until the disk has it
"""

import ctypes
import mmap
import os
import resource
import sys
import threading
import time

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)


def anonymous(pages):
    memory = mmap.mmap(-1, pages * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def mappings(count, pages):
    # Every second mapping is read-only. So the kernel cannot merge adjacent mappings.
    count, size = int(count), int(pages) * PAGE
    memory, address = anonymous(count * size // PAGE)
    for start in range(0, count * size, PAGE):
        memory[start] = 1
    for start in range(0, count * size, 2 * size):
        if LIBC.mprotect(ctypes.c_void_p(address + start), ctypes.c_size_t(size), mmap.PROT_READ) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    return memory


def scattered(mib, gap):
    pages, step = int(mib) * 2**20 // PAGE, 1 + int(gap)
    memory, _ = anonymous(pages * step)
    for page in range(0, pages * step, step):
        memory[page * PAGE] = 1
    return memory


def shared(mib):
    memory = mmap.mmap(-1, int(mib) * 2**20)
    for start in range(0, len(memory), PAGE):
        memory[start] = 1
    return memory


def files(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return [open(__file__) for _ in range(int(count))]


def threads(count):
    threading.stack_size(64 << 10)
    never = threading.Event()
    started = [threading.Thread(target=never.wait, daemon=True) for _ in range(int(count))]
    for thread in started:
        thread.start()
    return started


def writes(path):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o600)

    def write_on():
        while True:
            os.pwrite(file, bytes(4 << 20), 0)

    threading.Thread(target=write_on, daemon=True).start()


def main():
    kept = globals()[sys.argv[1]](*sys.argv[2:])  # noqa: F841, it must live as long as the program
    print("ready", flush=True)
    while True:  # `kept` keeps the memory and files alive
        time.sleep(0.1)


main()
