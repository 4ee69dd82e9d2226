#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "checkpoint/inside/bpf_counts.h"
#include "checkpoint/inside/sources.h"

namespace kymo::inside {

// Columns of CRIU and of the target by BPF: exact times by state and reason, and system calls by
// class (docs/phases.md). Unlike the files of /proc, they also move within a long stretch.
class BpfSource : public Source {
 public:
  // Without `criu` there are only columns of the target.
  BpfSource(std::unique_ptr<BpfCounts::View> view, const Observed& target,
            std::shared_ptr<Subjects> subjects, bool pages, bool criu = true);

  // Counts what this thread starts as CRIU. To be called before CRIU starts.
  void follow(pid_t thread) { view_->follow(thread); }
  // To be called before a restore, with the processes that it will make.
  void expect(const std::vector<pid_t>& restored) { view_->expect(restored); }
  [[nodiscard]] const std::vector<Metric>& columns() const override { return columns_; }
  void read(std::uint64_t now_monotonic_ns, std::span<std::uint64_t> values) override;
  [[nodiscard]] std::string missing() const override;
  [[nodiscard]] std::uint64_t longest_disk_wait_ns() const override {
    return longest_disk_wait_ns_;
  }

 private:
  void look();

  const std::unique_ptr<BpfCounts::View> view_;
  const std::shared_ptr<Subjects> subjects_;
  const bool restores_;
  const bool criu_;
  const bool pages_;
  bool target_known_;
  std::uint64_t longest_disk_wait_ns_ = 0;
  std::vector<Metric> columns_;
  std::vector<std::uint64_t> highest_;  // of each column, since a reading may be a little behind
};

// Of a process and its descendants, without CRIU; for a program that loads BPF for it alone.
// Errors: those of BpfCounts.
Result<std::unique_ptr<Source>> bpf_source_of_process(pid_t pid);

}  // namespace kymo::inside
