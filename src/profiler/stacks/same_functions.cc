#include "profiler/stacks/same_functions.h"

#include <map>
#include <utility>

#include "profiler/stacks/named_profile.h"

namespace kymo::stacks {
namespace {

struct Found {
  std::uint32_t id = 0;
  bool before = false;
  bool after = false;
  std::string module;
};

using ByModule = std::map<std::string, Found>;  // by file name
using ByName = std::map<std::string, ByModule>;

std::string file_name(const std::string& module) {
  return module.substr(module.rfind('/') + 1);
}

Found& found_at(ByName& names, const NamedProfile::Function& function) {
  return names[function.name][file_name(function.module)];
}

// The function of this name that only the profile `here` has. Null if there is no such function, or
// more than one.
Found* only_one(ByModule& modules, bool Found::*here, bool Found::*there) {
  Found* one = nullptr;
  for (auto& [file, found] : modules) {
    if (!(found.*here) || found.*there) continue;
    if (one != nullptr) return nullptr;
    one = &found;
  }
  return one;
}

void number(ByName& names, std::vector<SameFunctions::Function>& functions) {
  for (auto& [name, modules] : names) {
    Found* const old = only_one(modules, &Found::before, &Found::after);
    const Found* const renamed = only_one(modules, &Found::after, &Found::before);
    for (auto& [file, found] : modules) {
      if (&found == old && renamed != nullptr) continue;
      found.id = static_cast<std::uint32_t>(functions.size());
      functions.push_back({name, found.module});
    }
    if (old != nullptr && renamed != nullptr) old->id = renamed->id;
  }
}

std::vector<std::uint32_t> ids_of(const NamedProfile& profile, ByName& names) {
  std::vector<std::uint32_t> ids;
  ids.reserve(profile.functions.size());
  for (const NamedProfile::Function& function : profile.functions) {
    ids.push_back(found_at(names, function).id);
  }
  return ids;
}

}  // namespace

SameFunctions same_functions(const NamedProfile& before, const NamedProfile& after) {
  ByName names;
  for (const NamedProfile::Function& function : before.functions) {
    Found& found = found_at(names, function);
    found.before = true;
    found.module = function.module;
  }
  for (const NamedProfile::Function& function : after.functions) {
    Found& found = found_at(names, function);
    found.after = true;
    found.module = function.module;
  }
  SameFunctions same;
  number(names, same.functions);
  same.of_before = ids_of(before, names);
  same.of_after = ids_of(after, names);
  return same;
}

}  // namespace kymo::stacks
