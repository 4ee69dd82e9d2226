// The parts of the kernel's types that stacks.bpf.c reads. libbpf finds where each field is in the running kernel.
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid {
  unsigned int level;
};

struct task_struct {
  int pid;
  int tgid;
  unsigned int flags;
  struct task_struct* group_leader;
  struct pid* thread_pid;
  char comm[16];
};

#pragma clang attribute pop
