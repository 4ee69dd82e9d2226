#include "checkpoint/runtimes/shared/pre_dump.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/clock.h"
#include "base/proc/directory_bytes.h"
#include "checkpoint/criu/drive/held_images.h"
#include "checkpoint/criu/drive/stats.h"
#include "checkpoint/runtimes/shared/aftermath.h"
#include "checkpoint/runtimes/shared/process_checks.h"
#include "kymo/scope.h"

namespace kymo::runtime {
namespace {

constexpr std::uint64_t kNextToNothing = 256;  // pages (1 MiB), written in under a millisecond
constexpr double kAsMuch = 0.9;                // share of what the round before wrote

Result<PreDumpRound> one_round(const DumpSpec& spec, const WriteRound& write,
                               const PreDumpPlace& place) {
  Scope scope("pre-dump", {.category = "criu"});
  if (mkdir(place.images_dir.c_str(), 0700) != 0) {
    return system_error("make the folder " + place.images_dir, errno);
  }
  const std::string stats_path = spec.work_dir + "/stats-dump";
  forget(stats_path);
  const std::uint64_t began_ns = monotonic_ns();
  const Result<std::uint64_t> criu_time_ns = write(place);
  if (!criu_time_ns) {
    scope.fail(criu_time_ns.error().message);
    return criu_time_ns.error();
  }
  PreDumpRound round;
  round.duration_ns = monotonic_ns() - began_ns;
  round.criu_time_ns = *criu_time_ns;
  const Result<criu::DumpStats> stats = criu::read_dump_stats(stats_path);
  if (!stats) return stats.error();
  round.pages_written = stats->all_pages_written();
  round.frozen_time_us = stats->frozen_time_us;
  const Result<std::uint64_t> bytes = probe::directory_bytes(place.images_dir);
  if (!bytes) return bytes.error();
  round.image_bytes = *bytes;
  scope.add_bytes(*bytes);
  return round;
}

}  // namespace

bool another_round_pays(const std::vector<PreDumpRound>& rounds) {
  if (rounds.empty()) return true;
  const std::uint64_t last = rounds.back().pages_written;
  if (last <= kNextToNothing) return false;
  if (rounds.size() == 1) return true;  // the first round writes all memory
  const std::uint64_t before = rounds[rounds.size() - 2].pages_written;
  return static_cast<double>(last) < kAsMuch * static_cast<double>(before);
}

Result<PreDumps> pre_dump(const DumpSpec& spec, const Observer& observer, const WriteRound& write) {
  PreDumps done;
  while (done.rounds.size() < spec.pre_dumps && another_round_pays(done.rounds)) {
    const std::string folder = "pre-" + std::to_string(done.rounds.size() + 1);
    const PreDumpPlace place{spec.images_dir + "/" + folder,
                             done.last.empty() ? "" : "../" + done.last};
    Result<PreDumpRound> round = one_round(spec, write, place);
    if (!round) return round.error();
    if (spec.held) {
      if (Result<void> kept = spec.held->wrote_all(folder); !kept) return kept.error();
    }
    done.rounds.push_back(*round);
    done.last = folder;
    if (observer.pre_dumped) observer.pre_dumped(*round);
  }
  return done;
}

WriteRound write_round_by(const criu::Client& client, const DumpSpec& spec) {
  return [&](const PreDumpPlace& place) -> Result<std::uint64_t> {
    const Result<std::chrono::milliseconds> left = time_left(spec);
    if (!left) return left.error();
    criu::PreDumpRequest request;
    request.pid = spec.process.pid;
    request.images_dir = place.images_dir;
    request.work_dir = spec.work_dir;
    request.parent = place.parent;
    request.time_limit = *left;
    request.cancel = spec.cancel;
    request.options = spec.options;
    const Result<criu::DumpReply> reply = client.pre_dump(request);
    return reply ? Result<std::uint64_t>(reply->criu_time_ns) : reply.error();
  };
}

Result<void> check_tracked(const criu::Client& client, const std::string& tried) {
  const Result<criu::Features> features = client.features();
  if (!features) return Error{features.error().code, tried + ": " + features.error().message};
  if (features->dirty_tracking) return {};
  return Error{Code::failed_precondition,
               tried +
                   ": this kernel does not track which pages are written (it is built without "
                   "CONFIG_MEM_SOFT_DIRTY); dump without --pre-dump"};
}

}  // namespace kymo::runtime
