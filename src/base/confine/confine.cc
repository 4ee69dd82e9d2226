#include "base/confine/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/confine/filter.h"
#include "base/confine/user.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/sanitizers.h"

namespace kymo::confine {
namespace {

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

// The versions of Landlock are in the headers of newer kernels only. A ruleset covers all that the
// running kernel knows: writing, making, removing and executing files, TCP, abstract sockets and
// signals. No rule allows any of these.
struct Ruled {
  std::uint64_t files;
  std::uint64_t network;  // from the 4th version
  std::uint64_t scoped;   // from the 6th version
};
constexpr std::uint64_t kReads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kFiles = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1U) - 1;  // of the 1st version
constexpr std::uint64_t kRefer = 1U << 13U;                                // of the 2nd
constexpr std::uint64_t kTruncate = 1U << 14U;                             // of the 3rd
constexpr std::uint64_t kDevices = 1U << 15U;                              // of the 5th
constexpr std::uint64_t kConnectAndBind = 3;
constexpr std::uint64_t kAbstractSocketsAndSignals = 3;

FileDescriptor make_rules() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return {};
  Ruled ruled{kFiles, 0, 0};
  if (version >= 2) ruled.files |= kRefer;
  if (version >= 3) ruled.files |= kTruncate;
  if (version >= 4) ruled.network = kConnectAndBind;
  if (version >= 5) ruled.files |= kDevices;
  if (version >= 6) ruled.scoped = kAbstractSocketsAndSignals;
  const std::size_t words = version >= 6 ? 3 : version >= 4 ? 2 : 1;
  return FileDescriptor(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &ruled, words * sizeof(std::uint64_t), 0)));
}

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

Result<void> allow_only_reading(const std::vector<std::string>& readable) {
  const FileDescriptor rules = make_rules();
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

// No program could give them back, even if one could be run. To be called while the process is
// root: without CAP_SETPCAP it has no capabilities to lose.
void empty_bounding_set() {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    static_cast<void>(::prctl(PR_CAPBSET_DROP, capability));
  }
}

Result<void> drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> had{};
  if (::syscall(SYS_capget, &header, had.data()) != 0) return failed("capget", errno);
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> kept{};
  kept[0].permitted = had[0].permitted & (1U << CAP_DAC_READ_SEARCH);
  kept[0].effective = kept[0].permitted;
  return ::syscall(SYS_capset, &header, kept.data()) == 0 ? Result<void>()
                                                          : failed("capset", errno);
}

}  // namespace

Error reader_died() {
  return {Code::resource_exhausted,
          "the process that read it was ended: it needed more memory or time than allowed, or the "
          "file is malicious"};
}

void prepare() {
  prepare_filter();
}

Result<void> confine_self(const Bounds& bounds) {
  std::vector<int> kept = bounds.descriptors;
  for (const std::string& path : bounds.readable) {
    if (const int fd = descriptor_named(path); fd >= 0) kept.push_back(fd);
  }
  if (Result<void> done = close_all_but(std::move(kept)); !done) return done;
  static_cast<void>(::signal(SIGALRM, SIG_DFL));
  ::alarm(static_cast<unsigned>(bounds.time.count()));
  if (Result<void> done = limit_all(bounds); !done) return done;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no_new_privs", errno);
  if (Result<void> done = allow_only_reading(bounds.readable); !done) return done;
  empty_bounding_set();
  if (Result<void> done = become_nobody(bounds.readable); !done) return done;
  if (Result<void> done = drop_capabilities(); !done) return done;
  return filter_calls(bounds.threads, bounds.receives_files);
}

}  // namespace kymo::confine
