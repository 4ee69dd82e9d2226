#include "confine/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/sanitizers.h"

namespace kymo::confine {
namespace {

using Filter = std::vector<sock_filter>;

constexpr bool kSanitized = KYMO_SANITIZER;

Error failed(const char* what, int error) {
  return system_error(std::string("restrict a helper process: ") + what, error);
}

// Sets a limit, but never raises the hard limit.
Result<void> limit(int resource, rlim_t most) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0) {
    return failed("getrlimit", errno);
  }
  const rlim_t bound = std::min(most, now.rlim_max);
  const rlimit wanted{bound, bound};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &wanted) == 0
             ? Result<void>()
             : failed("setrlimit", errno);
}

Result<void> limit_all(const Bounds& bounds) {
  if (Result<void> done = limit(RLIMIT_CORE, 0); !done) return done;
  if (kSanitized) return {};
  const auto seconds = static_cast<rlim_t>(bounds.cpu_time.count());
  if (Result<void> done = limit(RLIMIT_CPU, seconds); !done) return done;
  return limit(RLIMIT_AS, bounds.memory_bytes);
}

// The ruleset also covers writing, making, removing and executing files. No rule allows these.
constexpr std::uint64_t kReads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kRuled =
    (LANDLOCK_ACCESS_FS_MAKE_SYM << 1U) - 1;  // of Landlock's first version

// Allows to read `path`. A path that cannot be looked up stays closed: who reads it says why.
Result<void> open_to(int rules, const std::string& path) {
  const FileDescriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.valid()) return {};
  landlock_path_beneath_attr rule{};
  rule.parent_fd = place.get();
  rule.allowed_access = kReads;
  if (::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) return {};
  rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;  // it is no folder
  if (::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) return {};
  // Landlock has no rules for a pipe without a name, and lets it be opened (/dev/fd/63).
  return errno == EBADFD ? Result<void>() : failed("landlock_add_rule", errno);
}

Result<void> keep_to(const std::vector<std::string>& readable) {
  landlock_ruleset_attr ruled{};
  ruled.handled_access_fs = kRuled;
  const FileDescriptor rules(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &ruled, sizeof ruled.handled_access_fs, 0)));
  if (!rules.valid()) {
    // The kernel was built without Landlock, it is disabled, or a container's seccomp filter
    // forbids it.
    const bool none = errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM;
    return none ? Result<void>() : failed("landlock_create_ruleset", errno);
  }
  for (const std::string& path : readable) {
    if (Result<void> opened = open_to(rules.get(), path); !opened) return opened;
  }
  return ::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0
             ? Result<void>()
             : failed("landlock_restrict_self", errno);
}

Result<void> drop_capabilities() {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    static_cast<void>(::prctl(PR_CAPBSET_DROP, capability));  // without CAP_SETPCAP it has none
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> had{};
  if (::syscall(SYS_capget, &header, had.data()) != 0) return failed("capget", errno);
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> kept{};
  kept[0].permitted = had[0].permitted & (1U << CAP_DAC_READ_SEARCH);
  kept[0].effective = kept[0].permitted;
  return ::syscall(SYS_capset, &header, kept.data()) == 0 ? Result<void>()
                                                          : failed("capset", errno);
}

// The system calls that reading needs. All others return EPERM.
constexpr std::array kAllowed{SCMP_SYS(read),         SCMP_SYS(readv),
                              SCMP_SYS(pread64),      SCMP_SYS(preadv),
                              SCMP_SYS(write),        SCMP_SYS(writev),
                              SCMP_SYS(pwrite64),     SCMP_SYS(clock_nanosleep),
                              SCMP_SYS(uname),        SCMP_SYS(rt_sigaction),
                              SCMP_SYS(close),        SCMP_SYS(lseek),
                              SCMP_SYS(stat),         SCMP_SYS(fstat),
                              SCMP_SYS(lstat),        SCMP_SYS(newfstatat),
                              SCMP_SYS(statx),        SCMP_SYS(access),
                              SCMP_SYS(faccessat),    SCMP_SYS(faccessat2),
                              SCMP_SYS(getdents64),   SCMP_SYS(readlink),
                              SCMP_SYS(readlinkat),   SCMP_SYS(getcwd),
                              SCMP_SYS(fcntl),        SCMP_SYS(fadvise64),
                              SCMP_SYS(mmap),         SCMP_SYS(munmap),
                              SCMP_SYS(mremap),       SCMP_SYS(mprotect),
                              SCMP_SYS(madvise),      SCMP_SYS(brk),
                              SCMP_SYS(futex),        SCMP_SYS(clock_gettime),
                              SCMP_SYS(getrandom),    SCMP_SYS(getpid),
                              SCMP_SYS(gettid),       SCMP_SYS(rt_sigprocmask),
                              SCMP_SYS(rt_sigreturn), SCMP_SYS(sched_yield),
                              SCMP_SYS(sysinfo),      SCMP_SYS(exit),
                              SCMP_SYS(exit_group),   SCMP_SYS(sched_getaffinity)};

// libseccomp writes a filter only to a file. So this writes it to one in memory and reads it back.
Result<Filter> exported(scmp_filter_ctx rules) {
  const FileDescriptor file(::memfd_create("filter", MFD_CLOEXEC));
  if (!file.valid()) return failed("memfd_create", errno);
  if (const int error = seccomp_export_bpf(rules, file.get()); error != 0) {
    return failed("seccomp", -error);
  }
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  Filter filter(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (::pread(file.get(), filter.data(), static_cast<std::size_t>(size), 0) != size) {
    return failed("read the filter", errno);
  }
  return filter;
}

Result<Filter> make_filter(bool threads) {
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> rules(seccomp_init(SCMP_ACT_ERRNO(EPERM)),
                                                               &seccomp_release);
  int error = rules ? 0 : -ENOMEM;
  const auto allow = [&](int call, const std::vector<scmp_arg_cmp>& where) {
    if (error != 0) return;
    const auto count = static_cast<unsigned>(where.size());
    error = seccomp_rule_add_array(rules.get(), SCMP_ACT_ALLOW, call, count, where.data());
  };
  for (const int call : kAllowed) allow(call, {});
  // Files can be opened for reading only, even if the kernel has no Landlock.
  constexpr scmp_datum_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  allow(SCMP_SYS(open), {{1, SCMP_CMP_MASKED_EQ, kWrites, O_RDONLY}});
  allow(SCMP_SYS(openat), {{2, SCMP_CMP_MASKED_EQ, kWrites, O_RDONLY}});
  // To find out whether standard output is a terminal, and its width.
  allow(SCMP_SYS(ioctl), {{1, SCMP_CMP_EQ, TCGETS, 0}});
  allow(SCMP_SYS(ioctl), {{1, SCMP_CMP_EQ, TIOCGWINSZ, 0}});
  if (threads) {
    for (const int call : {SCMP_SYS(set_robust_list), SCMP_SYS(rseq)}) allow(call, {});
    // A clone() that makes a thread. A filter cannot look at the flags of clone3(): without that
    // call the C library uses clone().
    allow(SCMP_SYS(clone), {{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD}});
    if (error == 0) {
      error = seccomp_rule_add(rules.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    }
  }
  return error == 0 ? exported(rules.get()) : failed("seccomp", -error);
}

// The filter. It is made only once, because that takes longer than everything else here.
const Result<Filter>& filter() {
  static const Result<Filter> kFilter = make_filter(false);
  return kFilter;
}

Result<void> filter_calls(bool threads) {
  if (kSanitized) return {};
  const Result<Filter> made = threads ? make_filter(true) : filter();
  if (!made) return made.error();
  Filter calls = *made;
  const sock_fprog program{static_cast<unsigned short>(calls.size()), calls.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return {};
  return errno == EINVAL ? Error{Code::unimplemented,
                                 "restrict a helper process: this kernel has no seccomp filters"}
                         : failed("seccomp", errno);
}

}  // namespace

Error reader_died() {
  return {Code::resource_exhausted,
          "the process that read it was ended: it needed more memory or time than allowed, or the "
          "file is malicious"};
}

void prepare() {
  static_cast<void>(filter());
}

Result<void> confine_self(const Bounds& bounds) {
  static_cast<void>(::signal(SIGALRM, SIG_DFL));
  ::alarm(static_cast<unsigned>(bounds.time.count()));
  if (Result<void> done = limit_all(bounds); !done) return done;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no_new_privs", errno);
  if (Result<void> done = keep_to(bounds.readable); !done) return done;
  if (Result<void> done = drop_capabilities(); !done) return done;
  return filter_calls(bounds.threads);
}

}  // namespace kymo::confine
