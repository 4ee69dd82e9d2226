#include "profiler/stacks/unwind.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>

#include "profiler/stacks/elf_layout.h"
#include "profiler/stacks/expression.h"
#include "profiler/stacks/frame_row.h"

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxFrames = 512;

enum class Step : std::uint8_t { taken, outermost, failed };

class Unwinder {
 public:
  Unwinder(const Processes::Process& process, const UserState& state)
      : process_(process), state_(state), registers_(state.registers) {}

  Unwound run(const std::vector<std::uint64_t>& chain);

 private:
  [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t address) const;
  Step step(const std::optional<Frame>& frame);
  Step step_by_row(const FrameRow& row);
  Step step_by_frame_pointer();

  const Processes::Process& process_;
  const UserState& state_;
  Registers registers_;
  bool exact_ = true;  // the address is of an instruction, and not where a call returns to
};

// Where a call returns to may already belong to another function.
std::uint64_t inside_call(std::uint64_t address, bool exact) {
  return exact ? address : address - 1;
}

std::optional<std::uint64_t> Unwinder::read(std::uint64_t address) const {
  const std::uint64_t offset = address - state_.stack_from;
  std::uint64_t value = 0;
  if (address < state_.stack_from || offset + sizeof value > state_.stack.size()) {
    return std::nullopt;
  }
  std::memcpy(&value, state_.stack.data() + offset, sizeof value);
  return value;
}

Step Unwinder::step_by_row(const FrameRow& row) {
  const ReadMemory memory = [this](std::uint64_t address) { return read(address); };
  const auto frame_address = evaluate(row.frame_address(), registers_, 0, memory);
  if (!frame_address) return Step::failed;
  Registers caller = registers_;
  for (std::size_t i = 0; i < kKept.size(); ++i) {
    const std::size_t number = kKept.at(i);
    const std::span<const Operation> place = row.kept(i);
    if (place.empty()) {
      if (number == kReturnAddress) return Step::outermost;
      continue;
    }
    const auto found = evaluate(place, registers_, frame_address->value, memory);
    if (!found) return Step::failed;
    const auto value = found->is_value ? std::optional(found->value) : read(found->value);
    if (!value && number == kReturnAddress) return Step::failed;
    caller.at(number) = value.value_or(0);
  }
  caller[kStackPointer] = frame_address->value;
  // The stack of a signal handler may be anywhere. Otherwise it shrinks.
  if (!row.signal && caller[kStackPointer] <= registers_[kStackPointer]) return Step::failed;
  registers_ = caller;
  exact_ = row.signal;
  return Step::taken;
}

Step Unwinder::step_by_frame_pointer() {
  const std::uint64_t frame = registers_[kFramePointer];
  if (frame == 0) return Step::outermost;
  const auto caller = read(frame);
  const auto address = read(frame + 8);
  if (!caller || !address || frame + 16 <= registers_[kStackPointer]) return Step::failed;
  registers_[kFramePointer] = *caller;
  registers_[kStackPointer] = frame + 16;
  registers_[kReturnAddress] = *address;
  exact_ = false;
  return Step::taken;
}

Step Unwinder::step(const std::optional<Frame>& frame) {
  if (!frame) return Step::failed;
  if (frame->module->elf != nullptr) {
    if (const FrameRow* const row = frame->module->elf->row_at(frame->address)) {
      return step_by_row(*row);
    }
  }
  return step_by_frame_pointer();
}

// The frames of the chain from `from` on. The chain is as long as the kernel allows, or it ends
// where frame pointers do, which is right only in the outermost function.
void append_chain(const Processes::Process& process, const std::vector<std::uint64_t>& chain,
                  std::size_t from, Unwound& unwound) {
  std::optional<Frame> frame;
  for (std::size_t i = from; i < chain.size() && unwound.frames.size() < kMaxFrames; ++i) {
    frame = process.memory.find(inside_call(chain[i], i == 0));
    if (!frame) break;
    unwound.frames.push_back(*frame);
  }
  unwound.truncated = true;
  if (!frame || frame->module->elf == nullptr) return;
  const FrameRow* const row = frame->module->elf->row_at(frame->address);
  if (row == nullptr || row->frame_address().empty()) return;
  unwound.truncated = !row->kept(kKept.size() - 1).empty();
}

// Where the chain goes on after the frames that were unwound: behind the last frame's address. The
// chain cannot have more frames than were unwound. In a recursion the same address is there many
// times.
std::optional<std::size_t> rest_of_chain(const std::vector<std::uint64_t>& chain,
                                         std::uint64_t last, std::size_t unwound) {
  for (std::size_t i = std::min(chain.size(), unwound); i > 0; --i) {
    if (chain[i - 1] == last) return i;
  }
  return std::nullopt;
}

Unwound Unwinder::run(const std::vector<std::uint64_t>& chain) {
  Unwound unwound;
  while (unwound.frames.size() < kMaxFrames) {
    const std::uint64_t address = inside_call(registers_[kReturnAddress], exact_);
    const std::optional<Frame> frame = process_.memory.find(address);
    unwound.frames.push_back(frame.value_or(Frame{nullptr, address}));
    const Step step_taken = step(frame);
    if (step_taken == Step::taken && registers_[kReturnAddress] != 0) continue;
    if (step_taken == Step::failed) {
      unwound.truncated = true;
      if (const auto from =
              rest_of_chain(chain, registers_[kReturnAddress], unwound.frames.size())) {
        append_chain(process_, chain, *from, unwound);
      }
    }
    return unwound;
  }
  unwound.truncated = true;
  return unwound;
}

}  // namespace

Unwound unwind(const Processes::Process& process, const Sample& sample) {
  if (!sample.user) return {};
  if (!sample.user->stack.empty()) return Unwinder(process, *sample.user).run(sample.chain);
  Unwound unwound;
  append_chain(process, sample.chain, 0, unwound);
  return unwound;
}

}  // namespace kymo::stacks
