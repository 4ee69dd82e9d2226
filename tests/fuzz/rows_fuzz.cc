#include "profiler/stacks/expression.h"
#include "profiler/stacks/frame_row.h"
#include "targets.h"

namespace kymo::fuzz {

// The bytes are the answer of the process that reads programs for the unwinder. The unwinder uses
// them.
void rows(Bytes data) {
  constexpr std::uint64_t kAddress = 0x1000;
  const std::string message = text_of(data);
  if (const auto segments = stacks::segments_in(message)) {
    require(stacks::segments_in(stacks::message_of(segments)) == segments,
            "segments that are written are read as they were");
  }
  const auto row = stacks::row_in(message, kAddress);
  if (!row) return;
  require(row->begin <= kAddress && kAddress < row->end, "a row holds for the address");
  const auto again = stacks::row_in(stacks::message_of(row), kAddress);
  require(again.has_value() && again->operations == row->operations,
          "a row that is written is read as it was");
  const auto memory = [](std::uint64_t address) { return std::optional(address * 3); };
  stacks::Registers registers{};
  registers.fill(kAddress);
  static_cast<void>(stacks::evaluate(row->frame_address(), registers, 0, memory));
  for (std::size_t i = 0; i < stacks::kKept.size(); ++i) {
    static_cast<void>(stacks::evaluate(row->kept(i), registers, kAddress, memory));
  }
}

}  // namespace kymo::fuzz
