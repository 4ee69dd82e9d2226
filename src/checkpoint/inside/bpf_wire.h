// What inside.bpf.c counts and bpf_view.cc reads. C, because the kernel's part is C.
#pragma once

#ifdef __cplusplus
#include <linux/types.h>
#endif

// NOLINTBEGIN(readability-identifier-naming): C
#define KYMO_VIEWS 4           // requests that are looked at, at the same time; a power of two
#define KYMO_VIEW_THREADS 128  // threads of each that have counts; others have none
#define KYMO_CALL_NUMBERS 512  // system calls with a class; those above are KYMO_OTHER_CALL

// KYMO_RUNTIME: a container runtime, which starts CRIU.
enum kymo_role { KYMO_CRIU = 1, KYMO_TARGET = 2, KYMO_RUNTIME = 3 };
enum kymo_state { KYMO_ENDED, KYMO_RUNS, KYMO_RUNNABLE, KYMO_OFF };

// System calls by what CRIU does with them.
enum kymo_call {
  KYMO_OTHER_CALL,
  KYMO_DRAIN,  // moves memory of the target into pipes
  KYMO_WRITE,
  KYMO_READ,
  KYMO_PAGEMAP,  // asks which pages there are
  KYMO_PTRACE,
  KYMO_WAIT,  // waits for a process
  KYMO_SOCKET,
  KYMO_OPEN,  // opens, closes and looks at files
  KYMO_MAP,
  KYMO_FORK,
  KYMO_CALLS,
};
#define KYMO_HAS_BYTES 0x80  // beside a class: what such a call returns is a number of bytes

// To read the clock takes half of the time that a system call takes longer. Of the write(2)s of a
// thread of at most so many bytes, which are mostly lines of CRIU's log, it is read for one in
// KYMO_ONE_IN, and the others count as long. If a thread leaves its CPU in a call, that is timed.
#define KYMO_SHORT_WRITE 512
#define KYMO_ONE_IN 8  // a power of two
enum kymo_timing { KYMO_TIMED, KYMO_SAMPLED, KYMO_ESTIMATED };

// Why a thread does not want a CPU.
enum kymo_off {
  KYMO_OFF_OTHER,
  KYMO_OFF_DISK,  // or for a program or machine that serves a file system (FUSE, NFS)
  KYMO_OFF_SOCKET,
  KYMO_OFF_PIPE,     // in a call that moves, reads or writes bytes, and not for a disk
  KYMO_OFF_PROCESS,  // waits for a process, or for a tracee
  KYMO_OFF_STOPPED,  // a signal or a tracer has stopped it
  KYMO_OFF_FAULT,    // in no system call: mostly a page fault
  KYMO_OFFS,
};

// A thread. What is not over yet is not in the sums: it began at `since_ns` or `entered_ns`, which
// is not set as long as the call is KYMO_ESTIMATED. One CPU at a time writes, since the scheduler
// does one thing with a thread at a time. `writes` is odd while it does. All times are nanoseconds
// of CLOCK_MONOTONIC.
struct kymo_thread {
  __u32 writes;
  __u16 role;   // a kymo_role; 0: not taken yet
  __u16 state;  // a kymo_state
  __u64 since_ns;
  __u64 entered_ns;
  __u32 call;    // a kymo_call, perhaps with KYMO_HAS_BYTES, and one more; 0: it is in none
  __u32 reason;  // a kymo_off, in KYMO_OFF
  __u32 timing;  // a kymo_timing, of the call
  __u32 short_writes;
  __u32 files
      [2];  // the descriptors of a call that moves bytes; of splice(2) both, of others one twice
  __u64 short_write_ns;  // how long the last took that was timed
  __u64 run_ns;
  __u64 runnable_ns;
  __u64 switches;  // how often it was given a CPU
  __u64 off_ns[KYMO_OFFS];
  __u64 calls[KYMO_CALLS];
  __u64 call_ns[KYMO_CALLS];
  __u64 call_bytes[KYMO_CALLS];
  __u64 allocated_bytes;  // these two only if page tracepoints are looked at
  __u64 user_faults;
};

// A request.
struct kymo_view {
  __u32 generation;  // 0: free. Threads of an earlier one are no longer looked at.
  __u32 threads;     // that were found, also those that have no place
  __u32
      container;  // whether a container runtime starts CRIU: then only programs named criu... are CRIU
  __u32 restores;  // whether CRIU makes the target
};
// NOLINTEND(readability-identifier-naming)
