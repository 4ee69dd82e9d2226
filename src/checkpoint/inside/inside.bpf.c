// Counts what the threads of CRIU and of its target do: running, able to run, off the CPU and why,
// and their system calls by class. A thread that is looked at has its place in `seen`; the program
// that reads maps this memory.
#include <linux/bpf.h>
#include <linux/magic.h>

#include "bpf_wire.h"
#include "kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TASK_STOPPED 0x04
#define TASK_TRACED 0x08
#define TASK_DEAD 0x80
#define PAGE_BYTES 4096

// The class of each system call, perhaps with KYMO_HAS_BYTES, and why a thread waits in a call of
// each class. Set before the program is loaded.
const volatile unsigned char class_of[KYMO_CALL_NUMBERS] = {};
const volatile unsigned char off_of[KYMO_CALLS] = {};
const volatile long number_of_write = -1;  // of write(2)
const volatile long number_of_splice = -1;

struct kymo_view views[KYMO_VIEWS] = {};
struct kymo_thread seen[KYMO_VIEWS * KYMO_VIEW_THREADS] = {};

// Which thread has which place: that of `generation`, counted from 1.
struct place {
  __u32 number;
  __u32 generation;
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct place);
} places SEC(".maps");

// The processes that `adopt` looks for, and those that will be restored, by pid: the view and, from
// bit 8 on, the role.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, __u32);
} wanted SEC(".maps");

// Threads of kymod: the processes that they start belong to their view. The value is the view.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 64);
  __type(key, __u32);
  __type(value, __u32);
} starters SEC(".maps");

#define KEEP_ORDER() asm volatile("" ::: "memory")

static __always_inline void begin_write(struct kymo_thread *thread) {
  thread->writes++;
  KEEP_ORDER();
}

static __always_inline void end_write(struct kymo_thread *thread) {
  KEEP_ORDER();
  thread->writes++;
}

// The verifier must see that the index is within bounds, which the compiler would hide from it.
static __always_inline struct kymo_view *view_at(__u32 index) {
  asm volatile("" : "+r"(index));
  return &views[index & (KYMO_VIEWS - 1)];
}

// Null if the thread is not looked at.
static __always_inline struct kymo_thread *thread_of(struct task_struct *task) {
  struct place *place = bpf_task_storage_get(&places, task, 0, 0);
  if (!place) return 0;
  __u32 index = place->number - 1;
  if (index >= KYMO_VIEWS * KYMO_VIEW_THREADS) return 0;
  if (view_at(index / KYMO_VIEW_THREADS)->generation != place->generation) return 0;
  return &seen[index];
}

static __always_inline struct kymo_thread *take_place(struct task_struct *task, __u32 view, __u32 role) {
  if (view >= KYMO_VIEWS || view_at(view)->generation == 0) return 0;
  struct place *place = bpf_task_storage_get(&places, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!place) return 0;
  __u32 number = __sync_fetch_and_add(&view_at(view)->threads, 1);
  if (number >= KYMO_VIEW_THREADS) return 0;
  __u32 index = view * KYMO_VIEW_THREADS + number;
  if (index >= KYMO_VIEWS * KYMO_VIEW_THREADS) return 0;
  place->number = index + 1;
  place->generation = view_at(view)->generation;
  struct kymo_thread *thread = &seen[index];
  thread->role = role;
  return thread;
}

static __always_inline int is_criu(struct task_struct *task) {
  return task->comm[0] == 'c' && task->comm[1] == 'r' && task->comm[2] == 'i' && task->comm[3] == 'u';
}

// Counts the time in the state that ends now.
static __always_inline void end_state(struct kymo_thread *thread, __u64 now) {
  __u64 time = now - thread->since_ns;
  if (thread->state == KYMO_RUNS) {
    thread->run_ns += time;
  } else if (thread->state == KYMO_RUNNABLE) {
    thread->runnable_ns += time;
  } else if (thread->state == KYMO_OFF) {
    __u32 reason = thread->reason;
    if (reason < KYMO_OFFS) thread->off_ns[reason] += time;
  }
  thread->since_ns = now;
}

// A file system that another program or machine serves. For the kernel, to wait for that is no I/O.
static __always_inline int is_served(unsigned long magic) {
  return magic == FUSE_SUPER_MAGIC || magic == NFS_SUPER_MAGIC || magic == CIFS_SUPER_MAGIC ||
         magic == SMB2_SUPER_MAGIC || magic == CEPH_SUPER_MAGIC || magic == V9FS_MAGIC;
}

static __always_inline int is_served_file(struct task_struct *task, __u32 descriptor) {
  struct fdtable *table = BPF_CORE_READ(task, files, fdt);
  if (!table || descriptor >= BPF_CORE_READ(table, max_fds)) return 0;
  struct file *file = 0;
  struct file **at = BPF_CORE_READ(table, fd) + descriptor;
  if (bpf_core_read(&file, sizeof(file), at) != 0 || !file) return 0;
  return is_served(BPF_CORE_READ(file, f_inode, i_sb, s_magic));
}

static __always_inline __u32 why_off(struct task_struct *task, struct kymo_thread *thread, unsigned int state) {
  if (state & (TASK_STOPPED | TASK_TRACED)) return KYMO_OFF_STOPPED;
  if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait)) return KYMO_OFF_DISK;
  if (thread->call == 0) return KYMO_OFF_FAULT;
  __u32 call = (thread->call - 1) & ~KYMO_HAS_BYTES;
  int moves = call == KYMO_WRITE || call == KYMO_READ;
  if (moves && (is_served_file(task, thread->files[0]) || is_served_file(task, thread->files[1]))) {
    return KYMO_OFF_DISK;
  }
  return call < KYMO_CALLS ? off_of[call] : KYMO_OFF_OTHER;
}

// Begins to look at the threads of the processes that are wanted.
SEC("iter/task")
int adopt(struct bpf_iter__task *context) {
  struct task_struct *task = context->task;
  if (!task) return 0;
  __u32 pid = task->tgid;
  __u32 *who = bpf_map_lookup_elem(&wanted, &pid);
  if (!who || thread_of(task)) return 0;
  __u32 view = *who & 0xff, role = *who >> 8;
  if (role == KYMO_RUNTIME && is_criu(task)) role = KYMO_CRIU;
  struct kymo_thread *thread = take_place(task, view, role);
  if (!thread) return 0;
  unsigned int state = task->__state;
  thread->since_ns = bpf_ktime_get_ns();
  thread->reason = state & (TASK_STOPPED | TASK_TRACED) ? KYMO_OFF_STOPPED : KYMO_OFF_OTHER;
  thread->state = task->on_cpu ? KYMO_RUNS : state == 0 ? KYMO_RUNNABLE : KYMO_OFF;
  return 0;
}

static __always_inline __u32 level_of(struct task_struct *task) { return BPF_CORE_READ(task, thread_pid, level); }

// A child belongs to the view of its parent. It is a part of the target if it is one of the
// processes that are restored, or if it is in another pid namespace than CRIU, which has made it:
// the first process of a container that is restored.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  __u32 view, role;
  struct kymo_thread *from = thread_of(parent);
  __u32 pid = child->tgid;
  if (from) {
    struct place *place = bpf_task_storage_get(&places, parent, 0, 0);
    if (!place) return 0;
    view = (place->number - 1) / KYMO_VIEW_THREADS;
    role = from->role;
    if (role != KYMO_TARGET && child->pid == pid && view_at(view)->restores) {
      if (bpf_map_lookup_elem(&wanted, &pid) || level_of(child) > level_of(parent)) role = KYMO_TARGET;
    }
  } else {
    __u32 starter = parent->pid;
    __u32 *of = bpf_map_lookup_elem(&starters, &starter);
    if (!of || child->pid != pid) return 0;
    view = *of;
    role = view_at(view)->container ? KYMO_RUNTIME : KYMO_CRIU;
  }
  struct kymo_thread *thread = take_place(child, view, role);
  if (!thread) return 0;
  thread->since_ns = bpf_ktime_get_ns();
  thread->state = KYMO_RUNNABLE;
  return 0;
}

// A container runtime has started CRIU.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task) {
  struct kymo_thread *thread = thread_of(task);
  if (thread && thread->role == KYMO_RUNTIME && is_criu(task)) thread->role = KYMO_CRIU;
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task) {
  struct kymo_thread *thread = thread_of(task);
  if (!thread || thread->state != KYMO_OFF) return 0;
  begin_write(thread);
  end_state(thread, bpf_ktime_get_ns());
  thread->state = KYMO_RUNNABLE;
  end_write(thread);
  return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempted, struct task_struct *before, struct task_struct *after, unsigned int state) {
  struct kymo_thread *from = thread_of(before);
  if (from) {
    __u64 now = bpf_ktime_get_ns();
    begin_write(from);
    end_state(from, now);
    if (from->timing == KYMO_ESTIMATED) from->entered_ns = now;
    from->timing = KYMO_TIMED;
    if (preempted || state == 0) {
      from->state = KYMO_RUNNABLE;
    } else if (state & TASK_DEAD) {
      from->state = KYMO_ENDED;
      from->call = 0;
    } else {
      from->reason = why_off(before, from, state);
      from->state = KYMO_OFF;
    }
    end_write(from);
  }
  struct kymo_thread *to = thread_of(after);
  if (to) {
    begin_write(to);
    end_state(to, bpf_ktime_get_ns());
    to->state = KYMO_RUNS;
    to->switches++;
    end_write(to);
  }
  return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *registers, long number) {
  struct kymo_thread *thread = thread_of(bpf_get_current_task_btf());
  if (!thread) return 0;
  __u32 class = (__u64)number < KYMO_CALL_NUMBERS ? class_of[number] : KYMO_OTHER_CALL;
  __u32 timing = KYMO_TIMED;
  if (number == number_of_write && registers->dx <= KYMO_SHORT_WRITE) {
    __u32 turn = thread->short_writes++ & (KYMO_ONE_IN - 1);
    timing = turn == 0 || thread->short_write_ns == 0 ? KYMO_SAMPLED : KYMO_ESTIMATED;
  }
  begin_write(thread);
  thread->call = class + 1;
  thread->timing = timing;
  thread->files[0] = registers->di;
  thread->files[1] = number == number_of_splice ? registers->dx : registers->di;
  if (timing != KYMO_ESTIMATED) thread->entered_ns = bpf_ktime_get_ns();
  end_write(thread);
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *registers, long result) {
  struct kymo_thread *thread = thread_of(bpf_get_current_task_btf());
  if (!thread || thread->call == 0) return 0;
  __u32 class = thread->call - 1, call = class & ~KYMO_HAS_BYTES;
  if (call >= KYMO_CALLS) return 0;
  __u64 took = thread->short_write_ns;
  if (thread->timing != KYMO_ESTIMATED) took = bpf_ktime_get_ns() - thread->entered_ns;
  if (thread->timing == KYMO_SAMPLED) thread->short_write_ns = took;
  begin_write(thread);
  thread->calls[call]++;
  thread->call_ns[call] += took;
  if ((class & KYMO_HAS_BYTES) && result > 0) thread->call_bytes[call] += result;
  thread->call = 0;
  end_write(thread);
  return 0;
}

// The next two only if pages are looked at.

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(on_allocation, void *page, unsigned int order) {
  struct kymo_thread *thread = thread_of(bpf_get_current_task_btf());
  if (thread && page && order < 16) thread->allocated_bytes += (__u64)PAGE_BYTES << order;
  return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address) {
  struct kymo_thread *thread = thread_of(bpf_get_current_task_btf());
  if (thread) thread->user_faults++;
  return 0;
}
