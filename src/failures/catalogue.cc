#include "failures/catalogue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "failures/catalogue_json.h"

namespace kymo::failures {
namespace {

std::vector<Entry> parsed() {
  std::vector<Entry> entries;
  for (const nlohmann::json& from : nlohmann::json::parse(kCatalogueJson)) {
    Entry entry{from.at("id"),  from.at("phase"),  from.at("match"), from.at("what"),
                from.at("why"), from.at("remedy"), from.at("retry"), {}};
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
    Values values;
    if (!fill(form, line, values)) continue;
    std::string text;
    std::size_t at = 0;
    for (std::size_t next = hole(say, 0); next != std::string::npos; next = hole(say, at)) {
      text.append(say, at, next - at);
      text += values.at(static_cast<std::size_t>(say[next + 1] - '0'));
      at = next + kHole;
    }
    return text.append(say, at);
  }
  return {};
}

}  // namespace kymo::failures
