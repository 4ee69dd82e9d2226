#include "checkpoint/runtimes/shared/proved_dump.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "checkpoint/criu/drive/action_script.h"
#include "checkpoint/criu/drive/scratch_folder.h"
#include "checkpoint/criu/drive/sync_images.h"
#include "checkpoint/runtimes/shared/process_checks.h"

namespace kymo::runtime {
namespace {

// Answers CRIU until `over` can be read.
void answer(criu::ActionScript& script, int over, const DumpSpec& spec, Result<void>& refused) {
  for (;;) {
    pollfd fds[] = {{script.names(), POLLIN, 0}, {over, POLLIN, 0}};
    ::poll(fds, 2, -1);
    while (const std::optional<criu::ActionScript::Point> point = script.next()) {
      if (point->name == criu::kAllWritten) {
        refused = prove(spec);
      }
      script.answer(refused.ok());
    }
    if (fds[1].revents != 0) return;
  }
}

// Puts a folder first on the PATH of a command. Its program criu is the one of before, with this configuration file:
// podman gives runc nothing else of its environment.
Result<void> put_on_path(const std::string& folder, const std::string& config, Command& command) {
  static constexpr std::string_view kPath = "PATH=";
  const auto path = std::find_if(command.environment.begin(), command.environment.end(),
                                 [](const std::string& one) { return one.starts_with(kPath); });
  if (path == command.environment.end()) return Error{Code::internal, "the command has no PATH"};
  const std::string criu = on_path("criu", path->substr(kPath.size()));
  const std::string program = folder + "/criu";
  Result<void> written = replace_file(
      program, "#!/bin/sh\nCRIU_CONFIG_FILE=" + config + " exec " + criu + " \"$@\"\n");
  if (!written) return written;
  if (::chmod(program.c_str(), S_IRWXU) != 0) return system_error("cannot make " + program, errno);
  path->insert(kPath.size(), folder + ":");
  return {};
}

}  // namespace

Result<void> prove(const DumpSpec& spec) {
  if (!spec.prove) return {};
  const Result<std::chrono::milliseconds> left = time_left(spec);
  return left ? spec.prove(spec.images_dir, *left) : Result<void>(left.error());
}

Result<CommandOutcome> run_proved(const Command& command, const DumpSpec& spec) {
  if (!spec.prove) return run_command(command);
  Result<std::unique_ptr<criu::ActionScript>> script = criu::ActionScript::make();
  if (!script) return script.error();
  const Result<criu::ScratchFolder> folder = criu::ScratchFolder::create("kymo-proof");
  if (!folder) return folder.error();
  Command proved = command;
  Result<void> put = put_on_path(folder->path(), (*script)->config_path(), proved);
  if (!put) return put.error();
  const FileDescriptor over(::eventfd(0, EFD_CLOEXEC));
  if (!over.valid()) return system_error("make an eventfd", errno);
  Result<void> refused;
  std::thread answers([&] { answer(**script, over.get(), spec, refused); });
  Result<CommandOutcome> done = run_command(proved);
  ::eventfd_write(over.get(), 1);
  answers.join();
  return refused ? std::move(done) : refused.error();
}

}  // namespace kymo::runtime
