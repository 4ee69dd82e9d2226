#include "lens/export/parts.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_object.h"
#include "base/json_text.h"
#include "kymo/version.h"
#include "lens/analysis/row_pieces.h"
#include "lens/export/text.h"

namespace kymo::exporting {
namespace {

Error rewritten(const std::string& path) {
  return Error{Code::aborted, "export " + path +
                                  ": another program rewrote it while it was read; "
                                  "try again when that program is done"};
}

std::string folded(std::string name, bool any_case) {
  if (any_case) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  return name;
}

}  // namespace

Result<void> for_each_block(
    const analysis::Summary& summary,
    const std::function<void(const analysis::RowBlock&, std::size_t)>& take) {
  std::uint64_t left = summary.rows;
  const auto take_piece = [&](const analysis::RowPiece& piece) {
    const std::uint64_t rows = std::min<std::uint64_t>(piece.rows.rows(), left);
    left -= rows;
    if (rows > 0) take(piece.rows, rows);
  };
  for (const std::string& path : analysis::files_of(summary.recording)) {
    auto reader = analysis::TsvReader::open(path);
    if (!reader) return reader.error();
    if (reader->columns().size() != summary.columns.size()) return rewritten(path);
    if (Result<void> taken = analysis::take_rows(*reader, 0, take_piece); !taken) return taken;
  }
  return left == 0 ? Result<void>() : rewritten(summary.recording.path);
}

Result<void> for_each_gap(const analysis::Summary& summary,
                          const std::function<void(const Gap&)>& take) {
  if (!summary.recording.gaps) return {};
  std::uint64_t count = 0;
  bool any_list = false;
  for (const std::string& path : analysis::files_of(summary.recording)) {
    const std::uint64_t before = count;
    const auto read = analysis::read_gaps(analysis::recording_stem(path) + ".gaps.tsv",
                                          [&](const Gap& gap) { ++count, take(gap); });
    any_list = any_list || read.ok();
    if (!read && count > before) return read.error();
  }
  if (any_list) return {};
  // There is no list. The notes of the recording already say so.
  for (const Gap& gap : summary.recording.gaps->longest) take(gap);
  return {};
}

std::vector<report::RecordedScope> scopes_of(const analysis::Summary& summary) {
  const auto& metadata = summary.recording.metadata;
  return metadata ? report::scopes_of(*metadata) : std::vector<report::RecordedScope>();
}

std::string name_of(const analysis::Summary& summary) {
  const std::string stem = analysis::recording_stem(summary.recording.path);
  return stem.substr(stem.rfind('/') + 1);
}

std::vector<std::string> unique_names(const std::vector<std::string>& names, bool any_case) {
  std::set<std::string> own;
  for (const std::string& name : names) own.insert(folded(name, any_case));
  std::set<std::string> given;
  std::map<std::string, std::uint64_t> next;  // the next number for each name
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::string unique = name;
    // Skip a number that gives a name which is taken or is one of `names`.
    while (given.contains(folded(unique, any_case)) ||
           (unique != name && own.contains(folded(unique, any_case)))) {
      std::uint64_t& number = next.try_emplace(folded(name, any_case), 2).first->second;
      unique = name + "_" + std::to_string(number++);
    }
    given.insert(folded(unique, any_case));
    out.push_back(std::move(unique));
  }
  return out;
}

std::vector<std::string> column_names(const analysis::Summary& summary, bool any_case) {
  std::vector<std::string> names;
  for (const analysis::ColumnSummary& column : summary.columns) {
    names.push_back(valid_utf8(column.info.name));
  }
  return unique_names(names, any_case);
}

std::vector<std::string> table_columns(const analysis::Summary& summary, bool any_case) {
  std::vector<std::string> names = column_names(summary, any_case);
  names.insert(names.begin(), "time_ns");
  return unique_names(names, any_case);
}

std::vector<std::pair<std::string, std::string>> properties_of(const analysis::Summary& summary) {
  std::vector<std::pair<std::string, std::string>> out{
      {"recording", valid_utf8(name_of(summary))},
      {"exported_by", "kymo " KYMO_VERSION},
      {"rows", std::to_string(summary.rows)},
      {"left_out_lines", std::to_string(summary.left_out.lines())}};
  const auto& metadata = summary.recording.metadata;
  if (!metadata) return out;
  for (const auto& [name, value] :
       {std::pair("state", metadata->state), std::pair("kymo_version", metadata->kymo_version),
        std::pair("clock", metadata->clock), std::pair("host", metadata->host),
        std::pair("kernel", metadata->kernel), std::pair("pid", std::to_string(metadata->pid)),
        std::pair("interval_ns", std::to_string(metadata->interval_ns)),
        std::pair("start_unix_ns", std::to_string(metadata->start_unix_ns)),
        std::pair("start_monotonic_ns", std::to_string(metadata->start_monotonic_ns)),
        std::pair("about", json_text(*metadata->about))}) {
    out.emplace_back(name, valid_utf8(value));
  }
  return out;
}

}  // namespace kymo::exporting
