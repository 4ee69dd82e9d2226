#include "runtime/aftermath.h"

#include <signal.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "criu/images.h"
#include "criu/stats.h"
#include "kymo/scope.h"
#include "probe/process.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Nothing that lies in the directory after a failed dump may look like a checkpoint, or fill the
// disk.
void remove_images(const std::string& images_dir) {
  std::error_code error;
  std::vector<std::filesystem::path> images;
  for (const auto& entry : std::filesystem::directory_iterator(images_dir, error)) {
    const std::string name = entry.path().filename().native();
    if (name.find(".img") != std::string::npos || name.starts_with("pre-") || name == "parent") {
      images.push_back(entry.path());
    }
  }
  // First the one without which no reader takes the rest for a checkpoint.
  std::filesystem::remove(criu::stored_path(images_dir + "/inventory.img"), error);
  for (const std::filesystem::path& image : images) {
    std::filesystem::remove_all(image, error);  // of a link, itself alone
  }
}

template <class Outcome, class Stats>
void take(const Result<Stats>& stats, Outcome& outcome) {
  if (stats) {
    outcome.stats = *stats;
  } else {
    outcome.warnings.push_back("CRIU's statistics are missing: " + stats.error().message);
  }
}

}  // namespace

criu::SharedOptions shared_options(const CheckpointOptions& options) {
  return {options.tcp_established,       options.shell_job, options.external, options.log_level,
          options.external_unix_sockets, options.root};
}

void forget(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

bool was_dumped_after_all(const DumpSpec& spec, const DumpTarget& before) {
  return !spec.leave_running && !criu::stored_path(spec.images_dir + "/inventory.img").empty() &&
         !probe::process_lives(before.process.pid, before.process.start_ticks);
}

void end_the_rest(const DumpTarget& before) {
  for (const ProcessId& member : before.tree) {
    if (probe::process_lives(member.pid, member.start_ticks)) {
      kill(member.pid, SIGKILL);
    }
  }
}

namespace {

// What ended of the tree while it was dumped, for the line of an error; empty: nothing. Where one
// process is killed at the wrong instant, CRIU may take another with it that it was about to let
// go.
std::string ended_meanwhile(const DumpTarget& before) {
  std::string pids;
  std::size_t count = 0;
  for (const ProcessId& member : before.tree) {
    if (!probe::process_lives(member.pid, member.start_ticks)) {
      pids += (count++ == 0 ? "" : ", ") + std::to_string(member.pid);
    }
  }
  return count == 0 ? ""
                    : ", but of its " + std::to_string(before.tree.size()) + " processes " +
                          std::to_string(count) + " ended meanwhile: " + pids;
}

}  // namespace

Error let_run_on(const DumpSpec& spec, const DumpTarget& before, Error error) {
  const Scope scope("let it run on", {.category = "runtime"});
  remove_images(spec.images_dir);
  const Result<void> running = ensure_running(before);
  const std::string what = spec.container.empty() ? "process" : "container";
  error.message += running ? "; the " + what + " runs on" + ended_meanwhile(before)
                           : "; and " + running.error().message;
  return error;
}

Result<void> wait_gone(const ProcessId& process) {
  const Scope scope("wait until it is gone", {.category = "runtime"});
  const auto until = steady_clock::now() + kGoneWithin;
  for (;;) {
    const Result<probe::Process> seen = probe::read_process(process.pid);
    if (!seen || seen->zombie() || seen->start_ticks != process.start_ticks) {
      return {};
    }
    if (steady_clock::now() > until) {
      return Error{Code::internal, "process " + std::to_string(process.pid) +
                                       " was dumped and told to end, but still runs"};
    }
    std::this_thread::sleep_for(milliseconds(1));  // it is not always our child: nothing to wait on
  }
}

void take_statistics(const std::string& path, DumpOutcome& outcome) {
  const Scope reading("read statistics", {.category = "runtime"});
  take(criu::read_dump_stats(path), outcome);
}

void take_statistics(const std::string& path, RestoreOutcome& outcome) {
  const Scope reading("read statistics", {.category = "runtime"});
  take(criu::read_restore_stats(path), outcome);
}

ProcessId identify(pid_t pid) {
  const Result<probe::Process> process = probe::read_process(pid);
  return {pid, process ? process->start_ticks : 0};
}

}  // namespace kymo::runtime
