#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "stacks/module.h"

namespace kymo::stacks {

// The executable mappings of a process. The kernel does not report what is unmapped, so a
// newer mapping takes the place of older ones.
//
// Threads: one.
class AddressSpace {
 public:
  struct Mapping {
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  // in the file
    std::shared_ptr<Module> module;
  };

  void add(std::uint64_t begin, Mapping mapping);
  // The frame for an address; nothing if it is in no mapping.
  [[nodiscard]] std::optional<Frame> find(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, Mapping> mappings_;  // by their begins; they do not overlap
};

}  // namespace kymo::stacks
