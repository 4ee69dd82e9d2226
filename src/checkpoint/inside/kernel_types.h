// The parts of the kernel's types that inside.bpf.c reads. libbpf finds where each field is in the running kernel.
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid {
  unsigned int level;
};

struct super_block {
  unsigned long s_magic;
};

struct inode {
  struct super_block* i_sb;
};

struct file {
  struct inode* f_inode;
};

struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};

struct files_struct {
  struct fdtable* fdt;
};

struct task_struct {
  unsigned int __state;
  int on_cpu;
  int pid;
  int tgid;
  unsigned in_iowait : 1;
  char comm[16];
  struct pid* thread_pid;
  struct files_struct* files;
};

// Registers of x86-64.
struct pt_regs {
  unsigned long di;  // the first argument of a system call
  unsigned long dx;  // the third
};

struct bpf_iter_meta;
struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
};

#pragma clang attribute pop
