#include "lens/analysis/row_pieces.h"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace kymo::analysis {
namespace {

constexpr std::uint64_t kBytesWorthAThread = 4 * 1024 * 1024;

// `asked` threads (0: one for each core that this process may use), but at most one for each
// kBytesWorthAThread.
unsigned threads_for(const PlainText& text, unsigned asked) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const bool known = ::sched_getaffinity(0, sizeof cpus, &cpus) == 0;
  const auto cores = static_cast<unsigned>(known ? CPU_COUNT(&cpus) : 1);
  const std::uint64_t worth = (text.end - text.begin) / kBytesWorthAThread;
  return static_cast<unsigned>(std::min<std::uint64_t>(asked == 0 ? cores : asked, worth));
}

}  // namespace

Result<void> take_rows(TsvReader& reader, unsigned threads,
                       const std::function<void(const RowPiece&)>& take) {
  if (const std::optional<PlainText> text = reader.plain_text()) {
    if (const unsigned many = threads_for(*text, threads); many > 1) {
      if (auto skipped = reader.skip(take_in_parallel(*text, many, take)); !skipped) return skipped;
    }
  }
  RowBlock block = reader.make_block();
  std::vector<ColumnSum> sums;
  for (;;) {
    const Result<bool> more = reader.next(block);
    if (!more) return more.error();
    if (!*more) return {};
    sums.clear();
    for (std::size_t i = 0; i <= reader.columns().size(); ++i) {
      sums.push_back(sum_of(block.column(i)));
    }
    take({block, sums});
  }
}

}  // namespace kymo::analysis
