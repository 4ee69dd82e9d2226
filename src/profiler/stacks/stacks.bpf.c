// Takes the stacks of threads in the kernel: of those that use a CPU, on each tick of a clock of
// the CPU, and of those that wait, when the wait ends. Each stack goes through one ring buffer to
// bpf_source.cc. A stack map would lose stacks whose hashes collide.
#include <linux/bpf.h>

#include "kernel_types.h"
#include "wire.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PF_KTHREAD 0x00200000
#define TASK_DEAD 0x80

// Set before the program is loaded.
const volatile __u32 filter = KYMO_ALL;
const volatile __u64 cgroup_id = 0;
const volatile __s32 cgroup_level = 0;
const volatile __u64 shortest_wait_ns = 0;

// Read when the program has ended.
__u64 lost = 0;          // samples that did not fit into the ring buffer, and waits that did not fit into `waits`
__u64 short_waits = 0;   // waits that are shorter than `shortest_wait_ns`, which are not sent
__u64 short_wait_ns = 0;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} ring SEC(".maps");

// The processes to look at (KYMO_PROCESSES), and why (kymo_reason). Children are added when they
// are made.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1 << 16);
  __type(key, __u32);
  __type(value, __u8);
} processes SEC(".maps");

// Threads, and processes with all their threads (kymo_starter), whose children are added when they
// are made. They themselves are not looked at.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 64);
  __type(key, __u32);
  __type(value, __u8);
} starters SEC(".maps");

// A sample is longer than a BPF program's stack. Interrupts are off while it is used.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct kymo_stack);
} scratch SEC(".maps");

// The stacks of threads that wait, by thread id.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, struct kymo_stack);
} waits SEC(".maps");

static __always_inline __u8 reason_of(struct task_struct *task) {
  __u32 pid = task->tgid;
  __u8 *reason = bpf_map_lookup_elem(&processes, &pid);
  return reason ? *reason : 0;
}

static __always_inline int is_starter(struct task_struct *task) {
  __u32 thread = task->pid, process = task->tgid;
  __u8 *kind = bpf_map_lookup_elem(&starters, &thread);
  if (kind && *kind == KYMO_THREAD) return 1;
  kind = bpf_map_lookup_elem(&starters, &process);
  return kind && *kind == KYMO_PROCESS;
}

static __always_inline int is_wanted(struct task_struct *task) {
  __u32 pid = task->tgid;
  if (pid == 0) return 0;  // the idle task
  if (filter == KYMO_PROCESSES) return reason_of(task) != 0;
  if (filter == KYMO_CGROUP) return bpf_get_current_ancestor_cgroup_id(cgroup_level) == cgroup_id;
  return 1;
}

// Copies the newest part of the stack in chunks that end at page boundaries, so that the copy
// reaches up to the end of the stack's mapping. Memory that is not there ends the copy. 128 bytes
// below the stack pointer belong to it, too.
static __always_inline void copy_stack(struct kymo_stack *out, __u64 stack_pointer) {
  out->stack_from = (stack_pointer - 128) & ~(__u64)(KYMO_STACK_CHUNK - 1);
  out->stack_bytes = 0;
  for (int i = 0; i < KYMO_STACK_BYTES / KYMO_STACK_CHUNK; ++i) {
    const void *from = (const void *)(out->stack_from + i * KYMO_STACK_CHUNK);
    if (bpf_probe_read_user(out->stack + i * KYMO_STACK_CHUNK, KYMO_STACK_CHUNK, from) != 0) break;
    out->stack_bytes = (i + 1) * KYMO_STACK_CHUNK;
  }
}

// The stacks of the current thread, without the innermost `skipped` frames of the kernel; null if
// there is nothing to take.
static __always_inline struct kymo_stack *take(void *context, struct task_struct *task, int skipped) {
  __u32 zero = 0;
  struct kymo_stack *out = bpf_map_lookup_elem(&scratch, &zero);
  if (!out) return 0;
  out->time_ns = bpf_ktime_get_ns();
  out->value_ns = 0;
  out->pid = task->tgid;
  out->tid = task->pid;
  out->stack_bytes = 0;
  out->chain_bytes = 0;
  out->has_user = !(task->flags & PF_KTHREAD);
  out->reason = filter == KYMO_PROCESSES ? reason_of(task) : 0;
  out->pid_level = BPF_CORE_READ(task, group_leader, thread_pid, level);
  BPF_CORE_READ_STR_INTO(&out->process, task, group_leader, comm);
  bpf_get_current_comm(out->thread, sizeof out->thread);
  out->kernel_bytes = bpf_get_stack(context, out->kernel, sizeof out->kernel, skipped);
  if (!out->has_user) return out;
  out->chain_bytes = bpf_get_stack(context, out->chain, sizeof out->chain, BPF_F_USER_STACK);
  void *registers = (void *)bpf_task_pt_regs(task);
  bpf_probe_read_kernel(out->registers, sizeof out->registers, registers);
  copy_stack(out, out->registers[19]);  // the stack pointer
  return out;
}

// Wakes the reader only if the ring buffer fills: it looks by itself, many times a second.
static __always_inline void send(struct kymo_stack *stack) {
  __u64 size = stack->stack_bytes;
  if (size > KYMO_STACK_BYTES) size = KYMO_STACK_BYTES;
  size += __builtin_offsetof(struct kymo_stack, stack);
  const __u64 filled = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
  const __u64 most = bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 4;
  if (bpf_ringbuf_output(&ring, stack, size, filled > most ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP) != 0) {
    __sync_fetch_and_add(&lost, 1);
  }
}

SEC("perf_event")
int on_tick(void *context) {
  struct task_struct *task = bpf_get_current_task_btf();
  if (!is_wanted(task)) return 0;
  struct kymo_stack *stack = take(context, task, 0);
  if (stack) send(stack);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  __u32 to = child->tgid;
  if (parent->tgid == to) return 0;  // a thread
  __u8 reason = reason_of(parent);
  if (!reason && is_starter(parent)) reason = KYMO_STARTED;
  if (reason) bpf_map_update_elem(&processes, &to, &reason, BPF_ANY);
  return 0;
}

// Its threads have ended before it is freed.
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task) {
  __u32 pid = task->tgid;
  if (task->pid == task->tgid) bpf_map_delete_elem(&processes, &pid);
  return 0;
}

// The stack is kept when the wait begins: later, the program's memory cannot be read from here.
static __always_inline void begin_wait(void *context, struct task_struct *task) {
  if (!is_wanted(task)) return;
  __u32 tid = task->pid;
  struct kymo_stack *stack = take(context, task, 2);  // this program, and what calls it
  if (stack && bpf_map_update_elem(&waits, &tid, stack, BPF_ANY) != 0) __sync_fetch_and_add(&lost, 1);
}

static __always_inline void end_wait(struct task_struct *task) {
  __u32 tid = task->pid;
  struct kymo_stack *stack = bpf_map_lookup_elem(&waits, &tid);
  if (!stack) return;
  stack->value_ns = bpf_ktime_get_ns() - stack->time_ns;
  if (stack->value_ns >= shortest_wait_ns) {
    send(stack);
  } else {
    __sync_fetch_and_add(&short_waits, 1);
    __sync_fetch_and_add(&short_wait_ns, stack->value_ns);
  }
  bpf_map_delete_elem(&waits, &tid);
}

// A thread whose state is 0 does not wait: another thread is given its CPU. One that has ended does
// not, either.
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempted, struct task_struct *before, struct task_struct *after, unsigned int state) {
  if (!preempted && state != 0 && !(state & TASK_DEAD)) begin_wait(ctx, before);
  end_wait(after);
  return 0;
}
