#include "base/near_names.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace kymo {
namespace {

std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view name,
                                    const std::vector<std::string>& candidates, std::size_t most) {
  const std::size_t allowed = std::max<std::size_t>(1, name.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edits_between(name, candidate);
    const bool contains = name.size() >= 3 && candidate.find(name) != std::string::npos;
    if (edits <= allowed || contains) {
      near.emplace_back(edits, candidate);
    }
  }
  std::sort(near.begin(), near.end());
  near.resize(std::min(near.size(), most));
  std::vector<std::string> names;
  names.reserve(near.size());
  for (auto& [edits, candidate] : near) {
    names.push_back(std::move(candidate));
  }
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = near_names(name, candidates);
  std::string text;
  for (std::size_t i = 0; i < near.size(); ++i) {
    text += i == 0 ? "; did you mean " : (i + 1 == near.size() ? " or " : ", ");
    text += near[i];
  }
  return near.empty() ? text : text + "?";
}

}  // namespace kymo
