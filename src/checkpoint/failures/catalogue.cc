#include "checkpoint/failures/catalogue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "checkpoint/failures/catalogue_json.h"

namespace kymo::failures {
namespace {

std::vector<Entry> parsed() {
  std::vector<Entry> entries;
  for (const nlohmann::json& from : nlohmann::json::parse(kCatalogueJson)) {
    Entry entry{from.at("id"),          from.at("phase"),  from.at("match"), from.at("what"),
                from.at("why"),         from.at("remedy"), from.at("retry"), {},
                from.value("limit", "")};
    if (from.contains("detail")) {
      for (const nlohmann::json& pair : from.at("detail")) {
        entry.details.emplace_back(pair.at(0), pair.at(1));
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

constexpr std::size_t kHole = 3;  // "{1}"
using Values = std::array<std::string_view, 10>;

// Where a hole begins in `form`, from `at` on.
std::size_t hole(std::string_view form, std::size_t at) {
  for (; (at = form.find('{', at)) != std::string_view::npos; ++at) {
    if (at + 2 < form.size() && form[at + 1] >= '1' && form[at + 1] <= '9' && form[at + 2] == '}') {
      return at;
    }
  }
  return std::string_view::npos;
}

// The values in the holes of `form`, which stands anywhere in `line`. False if it does not.
bool fill(std::string_view form, std::string_view line, Values& values) {
  std::size_t next = hole(form, 0);
  const std::string_view start = form.substr(0, next);
  const std::size_t begin = line.find(start);
  if (begin == std::string_view::npos) return false;
  line.remove_prefix(begin + start.size());
  while (next != std::string_view::npos) {
    const auto which = static_cast<std::size_t>(form[next + 1] - '0');
    const std::size_t after = hole(form, next + kHole);
    const std::size_t from = next + kHole;
    const std::string_view literal =
        form.substr(from, after == std::string_view::npos ? after : after - from);
    // The last hole without text behind it takes the rest.
    const std::size_t end = literal.empty() ? line.size() : line.find(literal);
    if (end == std::string_view::npos) return false;
    values.at(which) = line.substr(0, end);
    line.remove_prefix(std::min(end + literal.size(), line.size()));
    next = after;
  }
  return true;
}

// `own`: of kymod itself, or else of CRIU.
const Entry* first_with_pattern(std::string_view line, bool own) {
  for (const Entry& entry : catalogue()) {
    if ((entry.phase == "own") != own) continue;
    for (const std::string& pattern : entry.patterns) {
      if (Values values; fill(pattern, line, values)) return &entry;
    }
  }
  return nullptr;
}

// The text with the values in place of its holes.
std::string filled(const std::string& text, const Values& values) {
  std::string said;
  std::size_t at = 0;
  for (std::size_t next = hole(text, 0); next != std::string::npos; next = hole(text, at)) {
    said.append(text, at, next - at);
    said += values.at(static_cast<std::size_t>(text[next + 1] - '0'));
    at = next + kHole;
  }
  return said.append(text, at);
}

}  // namespace

const std::vector<Entry>& catalogue() {
  static const std::vector<Entry> kEntries = parsed();
  return kEntries;
}

const Entry* entry_for(std::string_view line) {
  return first_with_pattern(line, false);
}

const Entry* own_entry_for(std::string_view error) {
  return first_with_pattern(error, true);
}

const Entry& entry_of(std::string_view id) {
  const std::vector<Entry>& all = catalogue();
  const auto found =
      std::find_if(all.begin(), all.end(), [id](const Entry& entry) { return entry.id == id; });
  return found == all.end() ? all.back() : *found;
}

std::string detail_of(const Entry& entry, std::string_view line) {
  for (const auto& [form, say] : entry.details) {
    if (Values values; fill(form, line, values)) return filled(say, values);
  }
  return {};
}

std::string remedy_for(const Entry& entry, std::uint64_t bytes) {
  constexpr std::string_view kSize = "SIZE";
  constexpr std::uint64_t kMebi = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kMost = 4095;  // CRIU keeps a limit in 32 bits
  const std::uint64_t least = (bytes + kMebi - 1) / kMebi;
  if (least > kMost) return "End its use: no limit of CRIU is large enough for it (4095M at most).";
  const std::string limit = std::to_string(std::min(std::bit_ceil(least), kMost)) + "M";
  std::string text = entry.remedy;
  for (std::size_t at = 0; (at = text.find(kSize, at)) != std::string::npos;) {
    text.replace(at, kSize.size(), limit);
  }
  return text;
}

std::string remedy_for(const Entry& entry, std::string_view line) {
  for (const auto& [form, say] : entry.details) {
    Values values;
    if (entry.limit.empty() || !fill(form, line, values)) continue;
    const std::string number = filled(entry.limit, values);
    std::uint64_t bytes = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), bytes);
    if (read.ec == std::errc() && bytes != 0) return remedy_for(entry, bytes);
  }
  return entry.remedy;
}

}  // namespace kymo::failures
