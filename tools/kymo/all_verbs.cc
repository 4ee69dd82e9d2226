#include "checkpoint/inside/bpf_source.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr std::string_view kDaily = "Every day";
constexpr std::string_view kJobs = "Jobs and running dumps";
constexpr std::string_view kCheckpoints = "Checkpoints";
constexpr std::string_view kRecordings = "Recordings";
constexpr std::string_view kKymod = "kymod, its recorder, and stack profiles";

constexpr Verb kVerbs[] = {
    {"run", add_run, kDaily},
    {"dump", add_dump, kDaily},
    {"restore", add_restore, kDaily},
    {"ps", add_ps, kDaily},
    {"check", add_check, kDaily},
    {"explain", add_explain, kDaily},
    {"history", add_history, kDaily},
    {"progress", add_progress, kDaily},
    {"adopt", add_adopt, kJobs},
    {"release", add_release, kJobs},
    {"attach", add_attach, kJobs},
    {"kill", add_kill, kJobs},
    {"freeze", add_freeze, kJobs},
    {"unfreeze", add_freeze, kJobs},
    {"cancel", add_cancel, kJobs},
    {"checkpoints", add_checkpoints, kCheckpoints},
    {"inspect", add_inspect, kCheckpoints},
    {"verify", add_verify, kCheckpoints},
    {"delete", add_delete, kCheckpoints},
    {"stats", add_stats, kCheckpoints},
    {"record", add_record, kRecordings},
    {"report", add_report, kRecordings},
    {"diff", add_diff, kRecordings},
    {"export", add_export, kRecordings},
    {"view", add_view, kRecordings},
    {"watch", add_watch, kRecordings},
    {"recover", add_recover, kRecordings},
    {"status", add_status, kKymod},
    {"web", add_web, kKymod},
    {"metrics", add_metrics, kKymod},
    {"recorder", add_recorder, kKymod},
    {"snapshot", add_snapshot, kKymod},
    {"profile", add_profile, kKymod},
    {"profiles", add_profiles, kKymod},
};

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

Result<std::unique_ptr<inside::Source>> bpf_source_of(int pid) {
  return inside::bpf_source_of_process(pid);
}

void add_common_options(CLI::App& app, Context& context) {
  app.add_option("--socket", context.socket, "Unix socket of kymod")
      ->envname("KYMO_SOCKET")
      ->capture_default_str();
  add_timing_options(app, context);
}

}  // namespace kymo::cli
