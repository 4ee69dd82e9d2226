#include "analysis/finish.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/recording_name.h"
#include "probe/process.h"

namespace kymo::analysis {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

std::string this_host() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

// Whether the process existed when the recording began. One second of tolerance allows for changes
// of the wall clock.
bool is_old_enough(const probe::Process& process, std::int64_t recording_unix_ns) {
  const std::int64_t tick_ns = kSecond / std::max<std::int64_t>(::sysconf(_SC_CLK_TCK), 1);
  const std::int64_t boot_unix_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
  const std::int64_t started =
      boot_unix_ns + static_cast<std::int64_t>(process.start_ticks) * tick_ns;
  return started <= recording_unix_ns + kSecond;
}

bool is_about_to_end(const std::string& path) {
  const Result<Metadata> metadata = read_metadata(recording_stem(path) + ".meta.json");
  return metadata && metadata->about->contains("request") &&
         finish_of(*metadata) == Finish::writing;
}

}  // namespace

Finish finish_of(const Metadata& metadata, const std::string& proc) {
  if (metadata.state != "running") return Finish::ended;
  if (metadata.pid == 0 || metadata.host != this_host()) return Finish::unfinished;
  const auto process = probe::read_process(static_cast<pid_t>(metadata.pid), proc);
  if (!process && process.error().code != Code::not_found) return Finish::unfinished;
  const bool lives =
      process && !process->zombie() && is_old_enough(*process, metadata.start_unix_ns);
  return lives ? Finish::writing : Finish::cut_short;
}

const char* to_string(Finish finish) {
  switch (finish) {
    case Finish::ended:
      return "ended";
    case Finish::writing:
      return "writing";
    case Finish::cut_short:
      return "cut short";
    case Finish::unfinished:
      break;
  }
  return "unfinished";
}

std::string sentence_of(Finish finish, const Metadata& metadata) {
  const std::string process = "process " + std::to_string(metadata.pid);
  switch (finish) {
    case Finish::ended:
      break;
    case Finish::writing:
      return "unfinished: " + process +
             " still writes it; rows that it adds from now on are not in it";
    case Finish::cut_short:
      return "cut short: its recorder (" + process +
             ") stopped without finishing it (killed, or its disk was full); its last rows and "
             "totals may be missing" +
             (metadata.ring_file.empty()
                  ? ""
                  : "; to get them from its ring, use 'kymo recover " + metadata.ring_file + "'");
    case Finish::unfinished:
      return "unfinished: it does not say that it has ended; its last rows and totals may be "
             "missing";
  }
  return {};
}

std::vector<std::string> about_to_end(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(found), is_about_to_end);
  return found;
}

std::vector<std::string> wait_until_ended(std::vector<std::string> paths,
                                          std::chrono::milliseconds most) {
  constexpr std::chrono::milliseconds kPause(50);
  const auto until = std::chrono::steady_clock::now() + most;
  for (paths = about_to_end(paths); !paths.empty() && std::chrono::steady_clock::now() < until;
       paths = about_to_end(paths)) {
    std::this_thread::sleep_for(kPause);
  }
  return paths;
}

}  // namespace kymo::analysis
