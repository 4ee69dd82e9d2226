#include "timing.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "base/json_text.h"
#include "print.h"

namespace kymo::cli {
namespace {

constexpr int kFormatVersion = 1;

// Checked before the request, because a dump cannot be repeated if its times could not be written.
std::string why_not_writable(const std::string& path) {
  if (std::filesystem::is_directory(path)) return path + " is a folder: name a file in it";
  const std::string folder = std::filesystem::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return "cannot write into " + folder + ": " + std::strerror(errno);
}

void write_file(Context& context, const client::Client::Timing& timing) {
  if (timing.scopes.empty()) {
    fail(context, Error{Code::failed_precondition,
                        "--profiling-path " + context.timing.path +
                            ": kymod sent no times: either it runs with --no-profiling, or a long "
                            "error message left no room for them"});
    return;
  }
  nlohmann::json json = report::timing_json(timing.scopes);
  json["format_version"] = kFormatVersion;
  const std::string text = json_text(json, 2) + "\n";
  if (Result<void> written = replace_file(context.timing.path, text); !written) {
    fail(context, written.error());
  }
}

}  // namespace

void add_timing_options(CLI::App& app, Context& context) {
  TimingOptions& timing = context.timing;
  app.add_flag("--profiling,!--no-profiling", timing.enabled,
               "Show where dump, restore and run spent their time, step by step (--no-profiling: "
               "not even with -v)")
      ->envname("KYMO_PROFILING")
      ->default_str("true")
      ->each([&timing](const std::string&) { timing.asked = true; });
  app.add_flag("--profiling-detailed", timing.detailed,
               "Show these times by category, too, and also those of a request that failed")
      ->envname("KYMO_PROFILING_DETAILED");
  add_verbose_option(app, context);
  static const std::map<std::string, report::Precision> kPrecisions = {
      {"auto", report::Precision::automatic},
      {"ns", report::Precision::ns},
      {"us", report::Precision::us},
      {"ms", report::Precision::ms},
      {"s", report::Precision::s}};
  app.add_option_function<std::string>(
         "--profiling-precision",
         [&timing](const std::string& name) { timing.precision = kPrecisions.at(name); },
         "Unit of the times that are shown")
      ->check(CLI::IsMember({"auto", "ns", "us", "ms", "s"}))
      ->envname("KYMO_PROFILING_PRECISION")
      ->default_str("auto");
  app.add_option("--profiling-path", timing.path,
                 "Write the times to this JSON file, also those of a request that failed")
      ->check(CLI::Validator(why_not_writable, "FILE"))
      ->envname("KYMO_PROFILING_PATH");
}

void show_timing(Context& context, const client::Client::Timing& timing, ShowTiming show) {
  const TimingOptions& options = context.timing;
  if (!options.enabled) return;
  if (!options.path.empty()) write_file(context, timing);
  const bool detailed = options.detailed || context.verbose;
  const bool shown = show != ShowTiming::to_file &&
                     (detailed || (show == ShowTiming::of_success && options.asked));
  if (context.json || timing.scopes.empty() || !shown) return;
  std::cout << "Where the time went, each without its parts\n"
            << report::timing_table(timing.scopes, options.precision);
  if (detailed) {
    std::cout << "By category\n" << report::category_table(timing.scopes, options.precision);
  }
  if (const std::uint64_t left_out = timing.scopes.front().left_out; left_out != 0) {
    std::cout << "Left out: " << left_out
              << " of the innermost scopes; the scopes around them include their time\n";
  }
}

void add_timing(const Context& context, const client::Client::Timing& timing,
                nlohmann::json& json) {
  if (context.timing.enabled) json["timing"] = report::timing_json(timing.scopes);
}

}  // namespace kymo::cli
