#include "recorder/metrics/callback_metric.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

namespace kymo {
namespace {

constexpr std::size_t kMaxWhat = 200;  // an exception's text goes into one line of a warning
// From here on a value is a negative number if it is read with a sign.
constexpr std::uint64_t kFirstNegative = std::uint64_t{1} << 63;

}  // namespace

void CallbackMetric::read(std::uint64_t* out) noexcept {
  try {
    read_({out, last_.size()});
    if (!has_value()) {
      has_value_.store(true, std::memory_order_relaxed);
    }
    std::uint64_t all_bits = 0;
    for (std::size_t i = 0; i < last_.size(); ++i) {
      all_bits |= last_[i] = out[i];
    }
    if (all_bits >= kFirstNegative) {
      const auto found = std::find_if(last_.begin(), last_.end(),
                                      [](std::uint64_t value) { return value >= kFirstNegative; });
      note_negative(*found, static_cast<std::size_t>(found - last_.begin()));
    }
    return;
  } catch (const std::exception& error) {
    note(error.what());
  } catch (...) {
    note("not a std::exception");
  }
  keep(out);  // the callback may have stored some of its values
}

void CallbackMetric::keep(std::uint64_t* out) const noexcept {
  std::copy(last_.begin(), last_.end(), out);
}

void CallbackMetric::note(const char* what) noexcept {
  const std::lock_guard lock(mutex_);
  ++errors_;
  all_errors_->fetch_add(1, std::memory_order_relaxed);
  try {
    what_ = std::string_view(what).substr(0, kMaxWhat);
    std::replace(what_.begin(), what_.end(), '\n', ' ');
  } catch (const std::bad_alloc&) {
    what_.clear();
  }
}

void CallbackMetric::note_negative(std::uint64_t value, std::size_t column) noexcept {
  const std::lock_guard lock(mutex_);
  ++negatives_;
  last_negative_ = value;
  negative_column_ = column;
  all_errors_->fetch_add(1, std::memory_order_relaxed);
}

void CallbackMetric::add_errors(std::vector<CallbackError>* errors) const {
  const std::lock_guard lock(mutex_);
  if (errors_ != 0) {
    errors->push_back({name_, errors_, what_, false, !has_value()});
  }
  if (negatives_ != 0) {
    errors->push_back({name_, negatives_,
                       std::to_string(last_negative_) + ", which is " +
                           std::to_string(static_cast<std::int64_t>(last_negative_)) +
                           " as a number with a sign" +
                           (columns_.size() == 1 ? "" : ", in " + columns_[negative_column_]),
                       true, false});
  }
}

}  // namespace kymo
