#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "confine/descriptors.h"
#include "flags_file.h"
#include "kymo/version.h"
#include "print.h"
#include "timing.h"
#include "usage.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr char kConfigVariable[] = "KYMO_CONFIG";

struct Verb {
  std::string_view name;
  void (*add)(CLI::App& app, Context& context);
};

// The verbs, in the order of the help.
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
    {"progress", add_progress}, {"web", add_web},           {"view", add_view}};

std::vector<std::string> names_of_verbs() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

// Whether there may be a file of flags. It can contain flags of any verb.
bool reads_flags(std::span<char* const> words) {
  return std::getenv(kConfigVariable) != nullptr ||
         std::any_of(words.begin(), words.end(),
                     [](std::string_view word) { return word.starts_with("--config"); });
}

// Adds the verbs on the command line, or all verbs if there is none. Describing the options of
// every verb takes longer than everything else before the verb begins.
void add_verbs(CLI::App& app, Context& context, std::span<char* const> words) {
  const auto named = [&](const Verb& verb) {
    return std::find(words.begin(), words.end(), verb.name) != words.end();
  };
  const bool all = reads_flags(words) || std::none_of(std::begin(kVerbs), std::end(kVerbs), named);
  void (*last)(CLI::App&, Context&) = nullptr;
  for (const Verb& verb : kVerbs) {
    if ((all || named(verb)) && verb.add != last) {
      verb.add(app, context);
      last = verb.add;  // a function that adds several verbs is in the table several times
    }
  }
}

}  // namespace
}  // namespace kymo::cli

namespace {

int run(int argc, char** argv) {
  CLI::App app("Kymograph: a flight recorder for checkpoint/restore.", "kymo");
  kymo::cli::Context context;
  app.set_version_flag("-V,--version", "kymo " KYMO_VERSION);
  app.add_option("--socket", context.socket, "Unix socket of kymod")
      ->envname("KYMO_SOCKET")
      ->capture_default_str();
  kymo::cli::add_flags_file(app, kymo::cli::kConfigVariable);
  kymo::cli::add_timing_options(app, context);
  app.require_subcommand(1);
  app.fallthrough();
  kymo::cli::add_verbs(app, context, {argv, static_cast<std::size_t>(argc)});
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    kymo::cli::say(kymo::cli::explain_usage(error, app, kymo::cli::names_of_verbs()));
    return kymo::cli::kWrongUsage;
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  kymo::confine::open_standard_descriptors();
  // If the other end of a pipe or socket is closed (`kymo ps | head -1`), a write fails instead of
  // ending the program.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    kymo::cli::say(error.what());
    return 1;
  }
}
