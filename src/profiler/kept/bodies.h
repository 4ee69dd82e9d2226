#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/stacks/named_profile.h"

// The bytes in which a store keeps stacks and functions.
namespace kymo::profiles {

// A stack of functions that are stored.
struct StoredStack {
  std::string process;
  bool truncated = false;
  std::vector<std::uint64_t> functions;  // their ids, innermost first
};

std::string body_of(const StoredStack& stack);
std::string body_of(const stacks::NamedProfile::Function& function);

// Reads such bytes. Returns nothing if they are damaged.
std::optional<StoredStack> stack_in(std::string_view body);
std::optional<stacks::NamedProfile::Function> function_in(std::string_view body);

// The hash by which such bytes are found. It must never change, because files contain it.
std::int64_t hash_of(std::string_view body);

}  // namespace kymo::profiles
