// The verbs of a kymo without gRPC, which reads, compares and takes recordings and needs no kymod.

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "checkpoints/checkpoint_named.h"
#include "checkpoints/checkpoint_pair.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr char kHere[] = "report, diff, export, record, recover, view";

// Verbs that need kymod, CRIU's images or a BPF program: each says what is missing. One call adds all
// of them, so they stand together in the table.
void add_missing(CLI::App& app, Context& context);

constexpr Verb kVerbs[] = {
    {"report", add_report},    {"diff", add_diff},        {"export", add_export},
    {"record", add_record},    {"recover", add_recover},  {"view", add_view},
    {"run", add_missing},      {"adopt", add_missing},    {"release", add_missing},
    {"dump", add_missing},     {"restore", add_missing},  {"cancel", add_missing},
    {"freeze", add_missing},   {"unfreeze", add_missing}, {"ps", add_missing},
    {"attach", add_missing},   {"kill", add_missing},     {"checkpoints", add_missing},
    {"inspect", add_missing},  {"verify", add_missing},   {"delete", add_missing},
    {"history", add_missing},  {"metrics", add_missing},  {"check", add_missing},
    {"explain", add_missing},  {"stats", add_missing},    {"profile", add_missing},
    {"profiles", add_missing}, {"watch", add_missing},    {"recorder", add_missing},
    {"snapshot", add_missing}, {"progress", add_missing}, {"web", add_missing},
    {"status", add_missing}};

void add_missing(CLI::App& app, Context& context) {
  for (const Verb& verb : kVerbs) {
    if (verb.add != add_missing) continue;
    const std::string name(verb.name);
    CLI::App* missing = app.add_subcommand(name);
    missing->group("");  // not in the help
    missing->fallthrough(false);
    missing->set_help_flag();
    missing->prefix_command();
    missing->callback([&context, name] {
      say(name + ": this kymo was built without gRPC and has only " + kHere +
          "; build Kymograph with -DKYMO_BUILD_PROGRAMS=ON for the rest");
      context.exit_code = kWrongUsage;
    });
  }
}

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

Result<std::unique_ptr<inside::Source>> bpf_source_of(int /*pid*/) {
  return Error{Code::unimplemented,
               "--bpf: this kymo was built without BPF and gRPC; build Kymograph with "
               "-DKYMO_BUILD_PROGRAMS=ON"};
}

// Without kymod, a name is a path.
std::string checkpoint_named(const Context& /*context*/, const std::string& name) {
  return name;
}

std::string checkpoint_to_read(const Context& /*context*/, const std::string& name) {
  return name;
}

std::string recordings_named(const Context& /*context*/, const std::string& name) {
  return name;
}

Result<CheckpointPair> compare_checkpoints(const std::string& before, const std::string& after,
                                           std::size_t /*rows*/) {
  for (const std::string& path : {before, after}) {
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown)) {
      return system_error("cannot compare " + path, ENOENT);
    }
  }
  return Error{Code::unimplemented,
               "cannot compare " + before + " with " + after +
                   ": not both have a recording; only a kymo with gRPC compares what CRIU left in "
                   "checkpoints: build Kymograph with -DKYMO_BUILD_PROGRAMS=ON"};
}

void add_common_options(CLI::App& app, Context& /*context*/) {
  app.footer(
      "This kymo was built without gRPC (KYMO_BUILD_TOOLS). A build with KYMO_BUILD_PROGRAMS also "
      "dumps, restores and compares checkpoints.");
}

}  // namespace kymo::cli
