#include "lens/report/envelope.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace kymo::report {

void Envelope::add(const Rows& rows) {
  for (std::size_t i = 0; i < rows.count; ++i) {
    const auto row = rows.row(i);
    add(row[0], [&](std::size_t k) { return row[columns_[k].word]; });
  }
}

void Envelope::add(std::uint64_t time_ns, const std::function<std::uint64_t(std::size_t)>& word) {
  const std::uint64_t span = span_ns_ == 0 ? span_ + 1 : time_ns / span_ns_;
  if (holding_ && span != span_) close();
  span_ = span;
  for (std::size_t k = 0; k < columns_.size(); ++k) open_[k].add(time_ns, word(k));
  time_ns_ = time_ns;
  holding_ = true;
}

void Envelope::close() {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // null in JSON
  times_.push_back(time_ns_);
  for (std::size_t k = 0; k < columns_.size(); ++k) {
    out_[k].last.push_back(open_[k].last());
    const auto extremes = open_[k].end_span().value_or(Thinning::Extremes{kNone, kNone});
    out_[k].low.push_back(extremes.low);
    out_[k].high.push_back(extremes.high);
  }
  holding_ = false;
}

nlohmann::json Envelope::take(bool all) {
  if (all && holding_) close();
  nlohmann::json columns = nlohmann::json::array();
  for (Out& out : out_) {
    columns.push_back({{"last", std::move(out.last)},
                       {"low", std::move(out.low)},
                       {"high", std::move(out.high)}});
    out = {};
  }
  nlohmann::json taken{{"time", std::move(times_)}, {"columns", std::move(columns)}};
  times_ = {};
  return taken;
}

}  // namespace kymo::report
