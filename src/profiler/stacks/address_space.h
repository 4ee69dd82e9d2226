#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "profiler/stacks/module.h"

namespace kymo::stacks {

// The executable mappings of a process. The kernel does not report what is unmapped, so a
// newer mapping takes the place of older ones.
//
// Threads: one.
// Cost:    a copy shares the mappings until one of the two gets another one: a process that forks
//          often may have many.
// Bounds:  kMaxMappings. Beyond it all are forgotten: most of them were unmapped long ago. Those that there are
//          can be read again.
class AddressSpace {
 public:
  // A process can have half as many at a time, unless vm.max_map_count was raised. About 12 MB.
  static constexpr std::size_t kMaxMappings = std::size_t{1} << 17U;

  struct Mapping {
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  // in the file
    std::shared_ptr<Module> module;
  };

  void add(std::uint64_t begin, Mapping mapping);
  // The frame for an address; nothing if it is in no mapping.
  [[nodiscard]] std::optional<Frame> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return mappings_ == nullptr ? 0 : mappings_->size(); }
  // The same for address spaces that share their mappings.
  [[nodiscard]] const void* id() const { return mappings_.get(); }

 private:
  using Mappings = std::map<std::uint64_t, Mapping>;

  std::shared_ptr<Mappings> mappings_;  // by their begins; they do not overlap. Null: none
};

}  // namespace kymo::stacks
