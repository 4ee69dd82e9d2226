#include <algorithm>
#include <array>

#include "checkpoint/failures/catalogue.h"
#include "checkpoint/preflight/checks.h"

namespace kymo::preflight {
void Findings::add(Grade grade, std::string_view failure, Place place, std::string_view what,
                   std::string_view remedy) {
  const failures::Entry& entry = failures::entry_of(failure);
  if (what.empty()) what = entry.what;
  if (remedy.empty()) remedy = entry.remedy;
  auto same = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& finding) {
    return finding.grade == grade && finding.failure == failure && finding.what == what &&
           finding.remedy == remedy;
  });
  if (same == findings_.end()) {
    same = findings_.insert(
        same, {grade, std::string(failure), std::string(what), std::string(remedy), 0, {}});
  }
  ++same->count;
  if (same->places.size() < kMaxPlaces) same->places.push_back(std::move(place));
}

std::vector<Finding> Findings::take() {
  std::stable_sort(
      findings_.begin(), findings_.end(),
      [](const Finding& one, const Finding& other) { return one.grade < other.grade; });
  return std::move(findings_);
}

Place place_of(const Member& member, std::string object) {
  return {member.process.pid, member.process.name, -1, std::move(object)};
}

Place place_of(const Member& member, const OpenFile& file) {
  return {member.process.pid, member.process.name, file.fd, file.link};
}

Place place_of(const Member& member, const Mapping& mapping) {
  return place_of(member, "mapping " + range_of(mapping) + " of " + mapping.name);
}

bool is_memory(std::string_view path) {
  constexpr std::array<std::string_view, 7> kNames{
      "/memfd:", "/SYSV", "/dev/zero", "/[aio]", "/dmabuf:", "/anon_hugepage", "/secretmem"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [path](std::string_view name) { return path.starts_with(name); });
}

bool is_external(const Options& options, std::string_view name) {
  return std::any_of(options.external.begin(), options.external.end(),
                     [name](std::string_view argument) {
                       // "unix[INO]", "dev[MAJOR/MINOR]:NAME"
                       return argument.substr(0, argument.find("]:") == std::string_view::npos
                                                     ? argument.size()
                                                     : argument.find("]:") + 1) == name;
                     });
}

}  // namespace kymo::preflight
