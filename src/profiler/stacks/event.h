#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kymo::stacks {

// The registers of x86-64 in the order that DWARF gives them.
inline constexpr std::size_t kRegisters = 17;
inline constexpr std::size_t kFramePointer = 6;
inline constexpr std::size_t kStackPointer = 7;
inline constexpr std::size_t kReturnAddress = 16;
using Registers = std::array<std::uint64_t, kRegisters>;

// The registers of a program, and a copy of the newest part of its stack.
struct UserState {
  Registers registers{};
  std::uint64_t stack_from = 0;  // the address of the first byte of `stack`
  std::vector<std::byte> stack;
};

// The stack of one thread at one time.
struct Sample {
  pid_t pid = 0;
  pid_t tid = 0;
  std::string process;  // names, at most 15 bytes; empty if the source does not know them
  std::string thread;
  bool started = false;  // by a Starter of the target, or by what that has started
  unsigned pid_level =
      0;  // how many pid namespaces are around that of the process; 0 also if unknown
  std::uint64_t value_ns = 0;         // of a wait, how long it was; else the time between samples
  std::vector<std::uint64_t> kernel;  // addresses, innermost frame first
  std::vector<std::uint64_t> chain;   // the program's, as found by frame pointers
  std::optional<UserState> user;      // nothing for a thread of the kernel
};

// A process has mapped a part of a file, or memory, that can be executed.
struct Mapped {
  pid_t pid = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t device = 0;  // as in st_dev
  std::uint64_t inode = 0;   // 0: no file
  std::string path;          // in the root directory of the process
};

struct Forked {
  pid_t pid = 0;
  pid_t parent = 0;
};

struct Executed {
  pid_t pid = 0;
};

struct Exited {
  pid_t pid = 0;
};

// A thread has another name now.
struct Named {
  pid_t tid = 0;
  std::string name;
};

// What a source of samples reports. `time_ns` is on CLOCK_MONOTONIC.
struct Event {
  std::uint64_t time_ns = 0;
  std::variant<Sample, Mapped, Forked, Executed, Exited, Named> what;
};

}  // namespace kymo::stacks
