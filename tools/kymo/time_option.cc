#include "time_option.h"

#include <CLI/CLI.hpp>

namespace kymo::cli {

double nanoseconds_of(const std::string& option, const std::string& text,
                      const std::string& without, NoUnit no_unit) {
  const Result<double> time = nanoseconds_of_text(text, no_unit);
  if (!time) {
    const bool too_long = time.error().message.ends_with(" is too long");
    throw CLI::ValidationError(option, time.error().message + (too_long ? ": " + without : ""));
  }
  if (*time <= 0) {
    throw CLI::ValidationError(option, text + " is not a time above 0: give 30s, 500ms, 5m or 1h");
  }
  return *time;
}

}  // namespace kymo::cli
