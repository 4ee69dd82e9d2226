// What stacks.bpf.c sends and bpf_source.cc reads. C, because the kernel's part is C.
#pragma once

#ifdef __cplusplus
#include <linux/types.h>
#endif

// NOLINTBEGIN(readability-identifier-naming): C
#define KYMO_KERNEL_FRAMES 64
#define KYMO_CHAIN_FRAMES 127         // the kernel gives no more (kernel.perf_event_max_stack)
#define KYMO_STACK_CHUNK 1024         // bytes that are copied at once
#define KYMO_STACK_BYTES (16 * 1024)  // the longest copy of a stack
#define KYMO_NAME_BYTES 16            // of a thread's name, with the 0 at its end
#define KYMO_PT_REGS 21               // words in the kernel's struct pt_regs on x86-64

enum kymo_filter { KYMO_ALL, KYMO_PROCESSES, KYMO_CGROUP };
// Why a process is looked at: it was chosen, or a starter has started it. Its children have the same reason.
enum kymo_reason { KYMO_CHOSEN = 1, KYMO_STARTED = 2 };
// What a starter is.
enum kymo_starter { KYMO_THREAD = 1, KYMO_PROCESS = 2 };

// One sample. In the ring buffer it ends after `stack_bytes` bytes of `stack`.
struct kymo_stack {
  __u64 time_ns;   // CLOCK_MONOTONIC; of a wait, when it began
  __u64 value_ns;  // of a wait, how long it was; else 0
  __u32 pid;
  __u32 tid;
  __s32 kernel_bytes;  // of `kernel`, innermost frame first; negative: an error
  __s32 chain_bytes;   // of `chain`, likewise
  __u32 stack_bytes;   // of `stack`
  __u32 has_user;      // whether there are registers and a stack of the program
  __u32 reason;        // a kymo_reason; 0: all processes are looked at
  __u32 pid_level;     // how many pid namespaces are around that of the process
  __u64 stack_from;    // the address of the first byte of `stack`
  char process[KYMO_NAME_BYTES];
  char thread[KYMO_NAME_BYTES];
  __u64 registers[KYMO_PT_REGS];
  __u64 kernel[KYMO_KERNEL_FRAMES];
  __u64 chain[KYMO_CHAIN_FRAMES];  // the program's stack by its frame pointers
  __u8 stack[KYMO_STACK_BYTES];    // the newest part of the program's stack
};
// NOLINTEND(readability-identifier-naming)
