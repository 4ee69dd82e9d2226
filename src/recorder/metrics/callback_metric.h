#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kymo/registry.h"

namespace kymo {

// A metric that a callback reads, and what became of it.
//
// Threads: read() and keep() by the thread that has the registry's CallbackTurn; add_errors() by
// any.
class CallbackMetric {
 public:
  // `columns`: their names. Each error is counted in `all_errors`, too.
  CallbackMetric(std::string name, std::vector<std::string> columns, Registry::FamilyCallback read,
                 std::shared_ptr<std::atomic<std::uint64_t>> all_errors)
      : name_(std::move(name)),
        columns_(std::move(columns)),
        read_(std::move(read)),
        all_errors_(std::move(all_errors)),
        last_(columns_.size()) {}

  // Stores one value for each column at `out`. If the callback throws, these are the values that it
  // gave last, and the error is kept.
  void read(std::uint64_t* out) noexcept;
  // Stores the values that the callback gave last.
  void keep(std::uint64_t* out) const noexcept;
  [[nodiscard]] std::size_t columns() const { return columns_.size(); }
  // Whether the callback has returned at least once. Threads: any.
  [[nodiscard]] bool has_value() const { return has_value_.load(std::memory_order_relaxed); }
  // Appends what the callback has thrown, and the values of it that are probably negative. Appends
  // nothing if there was neither.
  void add_errors(std::vector<CallbackError>* errors) const;

 private:
  void note(const char* what) noexcept;
  void note_negative(std::uint64_t value, std::size_t column) noexcept;

  const std::string name_;
  const std::vector<std::string> columns_;
  const Registry::FamilyCallback read_;
  const std::shared_ptr<std::atomic<std::uint64_t>> all_errors_;
  std::vector<std::uint64_t> last_;
  std::atomic<bool> has_value_{false};
  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t errors_ = 0;
  std::string what_;
  std::uint64_t negatives_ = 0;
  std::uint64_t last_negative_ = 0;
  std::size_t negative_column_ = 0;  // that had it
};

}  // namespace kymo
