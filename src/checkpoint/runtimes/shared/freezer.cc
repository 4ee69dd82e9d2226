#include "checkpoint/runtimes/shared/freezer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "base/human.h"
#include "base/proc/cgroup.h"
#include "base/proc/process.h"

namespace kymo::runtime {
namespace {

constexpr int kOne = 1;
constexpr int kTwo = 2;
constexpr std::chrono::milliseconds kFreezerLookEvery{1};

std::string text_of(const std::string& path) {
  const Result<std::string> text = read_file(path);
  return text ? *text : std::string();
}

Result<void> write_text(const std::string& path, std::string_view text) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || ::write(file.get(), text.data(), text.size()) < 0) {
    return system_error("cannot write '" + std::string(text) + "' into " + path, errno);
  }
  return {};
}

}  // namespace

Result<Freezer> Freezer::of(pid_t pid, const std::string& proc, const std::string& sys) {
  std::error_code error;
  if (const auto path = probe::cgroup_path(pid, "freezer", proc)) {
    std::string folder = sys + "/freezer" + *path;
    if (std::filesystem::exists(folder + "/freezer.state", error)) {
      return Freezer(std::move(folder), kOne);
    }
  }
  if (const auto path = probe::cgroup_path(pid, "", proc)) {
    for (const char* mount : {"", "/unified"}) {
      std::string folder = sys + mount + *path;
      if (std::filesystem::exists(folder + "/cgroup.freeze", error)) {
        return Freezer(std::move(folder), kTwo);
      }
    }
  }
  return Error{Code::failed_precondition,
               "process " + std::to_string(pid) + " is in no cgroup that can be frozen"};
}

bool Freezer::frozen() const {
  if (version_ == kOne) {
    return text_of(folder_ + "/freezer.self_freezing").starts_with('1');
  }
  return text_of(folder_ + "/cgroup.freeze").starts_with('1');
}

bool Freezer::settled(bool frozen) const {
  if (version_ == kOne) {
    return text_of(folder_ + "/freezer.state").starts_with(frozen ? "FROZEN" : "THAWED");
  }
  return text_of(folder_ + "/cgroup.events").find(frozen ? "frozen 1" : "frozen 0") !=
         std::string::npos;
}

Result<void> Freezer::set(bool frozen, std::chrono::milliseconds within) const {
  const auto until = std::chrono::steady_clock::now() + within;
  for (;;) {
    // On version 1, write the state again in each round. If a process forks while the cgroup is
    // being frozen, the freezing never completes without another write.
    if (Result<void> written =
            version_ == kOne ? write_text(folder_ + "/freezer.state", frozen ? "FROZEN" : "THAWED")
                             : write_text(folder_ + "/cgroup.freeze", frozen ? "1" : "0");
        !written) {
      return written;
    }
    if (settled(frozen)) {
      return {};
    }
    if (std::chrono::steady_clock::now() > until) {
      return Error{Code::deadline_exceeded, folder_ + " is still not " +
                                                (frozen ? "frozen" : "thawed") + " after " +
                                                human::duration(within)};
    }
    std::this_thread::sleep_for(kFreezerLookEvery);
  }
}

std::string frozen_cgroup(pid_t pid, const std::string& proc, const std::string& sys) {
  const Result<Freezer> own = Freezer::of(pid, proc, sys);
  if (!own) return {};
  const std::filesystem::path top(sys);
  for (std::filesystem::path folder = own->folder();
       folder != top && folder != folder.parent_path(); folder = folder.parent_path()) {
    if (Freezer(folder, own->version()).frozen()) return folder;
  }
  return {};
}

bool is_frozen(pid_t pid) {
  if (!frozen_cgroup(pid).empty()) return true;
  const Result<probe::Process> process = probe::read_process(pid);
  return process && process->state == 'T';
}

}  // namespace kymo::runtime
