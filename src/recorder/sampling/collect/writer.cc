#include "recorder/sampling/collect/writer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/foreign_call.h"
#include "recorder/sampling/collect/pacer.h"

namespace kymo {
namespace {

constexpr const char* kSink = "the sink";

}  // namespace

OutputPosition position_of(const OutputPlace& place) {
  return {place.file, place.bytes};
}

Writer::Writer(std::uint64_t interval_ns, std::uint64_t nap_ns, Ring& ring, GapQueue& gaps,
               RecorderCounts::Written& counts, LateCauses& late_causes, Sink& sink,
               SinkError& sink_error, Event& wake, std::function<ProfilerStats()> stats)
    : interval_ns_(interval_ns),
      nap_ns_(nap_ns),
      ring_(ring),
      gaps_(gaps),
      counts_(counts),
      late_causes_(late_causes),
      sink_(sink),
      sink_error_(sink_error),
      wake_(wake),
      stats_(std::move(stats)) {}

void Writer::collector_done() noexcept {
  // Release: pairs with the acquire in run(), which then finds every slot and gap in the queues.
  collector_done_.store(true, std::memory_order_release);
  wake_.signal();
}

void Writer::run() {
  // Otherwise a busy thread on the same CPU could delay the writer until the ring is full.
  Pacer::reduce_wakeup_latency();
  std::uint64_t next_progress_ns = monotonic_ns() + kProgressNs;
  bool done = false;
  while (!done) {
    static_cast<void>(wake_.wait_until(std::min(next_progress_ns, monotonic_ns() + nap_ns_)));
    done = collector_done_.load(std::memory_order_acquire);
    drain();
    if (const std::uint64_t now_ns = monotonic_ns();
        now_ns >= next_progress_ns || next_progress_ns - now_ns > kProgressNs) {
      if (!done) {
        late_causes_.look();
      }
      keep_error(call_foreign(kSink, &sink_, [this]() -> Result<void> {
        sink_.progress(stats_());
        sink_error_.set_lost(lost());
        return {};
      }));
      next_progress_ns = now_ns + kProgressNs;
    }
  }
  late_causes_.finish();
  close_refused_gap();
  keep_error(call_foreign(kSink, &sink_, [this]() -> Result<void> {
    sink_error_.set_lost(lost());  // also of the last rows
    return {};
  }));
}

LostRows Writer::lost() const {
  LostRows lost = sink_.lost_rows();
  if (ring_.memory().lost_file()) {
    lost.text += lost.text.empty() ? "" : "; ";
    lost.text += "the ring file " + ring_.memory().path() +
                 " was removed, renamed or replaced by another program: if this program is killed, "
                 "the rows that are not in the recording yet are lost";
  }
  return lost;
}

void Writer::drain() {
  Ring::Slot slot;
  Rows rows;
  while (ring_.try_take_full(&slot, &rows)) {
    drain_gaps();
    write_slot(slot, rows);
    ring_.give_back(slot);
  }
  drain_gaps();
}

void Writer::drain_gaps() {
  Gap gap;
  while (gaps_.try_take(&gap)) {
    pass_on(gap);
  }
}

void Writer::write_slot(const Ring::Slot& slot, const Rows& rows) {
  if (!ring_.is_intact(slot)) {
    ring_.forget_rows(slot);
    refuse(last_tick_ + 1, last_tick_ + rows.count, rows.count,
           "the ring was used by another run of this process since its checkpoint");
    last_tick_ += rows.count;
    return;
  }
  if (rows.count > 0) {
    last_tick_ = rows.row(rows.count - 1)[0] / interval_ns_;
  }
  const Result<void> written = call_foreign(kSink, &sink_, [&]() -> Result<void> {
    ring_.begin_output(slot, position_of(sink_.output_place()));
    Result<void> accepted = sink_.write(rows);
    counts_.bytes.set(sink_.bytes_written());
    if (accepted) {
      ring_.accept_output(position_of(sink_.output_place()));
    }
    return accepted;
  });
  if (!written) {
    ring_.forget_rows(slot);
    refuse(rows.row(0)[0] / interval_ns_, last_tick_, rows.count, written.error().message);
    return;
  }
  close_refused_gap();
  counts_.rows.add(rows.count);
}

void Writer::refuse(std::uint64_t first, std::uint64_t last, std::size_t rows,
                    const std::string& why) {
  counts_.missed_sink_error.add(rows);
  if (!refused_) {
    refused_ = Gap{first * interval_ns_, 0, 0, MissCause::sink_error};
    sink_error_.set_refusal(why);
  }
  refused_->end_ns = (last + 1) * interval_ns_;
  refused_->ticks += rows;
}

void Writer::close_refused_gap() {
  if (refused_) {
    pass_on(*refused_);
    refused_.reset();
  }
}

void Writer::pass_on(const Gap& gap) {
  keep_error(call_foreign(kSink, &sink_, [this, &gap]() -> Result<void> {
    sink_.gap(gap);
    return {};
  }));
}

void Writer::keep_error(const Result<void>& outcome) {
  if (!outcome && !error_) {
    error_ = outcome.error();
  }
}

}  // namespace kymo
