#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptors.h"
#include "flags_file.h"
#include "help.h"
#include "kymo/version.h"
#include "print.h"
#include "usage.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr char kConfigVariable[] = "KYMO_CONFIG";

std::vector<std::string> names_of_verbs() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
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
  const std::span<const Verb> all_verbs = verbs();
  const bool all = reads_flags(words) || std::none_of(all_verbs.begin(), all_verbs.end(), named);
  void (*last)(CLI::App&, Context&) = nullptr;
  for (const Verb& verb : all_verbs) {
    if ((all || named(verb)) && verb.add != last) {
      verb.add(app, context);
      last = verb.add;  // a function that adds several verbs is in the table several times
    }
  }
  group_verbs(app);
}

}  // namespace
}  // namespace kymo::cli

namespace {

int run(int argc, char** argv) {
  CLI::App app(
      "Kymograph: dumps and restores processes and containers, records what happens inside, and "
      "says "
      "why it was slow or failed.",
      "kymo");
  kymo::cli::Context context;
  app.set_version_flag("-V,--version", "kymo " KYMO_VERSION);
  kymo::cli::add_flags_file(app, kymo::cli::kConfigVariable);
  kymo::cli::add_common_options(app, context);
  app.require_subcommand(1);
  app.fallthrough();
  kymo::cli::add_verbs(app, context, {argv, static_cast<std::size_t>(argc)});
  std::vector<std::string> words =
      kymo::cli::with_kind(app, {argv + std::min(argc, 1), argv + argc});
  const std::string first = words.empty() ? "" : words.front();
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    kymo::cli::say(kymo::cli::explain_usage(error, app, kymo::cli::names_of_verbs(), first));
    return kymo::cli::kWrongUsage;
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  kymo::open_standard_descriptors();
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
