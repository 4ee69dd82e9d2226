#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kymo::stacks {

struct NamedProfile;

// The functions of two profiles, each once.
//
// Two are the same if they have the same name and their modules the same file name: another version
// of a program is often in another folder. If a name is in one module that only the first profile
// has, and in one that only the second has, it is the same function, too: the module was renamed,
// as libraries are that have their version in their name.
struct SameFunctions {
  struct Function {
    std::string name;
    std::string module;  // of the second profile, if it has the function
  };

  std::vector<Function> functions;
  // For each function of a profile, its place in `functions`.
  std::vector<std::uint32_t> of_before;
  std::vector<std::uint32_t> of_after;
};

SameFunctions same_functions(const NamedProfile& before, const NamedProfile& after);

}  // namespace kymo::stacks
