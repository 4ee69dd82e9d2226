#include "runtime/proved_dump.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "criu/action_script.h"
#include "criu/sync_images.h"
#include "runtime/process_checks.h"

namespace kymo::runtime {
namespace {

// Answers CRIU until `over` can be read.
void answer(criu::ActionScript& script, int over, const DumpSpec& spec, Result<void>& refused) {
  for (;;) {
    pollfd fds[] = {{script.names(), POLLIN, 0}, {over, POLLIN, 0}};
    ::poll(fds, 2, -1);
    while (const std::optional<std::string> name = script.next()) {
      if (*name == criu::kAllWritten) {
        const Result<std::chrono::milliseconds> left = time_left(spec);
        refused = left ? spec.prove(spec.images_dir, *left) : Result<void>(left.error());
      }
      script.answer(refused.ok());
    }
    if (fds[1].revents != 0) return;
  }
}

}  // namespace

Result<CommandOutcome> run_proved(Command command, const DumpSpec& spec) {
  Result<std::unique_ptr<criu::ActionScript>> script = criu::ActionScript::make();
  if (!script) return script.error();
  const FileDescriptor over(::eventfd(0, EFD_CLOEXEC));
  if (!over.valid()) return system_error("make an eventfd", errno);
  command.environment.push_back("CRIU_CONFIG_FILE=" + (*script)->config_path());
  Result<void> refused;
  std::thread answers([&] { answer(**script, over.get(), spec, refused); });
  Result<CommandOutcome> done = run_command(command);
  ::eventfd_write(over.get(), 1);
  answers.join();
  return refused ? std::move(done) : refused.error();
}

}  // namespace kymo::runtime
