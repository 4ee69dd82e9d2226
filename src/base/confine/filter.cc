#include "base/confine/filter.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/file.h"
#include "base/sanitizers.h"

namespace kymo::confine {
namespace {

using Filter = std::vector<sock_filter>;

Error no_filter(const char* what, int error) {
  return system_error(std::string("restrict a helper process: ") + what, error);
}

// These system calls act only on this process and its open files, whatever their arguments are. Those
// that take a path (stat, access, readlink) tell only whether it exists, and its size and times.
constexpr std::array kAllowed{SCMP_SYS(read),
                              SCMP_SYS(readv),
                              SCMP_SYS(pread64),
                              SCMP_SYS(preadv),
                              SCMP_SYS(write),
                              SCMP_SYS(writev),
                              SCMP_SYS(pwrite64),
                              SCMP_SYS(poll),
                              SCMP_SYS(ppoll),
                              SCMP_SYS(uname),
                              SCMP_SYS(close),
                              SCMP_SYS(lseek),
                              SCMP_SYS(stat),
                              SCMP_SYS(fstat),
                              SCMP_SYS(lstat),
                              SCMP_SYS(newfstatat),
                              SCMP_SYS(statx),
                              SCMP_SYS(fstatfs),
                              SCMP_SYS(access),
                              SCMP_SYS(faccessat),
                              SCMP_SYS(faccessat2),
                              SCMP_SYS(getdents64),
                              SCMP_SYS(readlink),
                              SCMP_SYS(readlinkat),
                              SCMP_SYS(getcwd),
                              SCMP_SYS(fadvise64),
                              SCMP_SYS(munmap),
                              SCMP_SYS(mremap),
                              SCMP_SYS(madvise),
                              SCMP_SYS(brk),
                              SCMP_SYS(futex),
                              SCMP_SYS(clock_gettime),
                              SCMP_SYS(getrandom),
                              SCMP_SYS(getpid),
                              SCMP_SYS(gettid),
                              SCMP_SYS(rt_sigaction),
                              SCMP_SYS(rt_sigprocmask),
                              SCMP_SYS(rt_sigreturn),
                              SCMP_SYS(sched_yield),
                              SCMP_SYS(sysinfo),
                              SCMP_SYS(exit),
                              SCMP_SYS(exit_group),
                              SCMP_SYS(sched_getaffinity),
                              SCMP_SYS(clock_nanosleep)};

// What the C library gives clone() to make a thread.
constexpr scmp_datum_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                 CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                                 CLONE_CHILD_CLEARTID;

// Collects the rules. After the first error, which it keeps, it does nothing.
class Rules {
 public:
  Rules() : rules_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release) {
    if (!rules_) error_ = -ENOMEM;
  }
  // Allows a call if all of these are true for its arguments.
  void allow(int call, const std::vector<scmp_arg_cmp>& where = {}) {
    if (error_ != 0) return;
    const auto count = static_cast<unsigned>(where.size());
    error_ = seccomp_rule_add_array(rules_.get(), SCMP_ACT_ALLOW, call, count, where.data());
  }
  // Answers a call as a kernel does that does not have it.
  void hide(int call) {
    if (error_ == 0) error_ = seccomp_rule_add(rules_.get(), SCMP_ACT_ERRNO(ENOSYS), call, 0);
  }
  [[nodiscard]] Result<Filter> exported() const;

 private:
  std::unique_ptr<void, void (*)(scmp_filter_ctx)> rules_;
  int error_ = 0;
};

// libseccomp writes a filter only to a file. So this writes it to one in memory and reads it back.
Result<Filter> Rules::exported() const {
  if (error_ != 0) return no_filter("seccomp", -error_);
  const FileDescriptor file(::memfd_create("filter", MFD_CLOEXEC));
  if (!file.valid()) return no_filter("memfd_create", errno);
  if (const int error = seccomp_export_bpf(rules_.get(), file.get()); error != 0) {
    return no_filter("seccomp", -error);
  }
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  Filter filter(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (::pread(file.get(), filter.data(), static_cast<std::size_t>(size), 0) != size) {
    return no_filter("read the filter", errno);
  }
  return filter;
}

// Files can be opened for reading only, even if the kernel has no Landlock.
void allow_to_open(Rules& rules) {
  constexpr scmp_datum_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  rules.allow(SCMP_SYS(open), {{1, SCMP_CMP_MASKED_EQ, kWrites, O_RDONLY}});
  rules.allow(SCMP_SYS(openat), {{2, SCMP_CMP_MASKED_EQ, kWrites, O_RDONLY}});
}

// Commands of fcntl() and ioctl() that only look. Others send signals to any process (F_SETOWN,
// F_SETSIG, FIOASYNC), write to a terminal (TIOCSTI) or take away the flags of an open file, so
// that it is not only appended to any more (F_SETFL).
void allow_to_look(Rules& rules) {
  for (const int command : {F_GETFD, F_SETFD, F_GETFL}) {
    rules.allow(SCMP_SYS(fcntl), {{1, SCMP_CMP_EQ, static_cast<scmp_datum_t>(command), 0}});
  }
  // To find out whether standard output is a terminal, and its width.
  for (const scmp_datum_t command : {scmp_datum_t{TCGETS}, scmp_datum_t{TIOCGWINSZ}}) {
    rules.allow(SCMP_SYS(ioctl), {{1, SCMP_CMP_EQ, command, 0}});
  }
}

// Memory never becomes code.
void allow_memory(Rules& rules) {
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    rules.allow(call, {{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0}});
  }
}

Result<Filter> make_filter(bool threads, bool receives_files) {
  Rules rules;
  for (const int call : kAllowed) rules.allow(call);
  allow_to_open(rules);
  allow_to_look(rules);
  allow_memory(rules);
  if (receives_files) rules.allow(SCMP_SYS(recvmsg));
  if (threads) {
    for (const int call : {SCMP_SYS(set_robust_list), SCMP_SYS(rseq)}) rules.allow(call);
    // A filter cannot look at the flags of clone3(): without that call the C library uses clone().
    rules.hide(SCMP_SYS(clone3));
    rules.allow(SCMP_SYS(clone), {{0, SCMP_CMP_EQ, kThread, 0}});
  }
  return rules.exported();
}

// The filter. It is made only once, because that takes longer than all other restrictions.
const Result<Filter>& filter() {
  static const Result<Filter> kFilter = make_filter(false, false);
  return kFilter;
}

}  // namespace

void prepare_filter() {
  static_cast<void>(filter());
}

Result<void> filter_calls(bool threads, bool receives_files) {
  if (KYMO_SANITIZER) return {};
  const Result<Filter> made =
      threads || receives_files ? make_filter(threads, receives_files) : filter();
  if (!made) return made.error();
  Filter calls = *made;
  const sock_fprog program{static_cast<unsigned short>(calls.size()), calls.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return {};
  return errno == EINVAL ? Error{Code::unimplemented,
                                 "restrict a helper process: this kernel has no seccomp filters"}
                         : no_filter("seccomp", errno);
}

}  // namespace kymo::confine
