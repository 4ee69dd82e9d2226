#include "profiles/diff_profiles.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/json_text.h"
#include "lens/report/flame_diff.h"
#include "lens/report/profile_diff.h"
#include "print.h"
#include "profiler/stacks/comparison.h"
#include "profiles/profile_file.h"

namespace kymo::cli {
namespace {

bool is_packed(const std::string& path) {
  const Result<FileDescriptor> file = open_regular(path);
  if (!file) return false;
  std::array<char, 2> first{};
  return ::pread(file->get(), first.data(), first.size(), 0) ==
             static_cast<ssize_t>(first.size()) &&
         std::string_view(first.data(), first.size()) == "\x1f\x8b";
}

// Says why these cannot be compared. Returns whether they can.
bool may_compare(Context& context, const ProfilesToCompare& asked) {
  if (!asked.other_options.empty()) {
    say("diff: " + asked.other_options.front() +
        " is for recordings, and not for stack profiles (see kymo diff --help)");
    context.exit_code = kWrongUsage;
    return false;
  }
  const bool first = is_profile(asked.before);
  if (first && is_profile(asked.after)) return true;
  fail(context, Error{Code::invalid_argument,
                      "cannot compare: " + (first ? asked.before : asked.after) +
                          " is a stack profile and " + (first ? asked.after : asked.before) +
                          " is not; give two of the same kind"});
  return false;
}

}  // namespace

bool is_profile(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return false;  // a checkpoint
  return profile_format(path) == ProfileFormat::pprof || is_packed(path);
}

std::optional<report::ChangeCheck::Outcome> compare_profiles(Context& context,
                                                             const ProfilesToCompare& asked,
                                                             std::string& page_data) {
  if (!may_compare(context, asked)) return {};
  std::vector<stacks::NamedProfile> profiles;
  for (const std::string& path : {asked.before, asked.after}) {
    Result<stacks::NamedProfile> profile =
        chosen_part(read_profile(path, asked.value), asked.phase);
    if (!profile) {
      const bool named = asked.phase.empty() || profile.error().code != Code::not_found;
      fail(context,
           Error{profile.error().code, (named ? "" : path + ": ") + profile.error().message});
      return {};
    }
    profiles.push_back(*std::move(profile));
  }
  Result<stacks::Comparison> comparison = stacks::compare(profiles[0], profiles[1]);
  if (!comparison) {
    fail(context, comparison.error());
    return {};
  }
  const report::ProfileDiff diff{asked.before, asked.after, *std::move(comparison)};
  if (!context.quiet) {
    std::cout << (context.json ? json_text(report::json_of(diff, asked.allowed_change), 2) + "\n"
                               : report::text_of(diff, asked.rows, asked.allowed_change));
  }
  if (asked.page) {
    page_data = report::flame_diff_data(diff, stacks::compared_tree(profiles[0], profiles[1]));
  }
  if (!asked.allowed_change) return {};
  return report::check_shares(diff.comparison, *asked.allowed_change).outcome;
}

}  // namespace kymo::cli
