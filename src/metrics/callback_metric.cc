#include "metrics/callback_metric.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

namespace kymo {
namespace {

constexpr std::size_t kMaxWhat = 200;  // an exception's text goes into one line of a warning

}  // namespace

void CallbackMetric::read(std::uint64_t* out) noexcept {
  try {
    read_(out);
    std::copy_n(out, last_.size(), last_.begin());
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

CallbackError CallbackMetric::error() const {
  const std::lock_guard lock(mutex_);
  return {name_, errors_, what_};
}

}  // namespace kymo
