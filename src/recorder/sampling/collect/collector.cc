#include "recorder/sampling/collect/collector.h"

#include <algorithm>

#include "base/clock.h"

namespace kymo {

Collector::Collector(const Options& options, const Sampler& sampler, Ring& ring, GapQueue& gaps,
                     RecorderCounts::Collected& counts, Event& stop, Event& writer,
                     std::atomic<std::uint64_t>& start_ns)
    : options_(options),
      sampler_(sampler),
      ring_(ring),
      gaps_(gaps),
      counts_(counts),
      stop_(stop),
      writer_(writer),
      start_ns_(start_ns),
      pacer_(options.interval_ns, options.pace, options.max_spin_share, counts.pace, stop),
      realtime_bound_(options.realtime_max_share),
      standstill_(options.interval_ns),
      row_(ring.stride()) {}

void Collector::begin() {
  Pacer::reduce_wakeup_latency();
  last_ns_ = monotonic_ns();
  tick_ = newest_due(last_ns_);
  counts_.first_tick.set(tick_);
  standstill_.note(last_ns_);
}

void Collector::take_first_sample() {
  const std::uint64_t now_ns = std::max(monotonic_ns(), last_ns_);
  miss_until(newest_due(now_ns), MissCause::late);  // if the thread had to wait since begin()
  last_ns_ = now_ns;
  if (have_slot()) {
    sample_into_slot(now_ns, 0);
  }
}

void Collector::run() {
  std::uint64_t now_ns = 0;
  while (pacer_.wait_for(deadline_of(tick_), &now_ns) == Pacer::WakeReason::deadline) {
    capture(now_ns);
  }
  take_last_sample();
  if (holds_slot_) {
    hand_over();
  }
  // Wait until the writer has made room for the open gap: its ticks must not be lost.
  gaps_.close();
  while (gaps_.has_open()) {
    writer_.signal();
    static_cast<void>(stop_.wait_until(monotonic_ns() + options_.interval_ns));
    gaps_.close();
  }
}

void Collector::miss_until(std::uint64_t end, MissCause cause) {
  if (end <= tick_) {
    return;
  }
  OwnedCount& count = cause == MissCause::late     ? counts_.missed_late
                      : cause == MissCause::frozen ? counts_.missed_frozen
                                                   : counts_.missed_ring_full;
  count.add(end - tick_);
  gaps_.note(tick_, end, cause);
  tick_ = end;
}

void Collector::capture(std::uint64_t now_ns) {
  const bool clocks_changed = now_ns < last_ns_ || standstill_.clocks_diverged(now_ns);
  if (clocks_changed || now_ns >= deadline_of(tick_ + 1)) [[unlikely]] {
    catch_up(now_ns, clocks_changed);
  }
  last_ns_ = now_ns;
  if (!have_slot()) {
    back_off(now_ns);
    return;
  }
  backoff_ns_ = 0;
  sample_into_slot(now_ns, now_ns - std::min(now_ns, deadline_of(tick_)));
}

void Collector::catch_up(std::uint64_t now_ns, bool clocks_changed) {
  MissCause cause = MissCause::late;
  const std::uint64_t late_ns = now_ns - std::min(now_ns, deadline_of(tick_));
  if (clocks_changed || late_ns >= Standstill::kMinNs) {
    const Standstill::Verdict verdict = standstill_.judge(now_ns, late_ns);
    if (verdict.frozen) {
      cause = MissCause::frozen;
    }
    if (verdict.restored && holds_slot_) {
      hand_over();  // the writer checks whether its rows are still there
    }
    // The recording's clock does not go back behind its last row, so the times of rows never
    // decrease. A row is later than its capture: its time is in the middle of its sample, during which
    // the process may have been frozen.
    const std::uint64_t last_row_ns = std::max(last_ns_ - options_.start_ns, row_[0]);
    const std::uint64_t shifted =
        options_.start_ns + static_cast<std::uint64_t>(verdict.clock_shift_ns);
    options_.start_ns = now_ns - std::max(now_ns - shifted, last_row_ns);
    start_ns_.store(options_.start_ns, std::memory_order_release);
  }
  if (cause == MissCause::late) {
    count_late_by_sample(newest_due(now_ns));
  }
  miss_until(newest_due(now_ns), cause);
}

void Collector::count_late_by_sample(std::uint64_t end) {
  // Ticks that would have been missed even if the collector had gone on as soon as the sample
  // ended.
  const std::uint64_t due = std::min(end, newest_due(std::max(last_end_ns_, options_.start_ns)));
  counts_.late_sample.add(due - std::min(due, tick_));
}

bool Collector::have_slot() {
  if (!holds_slot_ && ring_.try_take_free(&slot_)) {
    holds_slot_ = true;
    rows_in_slot_ = 0;
  }
  return holds_slot_;
}

void Collector::sample_into_slot(std::uint64_t now_ns, std::uint64_t error_ns) {
  const std::uint64_t begin_ns = now_ns;
  const std::uint64_t counters_read_ns = sampler_.read(row_.data() + 1);
  // If the clock went back meanwhile, the window is 0 and not nearly 2^64.
  const std::uint64_t window_ns = std::max(monotonic_ns(), begin_ns) - begin_ns;
  // What a program counts while a slow callback runs is in the next row. So it must be later than this row.
  const std::uint64_t dated_ns =
      counters_read_ns == 0
          ? window_ns
          : std::clamp(counters_read_ns, begin_ns, begin_ns + window_ns) - begin_ns;
  row_[0] = begin_ns + dated_ns / 2 - options_.start_ns;
  last_end_ns_ = begin_ns + window_ns;
  ring_.put_row(slot_, rows_in_slot_, row_.data());
  if (rows_in_slot_++ == 0) {
    slot_begun_ns_ = begin_ns;
  }

  counts_.timing_error_ns.add(error_ns);
  counts_.timing_errors.record(error_ns);
  counts_.on_time.add(2 * error_ns <= options_.interval_ns ? 1 : 0);
  counts_.timing_error_max_ns.raise_to(error_ns);
  counts_.sample_window_ns.add(window_ns);
  counts_.sample_window_max_ns.raise_to(window_ns);
  counts_.captured.add(1);
  gaps_.close();
  ++tick_;

  standstill_.note(begin_ns + window_ns);  // now: the process may have been frozen in the sample
  bound_realtime(begin_ns);
  // Look one interval ahead. At a slow rate, the row would otherwise wait here until the next tick.
  const bool old = begin_ns + options_.interval_ns - slot_begun_ns_ >= options_.flush_ns;
  if (rows_in_slot_ == ring_.rows_per_slot() || old) {
    hand_over();
  }
}

void Collector::bound_realtime(std::uint64_t now_ns) {
  if (const double share = realtime_bound_.exceeded(now_ns); share > 0) [[unlikely]] {
    if (leave_realtime(options_.nice)) {
      counts_.realtime_given_up.set(static_cast<std::uint64_t>(1000 * share));
    }
  }
}

void Collector::hand_over() {
  ring_.hand_over(slot_, rows_in_slot_);
  holds_slot_ = false;
  if (++unsignalled_ >= options_.hand_over.hand_overs_a_signal) {
    unsignalled_ = 0;
    writer_.signal();
  }
}

void Collector::back_off(std::uint64_t now_ns) {
  backoff_ns_ =
      std::min(kMaxBackoffNs, std::max({2 * backoff_ns_, options_.interval_ns, std::uint64_t{1}}));
  writer_.signal();
  const bool stopped = stop_.wait_until(now_ns + backoff_ns_);
  const std::uint64_t woke_ns = monotonic_ns();
  counts_.backoffs.add(1);
  counts_.backoff_ns.add(woke_ns - now_ns);
  miss_until(newest_due(woke_ns) + 1, MissCause::ring_full);
  if (stopped) {
    stop_.signal();  // pass the signal on to the pacer
  }
}

void Collector::take_last_sample() {
  std::uint64_t now_ns = monotonic_ns();
  const std::uint64_t give_up_ns = now_ns + kLastSampleWaitNs;
  while (!have_slot() && now_ns < give_up_ns) {
    writer_.signal();
    static_cast<void>(stop_.wait_until(now_ns + 1'000'000));
    now_ns = monotonic_ns();
  }
  if (now_ns < last_ns_ || standstill_.clocks_diverged(now_ns)) {
    catch_up(now_ns, true);  // the clock was set since the last capture
  }
  // First the ticks that were due since the last capture, then the last sample as one more tick.
  const bool due_passed = now_ns >= deadline_of(tick_);
  if (due_passed) {
    if (holds_slot_) {
      count_late_by_sample(newest_due(now_ns));
    }
    miss_until(newest_due(now_ns) + 1, holds_slot_ ? MissCause::late : MissCause::ring_full);
  }
  if (holds_slot_) {
    sample_into_slot(now_ns, 0);  // it is before the deadline of its tick
  } else {
    miss_until(tick_ + 1, MissCause::ring_full);
  }
}

}  // namespace kymo
