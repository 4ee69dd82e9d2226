#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kymo/result.h"
#include "lens/report/recording_diff.h"
#include "verbs.h"

// kymo diff of two stack profiles. What reads files is to be called in a process without rights.
namespace kymo::cli {

struct ProfilesToCompare {
  std::string before;
  std::string after;
  std::vector<std::string> other_options;  // those that were given and are only for recordings
  std::string value;                       // which of the files; empty: as they say
  std::string phase;                       // of a dump or restore; empty: all of them
  std::optional<double> allowed_change;
  std::size_t rows = 0;
  bool page = false;
};

// Whether a file is a stack profile in the format of pprof, by its name or by its first bytes.
bool is_profile(const std::string& path);

// Compares and prints, and makes the data of the page if one is wanted. Returns what became of
// `allowed_change`; nothing if it was not given, or if the comparison failed, which is said.
std::optional<report::ChangeCheck::Outcome> compare_profiles(Context& context,
                                                             const ProfilesToCompare& asked,
                                                             std::string& page_data);

}  // namespace kymo::cli
