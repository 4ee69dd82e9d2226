#include <cstddef>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint_named.h"
#include "confined.h"
#include "print.h"
#include "report/checkpoint_stats.h"
#include "report/gantt.h"
#include "verbs.h"

namespace kymo::cli {
namespace {

constexpr int kMostMappings = 1'000'000;

struct StatsArguments {
  std::string path;
  std::size_t mappings = 5;
  std::string picture;
};

// Draws the phases of the dump, or those of the restore if there is no log of the dump.
Result<void> draw(const report::CheckpointStats& stats, const std::string& picture) {
  if (stats.dump_phases) {
    return report::draw_gantt(*stats.dump_phases, "Dump: " + stats.path, picture);
  }
  if (stats.restore_phases) {
    return report::draw_gantt(*stats.restore_phases, "Restore: " + stats.path, picture);
  }
  return Error{Code::not_found, "--plot " + picture + ": there is no dump.log and no restore.log " +
                                    "to take phases from with " + stats.path};
}

void print_stats_of(Context& context, const StatsArguments& arguments, const std::string& path) {
  const auto stats = report::read_checkpoint_stats(path);
  if (!stats) return fail(context, stats.error());
  if (!arguments.picture.empty()) {
    if (const Result<void> drawn = draw(*stats, arguments.picture); !drawn) {
      return fail(context, drawn.error());
    }
  }
  if (context.json) return print_json(report::json_of(*stats));
  std::cout << report::text_of(*stats, arguments.mappings);
}

void print_stats(Context& context, const StatsArguments& arguments) {
  const std::string path = checkpoint_named(context, arguments.path);
  const auto print = [&] { print_stats_of(context, arguments, path); };
  if (!arguments.picture.empty()) return print();  // it must start gnuplot and create a file
  look_confined(context, {path}, print);
}

}  // namespace

void add_stats(CLI::App& app, Context& context) {
  CLI::App* stats = app.add_subcommand(
      "stats", "What CRIU's files say of a checkpoint: times, pages, and whose pages they are");
  auto arguments = std::make_shared<StatsArguments>();
  stats->fallthrough();
  stats
      ->add_option(
          "path", arguments->path,
          "CRIU's images or work directory, a checkpoint of kymo's (its directory or id, or a "
          "job: its last), or an archive that podman exported")
      ->required();
  stats
      ->add_option("--mappings", arguments->mappings,
                   "How many of each process's largest mappings to print")
      ->check(CLI::Range(0, kMostMappings))
      ->capture_default_str();
  stats->add_option("--plot", arguments->picture,
                    "Draw the phases into this file too, .png or .svg");
  stats->add_flag("--json", context.json, "Print JSON, with all mappings");
  stats->callback([&context, arguments] { print_stats(context, *arguments); });
}

}  // namespace kymo::cli
