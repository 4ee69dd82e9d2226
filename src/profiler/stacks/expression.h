#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "profiler/stacks/event.h"
#include "profiler/stacks/frame_row.h"

namespace kymo::stacks {

// Reads 8 bytes of the program's memory; nothing if they are not known.
using ReadMemory = std::function<std::optional<std::uint64_t>(std::uint64_t address)>;

// What an expression of call frame information yields.
struct Evaluated {
  std::uint64_t value = 0;
  bool is_value = false;  // otherwise it is the address where the value is
};

// Computes an expression of call frame information. `frame_address` is the canonical frame address.
// It supports the operations that compilers and assemblers put into call frame information.
// Returns nothing if the expression has another operation, or needs memory that is not known.
std::optional<Evaluated> evaluate(std::span<const Operation> operations, const Registers& registers,
                                  std::uint64_t frame_address, const ReadMemory& read);

}  // namespace kymo::stacks
