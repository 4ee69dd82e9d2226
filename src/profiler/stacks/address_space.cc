#include "profiler/stacks/address_space.h"

#include <iterator>
#include <utility>

namespace kymo::stacks {

void AddressSpace::add(std::uint64_t begin, Mapping mapping) {
  if (size() >= kMaxMappings) mappings_.reset();
  if (mappings_ == nullptr) {
    mappings_ = std::make_shared<Mappings>();
  } else if (mappings_.use_count() > 1) {
    mappings_ = std::make_shared<Mappings>(*mappings_);
  }
  Mappings& mappings = *mappings_;
  const std::uint64_t end = mapping.end;
  auto next = mappings.lower_bound(begin);
  if (next != mappings.begin()) {
    Mapping& before = std::prev(next)->second;
    if (before.end > end) {  // it goes on behind the new one
      Mapping rest = before;
      rest.offset += end - std::prev(next)->first;
      next = mappings.emplace(end, std::move(rest)).first;
    }
    if (before.end > begin) before.end = begin;
  }
  while (next != mappings.end() && next->first < end) {
    Mapping covered = std::move(next->second);
    const std::uint64_t at = next->first;
    next = mappings.erase(next);
    if (covered.end > end) {
      covered.offset += end - at;
      mappings.emplace(end, std::move(covered));
      break;
    }
  }
  mappings[begin] = std::move(mapping);
}

std::optional<Frame> AddressSpace::find(std::uint64_t address) const {
  if (mappings_ == nullptr) return std::nullopt;
  const auto after = mappings_->upper_bound(address);
  if (after == mappings_->begin()) return std::nullopt;
  const auto& [begin, mapping] = *std::prev(after);
  if (address >= mapping.end) return std::nullopt;
  const Module* const module = mapping.module.get();
  if (module->elf == nullptr) return Frame{module, address};
  const std::uint64_t offset = address - begin + mapping.offset;
  return Frame{module, module->elf->address_at(offset).value_or(address)};
}

}  // namespace kymo::stacks
