#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/stacks/event.h"

// The facts about a program or library that the unwinder needs, and the messages by which the
// process that reads such files (elf_reader.h) passes them to the process that takes samples.
namespace kymo::stacks {

// The registers, by number, that a function keeps for its caller. The last one is the return
// address.
inline constexpr std::array<std::size_t, 7> kKept{3, kFramePointer, 12, 13, 14, 15, kReturnAddress};

// One operation of a DWARF expression, as libdw has parsed it.
struct Operation {
  std::uint8_t atom = 0;
  std::uint64_t number = 0;
  std::uint64_t number2 = 0;

  bool operator==(const Operation&) const = default;
};

// How a frame is unwound whose instruction lies between two addresses.
struct FrameRow {
  // Expressions, one after the other: of the canonical frame address, then of each register in
  // kKept. The expression of a register is empty if the register is undefined, or has the same
  // value as in this frame. If the expression of the frame address is empty, the frame cannot be
  // unwound.
  std::vector<Operation> operations;
  std::array<std::uint8_t, 1 + kKept.size()> ends{};  // where each expression ends
  std::uint64_t begin = 0;                            // addresses as the linker gave them
  std::uint64_t end = 0;
  bool signal = false;  // the kernel made this frame to call a signal handler

  [[nodiscard]] std::span<const Operation> frame_address() const { return expression(0); }
  // Of the register kKept[i].
  [[nodiscard]] std::span<const Operation> kept(std::size_t i) const { return expression(i + 1); }

  bool operator==(const FrameRow&) const = default;

 private:
  [[nodiscard]] std::span<const Operation> expression(std::size_t i) const {
    const std::size_t from = i == 0 ? 0 : ends.at(i - 1);
    return std::span(operations).subspan(from, ends.at(i) - from);
  }
};

// A part of the file that is loaded into memory.
struct Segment {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t address = 0;  // as the linker gave it

  bool operator==(const Segment&) const = default;
};

// Messages of the process that reads the files. A file may have taken that process over, so every
// message is checked. The result is consistent in itself, but it may be wrong.
std::string message_of(const std::optional<FrameRow>& row);
std::string message_of(const std::optional<std::vector<Segment>>& segments);
// Returns nothing if the message has no row, is not valid, or has a row that does not hold for
// `address`.
std::optional<FrameRow> row_in(std::string_view message, std::uint64_t address);
std::optional<std::vector<Segment>> segments_in(std::string_view message);

}  // namespace kymo::stacks
