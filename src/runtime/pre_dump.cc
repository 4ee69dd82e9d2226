#include "runtime/pre_dump.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/clock.h"
#include "criu/stats.h"
#include "kymo/scope.h"
#include "probe/directory_bytes.h"
#include "runtime/aftermath.h"

namespace kymo::runtime {
namespace {

constexpr std::uint64_t kNextToNothing = 256;  // pages: a mebibyte takes under a millisecond
constexpr double kAsMuch = 0.9;                // of what the round before wrote

Result<void> check_tracked(const criu::Client& client, const DumpSpec& spec) {
  const std::string tried = "pre-dump process " + std::to_string(spec.process.pid);
  const Result<criu::Features> features = client.features();
  if (!features) return Error{features.error().code, tried + ": " + features.error().message};
  if (features->dirty_tracking) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": this kernel does not track which pages are written (it is built without "
                   "CONFIG_MEM_SOFT_DIRTY); dump without --pre-dump"};
}

Result<PreDumpRound> one_round(const criu::Client& client, const DumpSpec& spec,
                               const std::string& folder, const std::string& parent,
                               std::chrono::milliseconds limit) {
  Scope scope("pre-dump", {.category = "criu"});
  criu::PreDumpRequest request;
  request.pid = spec.process.pid;
  request.images_dir = spec.images_dir + "/" + folder;
  request.work_dir = spec.work_dir;
  request.parent = parent;
  request.time_limit = limit;
  request.options = shared_options(spec.options);
  if (mkdir(request.images_dir.c_str(), 0700) != 0) {
    return system_error("make the folder " + request.images_dir, errno);
  }
  const std::string stats_path = spec.work_dir + "/stats-dump";
  forget(stats_path);
  const std::uint64_t began_ns = monotonic_ns();
  const Result<criu::DumpReply> reply = client.pre_dump(request);
  if (!reply) {
    scope.fail(reply.error().message);
    return reply.error();
  }
  PreDumpRound round;
  round.duration_ns = monotonic_ns() - began_ns;
  round.criu_time_ns = reply->criu_time_ns;
  const Result<criu::DumpStats> stats = criu::read_dump_stats(stats_path);
  if (!stats) return stats.error();
  round.pages_written = stats->pages_written + stats->shpages_written.value_or(0);
  round.frozen_time_us = stats->frozen_time_us;
  const Result<std::uint64_t> bytes = probe::directory_bytes(request.images_dir);
  if (!bytes) return bytes.error();
  round.image_bytes = *bytes;
  scope.add_bytes(*bytes);
  return round;
}

}  // namespace

bool worth_another(const std::vector<PreDumpRound>& rounds) {
  if (rounds.empty()) return true;
  const std::uint64_t last = rounds.back().pages_written;
  if (last <= kNextToNothing) return false;
  if (rounds.size() == 1) return true;  // the first writes everything
  const std::uint64_t before = rounds[rounds.size() - 2].pages_written;
  return static_cast<double>(last) < kAsMuch * static_cast<double>(before);
}

Result<PreDumps> pre_dump(const criu::Client& client, const DumpSpec& spec,
                          const Observer& observer) {
  if (Result<void> tracked = check_tracked(client, spec); !tracked) return tracked.error();
  PreDumps done;
  while (done.rounds.size() < spec.pre_dumps && worth_another(done.rounds)) {
    const Result<std::chrono::milliseconds> limit = time_left(spec);
    if (!limit) return limit.error();
    const std::string folder = "pre-" + std::to_string(done.rounds.size() + 1);
    const std::string parent = done.last.empty() ? "" : "../" + done.last;
    Result<PreDumpRound> round = one_round(client, spec, folder, parent, *limit);
    if (!round) return round.error();
    done.rounds.push_back(*round);
    done.last = folder;
    if (observer.pre_dumped) observer.pre_dumped(*round);
  }
  return done;
}

}  // namespace kymo::runtime
