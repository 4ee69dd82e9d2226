#include "timing.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/file.h"
#include "print.h"

namespace kymo::cli {
namespace {

constexpr int kFormatVersion = 1;

// Before the request is made: a dump cannot be asked for again because its times could not be kept.
std::string why_not_writable(const std::string& path) {
  const std::string folder = std::filesystem::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return "cannot write into " + folder + ": " + std::strerror(errno);
}

void write_file(Context& context, const std::vector<ScopeRecord>& timing) {
  if (timing.empty()) {
    fail(context, Error{Code::failed_precondition,
                        "--profiling-path " + context.timing.path +
                            ": kymod times no requests: start it without --no-profiling"});
    return;
  }
  nlohmann::json json = report::timing_json(timing);
  json["format_version"] = kFormatVersion;
  const std::string text =
      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (Result<void> written = replace_file(context.timing.path, text); !written) {
    fail(context, written.error());
  }
}

}  // namespace

void add_timing_options(CLI::App& app, Context& context) {
  TimingOptions& timing = context.timing;
  app.add_flag("--profiling,!--no-profiling", timing.enabled,
               "Show where dump, restore and run spent their time")
      ->envname("KYMO_PROFILING")
      ->default_str("true");
  app.add_flag("--profiling-detailed", timing.detailed,
               "By category as well, and of what failed, too")
      ->envname("KYMO_PROFILING_DETAILED");
  static const std::map<std::string, report::Precision> kPrecisions = {
      {"auto", report::Precision::automatic},
      {"ns", report::Precision::ns},
      {"us", report::Precision::us},
      {"ms", report::Precision::ms},
      {"s", report::Precision::s}};
  app.add_option("--profiling-precision", timing.precision, "Unit of these times")
      ->transform(CLI::CheckedTransformer(kPrecisions))
      ->envname("KYMO_PROFILING_PRECISION")
      ->default_str("auto");
  app.add_option("--profiling-path", timing.path, "A JSON file to write them to, failed or not")
      ->check(CLI::Validator(why_not_writable, "FILE"))
      ->envname("KYMO_PROFILING_PATH");
}

void show_timing(Context& context, const std::vector<ScopeRecord>& timing, ShowTiming show) {
  const TimingOptions& options = context.timing;
  if (!options.enabled) return;
  if (!options.path.empty()) write_file(context, timing);
  if (context.json || timing.empty() || (show == ShowTiming::if_detailed && !options.detailed)) {
    return;
  }
  std::cout << "Where the time went\n" << report::timing_table(timing, options.precision);
  if (options.detailed) {
    std::cout << "By category\n" << report::category_table(timing, options.precision);
  }
}

}  // namespace kymo::cli
