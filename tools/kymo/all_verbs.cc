#include "inside/bpf_source.h"
#include "timing.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"run", add_run},           {"adopt", add_adopt},       {"release", add_release},
    {"dump", add_dump},         {"restore", add_restore},   {"cancel", add_cancel},
    {"freeze", add_freeze},     {"unfreeze", add_freeze},   {"ps", add_ps},
    {"attach", add_attach},     {"kill", add_kill},         {"checkpoints", add_checkpoints},
    {"inspect", add_inspect},   {"verify", add_verify},     {"delete", add_delete},
    {"history", add_history},   {"metrics", add_metrics},   {"report", add_report},
    {"export", add_export},     {"check", add_check},       {"diff", add_diff},
    {"explain", add_explain},   {"stats", add_stats},       {"record", add_record},
    {"profile", add_profile},   {"profiles", add_profiles}, {"recover", add_recover},
    {"watch", add_watch},       {"recorder", add_recorder}, {"snapshot", add_snapshot},
    {"progress", add_progress}, {"web", add_web},           {"view", add_view},
    {"status", add_status}};

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
