#include <cstddef>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoints/checkpoint_named.h"
#include "confined.h"
#include "lens/report/checkpoint_stats.h"
#include "print.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr int kMaxMappings = 1'000'000;

struct StatsArguments {
  std::string path;
  std::size_t mappings = 5;
};

void print_stats_of(Context& context, const StatsArguments& arguments, const std::string& path) {
  const auto stats = report::read_checkpoint_stats(path);
  if (!stats) return fail(context, stats.error());
  const bool unread_dump = !stats->dump_path.empty() && !stats->dump;
  const bool unread_restore = !stats->restore_path.empty() && !stats->restore;
  if (unread_dump || unread_restore) context.exit_code = 1;  // the note says why
  if (context.json) return print_json(report::json_of(*stats));
  std::cout << report::text_of(*stats, arguments.mappings);
}

void print_stats(Context& context, const StatsArguments& arguments) {
  const std::string path = checkpoint_to_read(context, arguments.path);
  look_confined(context, {path}, [&] { print_stats_of(context, arguments, path); });
}

}  // namespace

void add_stats(CLI::App& app, Context& context) {
  CLI::App* stats = app.add_subcommand("stats",
                                       "Show the statistics of a checkpoint from CRIU's files: "
                                       "times, pages, and the processes that own them");
  auto arguments = std::make_shared<StatsArguments>();
  stats->fallthrough();
  stats
      ->add_option("path", arguments->path,
                   "CRIU's images or work directory, a checkpoint of kymod (directory or id, or a "
                   "job: its last checkpoint), or an archive that podman exported")
      ->required();
  stats
      ->add_option("--mappings", arguments->mappings,
                   "Number of largest mappings to print for each process")
      ->check(CLI::Range(0, kMaxMappings))
      ->capture_default_str();
  stats->add_flag("--json", context.json, "Print JSON, with all mappings");
  stats->callback([&context, arguments] { print_stats(context, *arguments); });
}

}  // namespace kymo::cli
