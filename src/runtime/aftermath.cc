#include "runtime/aftermath.h"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/beneath.h"
#include "base/busy_paths.h"
#include "base/patience.h"
#include "criu/held_images.h"
#include "criu/image_streamer.h"
#include "criu/images.h"
#include "criu/parasite.h"
#include "criu/stats.h"
#include "kymo/scope.h"
#include "probe/process.h"
#include "runtime/network_lock.h"

namespace kymo::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The folder that was made for the images, also if another one has its path by now.
std::string folder_of(const std::string& images_dir,
                      const std::shared_ptr<criu::HeldImages>& held) {
  return held ? held->own_path() : images_dir;
}

// Removes the images of a failed dump, so that they do not fill the disk and nobody takes them for
// a checkpoint.
void remove_images(const std::string& written_by, const std::string& images_dir) {
  criu::wait_for_streamer(written_by);
  std::error_code error;
  std::vector<std::filesystem::path> images;
  for (std::filesystem::directory_iterator entry(images_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    if (name.find(".img") != std::string::npos || name.starts_with("pre-") || name == "parent") {
      images.push_back(entry->path());
    }
  }
  // Remove inventory.img first: without it no reader takes the other files for a checkpoint.
  std::filesystem::remove(criu::stored_path(images_dir + "/inventory.img"), error);
  for (const std::filesystem::path& image : images) {
    std::filesystem::remove_all(image, error);  // removes a link itself, not its target
  }
}

// The directories whose images are being removed.
BusyPaths& removals() {
  static auto* const kAll = new BusyPaths;
  return *kAll;
}

// Waits at most kDiskPatience. If the disk stalls, the removal goes on in the background.
void remove_images_soon(const DumpSpec& spec) {
  const std::string& images_dir = spec.images_dir;
  auto work = std::make_unique<BusyPaths::Work>(removals(), images_dir);
  try {
    std::thread([images_dir, held = spec.held, work = std::move(work)] {
      try {
        remove_images(images_dir, folder_of(images_dir, held));
      } catch (const std::exception&) {  // no memory: some images stay
      }
    }).detach();
  } catch (const std::system_error&) {  // no thread could be started
    remove_images(images_dir, folder_of(images_dir, spec.held));
  }
  removals().wait(images_dir, kDiskPatience);
}

template <class Stats>
Result<Stats> read_within(const std::string& path, Result<Stats> (*read)(const std::string&)) {
  const auto stats = within(kDiskPatience, [path, read] { return read(path); });
  return stats ? *stats : Error{Code::unavailable, "the disk of " + path + " does not answer"};
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

void forget(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

Images wait_for_images_in(const std::string& images_dir) {
  // If the directory itself is missing, its disk may have been unmounted.
  std::error_code error;
  const bool seen = std::filesystem::is_directory(images_dir, error);
  if (!seen || error) return Images::unknown;
  for (const std::string& name : criu::stored_names(images_dir + "/inventory.img")) {
    struct stat info {};
    if (::stat(name.c_str(), &info) == 0) return Images::whole;
    if (errno != ENOENT) return Images::unknown;
  }
  return Images::not_whole;
}

namespace {

// Ends the processes that a CRIU that died had not ended yet. They are in the images, too.
void end_leftover_processes(const DumpTarget& before) {
  for (const ProcessId& member : before.tree) {
    if (probe::life_of(member.pid, member.start_ticks) == probe::Life::runs) {
      kill(member.pid, SIGKILL);
    }
  }
}

// Returns a clause for an error message that names the processes which ended during the dump. Empty
// if there are none. Most are short commands of a script, which ended by themselves, so this is no alarm:
// the first process runs on. But if one process is killed at the wrong instant, CRIU may end another one
// that it was about to release, and nothing tells the two apart afterwards.
std::string ended_meanwhile(const DumpTarget& before) {
  std::string pids;
  std::size_t count = 0;
  for (const ProcessId& member : before.tree) {
    if (!probe::process_lives(member.pid, member.start_ticks)) {
      pids += (count++ == 0 ? "" : ", ") + std::to_string(member.pid);
    }
  }
  return count == 0
             ? ""
             : " (" + std::to_string(count) + " of its " + std::to_string(before.tree.size()) +
                   " processes ended meanwhile: " + pids +
                   ", as short commands of a script do by themselves)";
}

}  // namespace

void wait_until_cleared(const std::string& images_dir) {
  removals().wait(images_dir);
}

bool is_being_cleared(const std::string& images_dir) {
  return removals().busy(images_dir);
}

Result<void> unmap_criu(const std::vector<pid_t>& tree) {
  const Scope scope("unmap CRIU's code", {.category = "runtime"});
  Result<void> all;
  for (const pid_t pid : tree) {
    const Result<std::size_t> removed = criu::remove_parasite(pid);
    if (!removed && removed.error().code != Code::not_found && all) all = removed.error();
  }
  return all;
}

namespace {

std::string kind_of_target(const DumpSpec& spec) {
  return spec.container.empty() ? "process" : "container";
}

// Marks the outcome as unconfirmed: what is left of the process can only be found out later.
void leave_unconfirmed(Error error, const std::string& why, const DumpSpec& spec,
                       DumpOutcome& outcome) {
  error.message += why + ": its images are kept in " + spec.images_dir;
  outcome.unconfirmed = std::move(error);
}

Images images_of(const DumpSpec& spec) {
  return within(kDiskPatience,
                [images_dir = spec.images_dir, held = spec.held] {
                  return wait_for_images_in(folder_of(images_dir, held));
                })
      .value_or(Images::unknown);
}

// For a process that has ended.
Result<void> conclude_ended(const DumpSpec& spec, const DumpTarget& before, Error error,
                            DumpOutcome& outcome) {
  const std::string process = "process " + std::to_string(before.process.pid);
  Images images = images_of(spec);
  // If another program removed inventory.img, all the others are still there.
  if (images == Images::not_whole && spec.held && !spec.held->check()) images = Images::whole;
  switch (images) {
    case Images::whole:
      end_leftover_processes(before);
      outcome.after_failure = true;
      outcome.warnings.push_back("every image was written and the " + kind_of_target(spec) +
                                 " ended, but then " + error.message);
      return {};
    case Images::not_whole:
      remove_images_soon(spec);
      error.message += "; and " + process + " is gone";
      return error;
    case Images::unknown:
      break;
  }
  leave_unconfirmed(
      std::move(error),
      "; and " + process +
          " has ended, but the disk of its images does not answer, so it is not known "
          "yet whether they are whole",
      spec, outcome);
  return {};
}

// Whether CRIU may have changed something in the processes. CRIU notes in its log that it has seized a process
// before it does anything else with it. If there is no log to read, the answer is yes.
bool may_have_attached(const DumpSpec& spec) {
  if (spec.pre_dumps != 0) return true;  // each round has a log of its own
  const auto log = within(kDiskPatience, [path = spec.work_dir + "/dump.log"] {
    return read_no_link(path, std::size_t{1} << 30U);
  });
  return !log || !*log || (*log)->empty() || (*log)->find("Seized task") != std::string::npos;
}

std::vector<pid_t> living_of(const DumpTarget& before) {
  std::vector<pid_t> tree;
  for (const ProcessId& member : before.tree) {
    if (probe::process_lives(member.pid, member.start_ticks)) tree.push_back(member.pid);
  }
  return tree;
}

// Gives the processes their network back, and waits until they run without CRIU's code. `trouble` gets
// what could not be undone although they run. Undoes nothing in processes that another program traces, such as
// the CRIU of another kymod.
Result<void> undo_dump(const DumpSpec& spec, const DumpTarget& before,
                       std::vector<Error>& trouble) {
  const std::vector<pid_t> tree = living_of(before);
  if (living_tracer(tree) != 0) return ensure_running(before);
  if (Result<void> back = give_back_network(tree); !back) trouble.push_back(back.error());
  if (Result<void> running = ensure_running(before); !running || spec.frozen) return running;
  if (Result<void> unmapped = unmap_criu(tree); !unmapped) {
    if (unmapped.error().code == Code::deadline_exceeded)
      return unmapped;  // it still runs that code
    trouble.push_back(unmapped.error());
  }
  // A thread that was still in CRIU's code has left it by now. It may have ended on CRIU's trap
  // instruction, so check again.
  return ensure_running(before);
}

}  // namespace

Result<void> conclude_failed_dump(const DumpSpec& spec, const DumpTarget& before, Error error,
                                  DumpOutcome& outcome) {
  const Scope scope("let it run on", {.category = "runtime"});
  const ProcessId process{before.process.pid, before.process.start_ticks};
  const auto life = [&] { return probe::life_of(process.pid, process.start_ticks); };
  if (const pid_t tracer = living_tracer(living_of(before));
      tracer != 0 && !may_have_attached(spec)) {
    remove_images_soon(spec);
    error.message += "; process " + std::to_string(process.pid) + " is traced by process " +
                     std::to_string(tracer) +
                     ", perhaps another dump of it or a debugger, so nothing was changed in it";
    return error;
  }
  if (life() == probe::Life::ended) return conclude_ended(spec, before, std::move(error), outcome);
  std::vector<Error> trouble;
  const Result<void> running = undo_dump(spec, before, trouble);
  const probe::Life now = life();
  if (now == probe::Life::ended) return conclude_ended(spec, before, std::move(error), outcome);
  if (now == probe::Life::unknown) {
    leave_unconfirmed(
        std::move(error),
        "; and it cannot be seen whether process " + std::to_string(process.pid) + " runs", spec,
        outcome);
    return {};
  }
  if (!running) {
    leave_unconfirmed(std::move(error), "; and " + running.error().message, spec, outcome);
    return {};
  }
  remove_images_soon(spec);
  error.message += "; the " + kind_of_target(spec) + " runs on" + ended_meanwhile(before);
  for (const Error& one : trouble) error.message += "; but " + one.message;
  return error;
}

namespace {

Result<void> wait_until_gone(const probe::Process& process) {
  const Scope scope("wait until it is gone", {.category = "runtime"});
  const auto until = steady_clock::now() + kGoneWithin;
  for (;;) {
    const Result<probe::Process> seen = probe::read_process(process.pid);
    const bool unseen = !seen && seen.error().code != Code::not_found;
    if (!unseen && (!seen || seen->zombie() || seen->start_ticks != process.start_ticks)) {
      return {};
    }
    if (steady_clock::now() > until) {
      return Error{Code::internal, "process " + std::to_string(process.pid) +
                                       " was dumped and should have ended, but still runs"};
    }
    std::this_thread::sleep_for(milliseconds(1));  // not always our child, so waitpid() cannot wait
  }
}

}  // namespace

void conclude_ended_dump(const DumpSpec& spec, const DumpTarget& before, DumpOutcome& outcome) {
  if (Result<void> gone = wait_until_gone(before.process); !gone) {
    outcome.warnings.push_back(gone.error().message);
  }
  std::vector<pid_t> tree;
  for (const ProcessId& member : before.tree) tree.push_back(member.pid);
  const Result<pid_t> other = before.network.give_back_to_others(tree);
  if (!other) {
    outcome.warnings.push_back(other.error().message);
  } else if (*other != 0 && spec.options.tcp_established) {
    outcome.warnings.push_back("its network namespace is that of process " +
                               std::to_string(*other) +
                               ", too, and was not kept locked for it: its connections may end "
                               "before they are restored");
  }
}

void take_statistics(const std::string& path, DumpOutcome& outcome) {
  const Scope reading("read statistics", {.category = "runtime"});
  take(read_within<criu::DumpStats>(path, criu::read_dump_stats), outcome);
}

void take_statistics(const std::string& path, RestoreOutcome& outcome) {
  const Scope reading("read statistics", {.category = "runtime"});
  take(read_within<criu::RestoreStats>(path, criu::read_restore_stats), outcome);
}

ProcessId identify(pid_t pid) {
  const Result<probe::Process> process = probe::read_process(pid);
  return {pid, process ? process->start_ticks : 0};
}

}  // namespace kymo::runtime
