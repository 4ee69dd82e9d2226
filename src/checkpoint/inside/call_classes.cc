#include "checkpoint/inside/call_classes.h"

#include <sys/syscall.h>

namespace kymo::inside {
namespace {

struct Call {
  int number;
  kymo_call is;
  bool bytes = false;
};

constexpr std::array kCalls = {
    Call{SYS_vmsplice, KYMO_DRAIN, true},
    Call{SYS_tee, KYMO_DRAIN, true},
    Call{SYS_process_vm_readv, KYMO_DRAIN, true},
    Call{SYS_process_vm_writev, KYMO_DRAIN, true},
    Call{SYS_write, KYMO_WRITE, true},
    Call{SYS_pwrite64, KYMO_WRITE, true},
    Call{SYS_writev, KYMO_WRITE, true},
    Call{SYS_pwritev, KYMO_WRITE, true},
    Call{SYS_pwritev2, KYMO_WRITE, true},
    Call{SYS_splice, KYMO_WRITE, true},
    Call{SYS_sendfile, KYMO_WRITE, true},
    Call{SYS_read, KYMO_READ, true},
    Call{SYS_pread64, KYMO_READ, true},
    Call{SYS_readv, KYMO_READ, true},
    Call{SYS_preadv, KYMO_READ, true},
    Call{SYS_preadv2, KYMO_READ, true},
    Call{SYS_getdents64, KYMO_READ},
    Call{SYS_ioctl, KYMO_PAGEMAP},
    Call{SYS_ptrace, KYMO_PTRACE},
    Call{SYS_kill, KYMO_PTRACE},
    Call{SYS_tgkill, KYMO_PTRACE},
    Call{SYS_rt_sigqueueinfo, KYMO_PTRACE},
    Call{SYS_wait4, KYMO_WAIT},
    Call{SYS_waitid, KYMO_WAIT},
    Call{SYS_socket, KYMO_SOCKET},
    Call{SYS_socketpair, KYMO_SOCKET},
    Call{SYS_connect, KYMO_SOCKET},
    Call{SYS_accept, KYMO_SOCKET},
    Call{SYS_accept4, KYMO_SOCKET},
    Call{SYS_bind, KYMO_SOCKET},
    Call{SYS_sendto, KYMO_SOCKET, true},
    Call{SYS_recvfrom, KYMO_SOCKET, true},
    Call{SYS_sendmsg, KYMO_SOCKET, true},
    Call{SYS_recvmsg, KYMO_SOCKET, true},
    Call{SYS_setsockopt, KYMO_SOCKET},
    Call{SYS_getsockopt, KYMO_SOCKET},
    Call{SYS_open, KYMO_OPEN},
    Call{SYS_openat, KYMO_OPEN},
    Call{SYS_openat2, KYMO_OPEN},
    Call{SYS_close, KYMO_OPEN},
    Call{SYS_close_range, KYMO_OPEN},
    Call{SYS_stat, KYMO_OPEN},
    Call{SYS_fstat, KYMO_OPEN},
    Call{SYS_lstat, KYMO_OPEN},
    Call{SYS_newfstatat, KYMO_OPEN},
    Call{SYS_statx, KYMO_OPEN},
    Call{SYS_lseek, KYMO_OPEN},
    Call{SYS_access, KYMO_OPEN},
    Call{SYS_faccessat, KYMO_OPEN},
    Call{SYS_readlink, KYMO_OPEN},
    Call{SYS_readlinkat, KYMO_OPEN},
    Call{SYS_mmap, KYMO_MAP},
    Call{SYS_munmap, KYMO_MAP},
    Call{SYS_mprotect, KYMO_MAP},
    Call{SYS_mremap, KYMO_MAP},
    Call{SYS_madvise, KYMO_MAP},
    Call{SYS_brk, KYMO_MAP},
    Call{SYS_fork, KYMO_FORK},
    Call{SYS_vfork, KYMO_FORK},
    Call{SYS_clone, KYMO_FORK},
    Call{SYS_clone3, KYMO_FORK},
    Call{SYS_execve, KYMO_FORK},
    Call{SYS_unshare, KYMO_FORK},
    Call{SYS_setns, KYMO_FORK},
};

}  // namespace

const std::array<CallClass, KYMO_CALLS> kCallClasses = {{
    {"other", "do something else", KYMO_OFF_OTHER},
    {"drain", "move memory of the target into pipes", KYMO_OFF_PIPE},
    {"write", "write or splice", KYMO_OFF_PIPE},
    {"read", "read", KYMO_OFF_PIPE},
    {"pagemap", "ask which pages there are (ioctl)", KYMO_OFF_OTHER},
    {"ptrace", "trace or signal a process", KYMO_OFF_PROCESS},
    {"wait", "wait for a process", KYMO_OFF_PROCESS},
    {"socket", "use a socket", KYMO_OFF_SOCKET},
    {"open", "open, close or look at a file", KYMO_OFF_OTHER},
    {"map", "map or unmap memory", KYMO_OFF_OTHER},
    {"fork", "make a process or begin a program", KYMO_OFF_OTHER},
}};

const std::array<const char*, KYMO_OFFS> kOffNames = {"other",   "disk",    "socket", "pipe",
                                                      "process", "stopped", "fault"};

std::array<std::uint8_t, KYMO_CALL_NUMBERS> call_classes() {
  std::array<std::uint8_t, KYMO_CALL_NUMBERS> classes{};
  for (const Call& call : kCalls) {
    classes.at(static_cast<std::size_t>(call.number)) =
        static_cast<std::uint8_t>(call.is | (call.bytes ? KYMO_HAS_BYTES : 0));
  }
  return classes;
}

}  // namespace kymo::inside
