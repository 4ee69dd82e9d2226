#include "base/confine/user.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kymo::confine {
namespace {

constexpr uid_t kNobody = 65534;

Error not_changed(const char* what) {
  return system_error(std::string("restrict a helper process: ") + what, errno);
}

// How many of the paths can be reached.
auto reached(const std::vector<std::string>& paths) {
  struct stat seen {};
  return std::count_if(paths.begin(), paths.end(), [&seen](const std::string& path) {
    return ::stat(path.c_str(), &seen) == 0;
  });
}

// A change of the user has taken all permitted capabilities out of effect.
Result<void> make_capabilities_effective() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> all{};
  if (::syscall(SYS_capget, &header, all.data()) != 0) return not_changed("capget");
  for (__user_cap_data_struct& some : all) some.effective = some.permitted;
  return ::syscall(SYS_capset, &header, all.data()) == 0 ? Result<void>() : not_changed("capset");
}

// The C library's functions would change all threads, and end the process where one of them may
// not. The only other thread here is that of a sanitizer, which has no capability with which to
// change back.
bool become(uid_t id) {
  return ::syscall(SYS_setresgid, id, id, id) == 0 && ::syscall(SYS_setresuid, id, id, id) == 0;
}

Result<void> change_user(const std::vector<std::string>& readable) {
  const auto before = reached(readable);
  if (::prctl(PR_SET_KEEPCAPS, 1) != 0) return not_changed("keep capabilities");
  static_cast<void>(::setgroups(0, nullptr));  // fails in some user namespaces
  if (!become(kNobody)) {
    return errno == EPERM || errno == EINVAL ? Result<void>() : not_changed("change the user");
  }
  if (Result<void> done = make_capabilities_effective(); !done) return done;
  ::setfsuid(0);
  if (reached(readable) == before || become(0)) return {};
  return not_changed("change the user back");
}

}  // namespace

Result<void> become_nobody(const std::vector<std::string>& readable) {
  if (::geteuid() != 0) return {};
  // The kernel forgets the signal of the parent's end when the user changes: set it again.
  int signal = 0;
  const pid_t parent = ::getppid();
  if (::prctl(PR_GET_PDEATHSIG, &signal) != 0) return not_changed("read the parent's signal");
  if (Result<void> done = change_user(readable); !done) return done;
  if (::prctl(PR_SET_PDEATHSIG, signal) != 0) return not_changed("set the parent's signal");
  if (signal != 0 && ::getppid() != parent) ::_exit(1);
  return {};
}

}  // namespace kymo::confine
