#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace kymo {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));  // posix_spawn() does not change the words
  }
  pointers.push_back(nullptr);
  return pointers;
}

short flags_of(Program::Leads leads) {
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (leads == Program::Leads::group) flags |= POSIX_SPAWN_SETPGROUP;
  if (leads == Program::Leads::session) flags |= POSIX_SPAWN_SETSID;
  return static_cast<short>(flags);
}

}  // namespace

Result<pid_t> spawn(const Program& program) {
  // The descriptors are put in their places one after the other. If one would be overwritten before
  // its turn, a copy above all places is used.
  std::vector<int> sources = program.descriptors;
  std::vector<FileDescriptor> copies;
  const auto places = static_cast<int>(sources.size());
  for (int place = 0; place < places; ++place) {
    int& source = sources[static_cast<std::size_t>(place)];
    if (source == kDevNull || source == place || source >= places) continue;
    source = ::fcntl(source, F_DUPFD_CLOEXEC, places);
    if (source < 0) return system_error("cannot run " + program.file, errno);
    copies.emplace_back(source);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  int error = 0;
  const auto add = [&error](int result) {
    if (error == 0) error = result;
  };
  for (int place = 0; place < places; ++place) {
    const int source = sources[static_cast<std::size_t>(place)];
    if (source == kDevNull) {
      const int access = place == STDIN_FILENO ? O_RDONLY : O_WRONLY;
      add(posix_spawn_file_actions_addopen(&actions, place, "/dev/null", access, 0));
    } else {
      add(posix_spawn_file_actions_adddup2(&actions, source, place));
    }
  }
  if (places != 0) add(posix_spawn_file_actions_addclosefrom_np(&actions, places));
  if (!program.directory.empty()) {
    add(posix_spawn_file_actions_addchdir_np(&actions, program.directory.c_str()));
  }
  sigset_t blocked;
  sigset_t all;
  sigemptyset(&blocked);
  for (const int signal : program.blocked) sigaddset(&blocked, signal);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, flags_of(program.leads));
  const std::vector<char*> words = pointers_to(program.words);
  std::vector<char*> environment;
  if (program.environment) environment = pointers_to(*program.environment);
  pid_t pid = 0;
  if (error == 0) {
    // If exec fails, posix_spawnp() reports it as its own result and reaps the child.
    error = posix_spawnp(&pid, program.file.c_str(), &actions, &attributes, words.data(),
                         program.environment ? environment.data() : environ);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return system_error("cannot run " + program.file, error);
  if (spawn_listener != nullptr) spawn_listener->spawned(pid);
  return pid;
}

}  // namespace kymo
