#include "recorder/sampling/profiler/losses.h"

#include <optional>
#include <utility>

#include "recorder/sampling/profiler/callback_errors.h"

namespace kymo {
namespace {

// The ticks that could not be kept; empty: none.
std::string lacking_ticks(const ProfilerStats& stats, const std::string& refusal) {
  if (stats.missed_sink_error == 0 && stats.missed_ring_full == 0) {
    return {};
  }
  std::string lost = "the recording lacks " +
                     std::to_string(stats.missed_sink_error + stats.missed_ring_full) + " of " +
                     std::to_string(stats.ticks_due) + " ticks: ";
  if (stats.missed_sink_error != 0) {
    lost += std::to_string(stats.missed_sink_error) + " rows could not be kept (" + refusal + ')';
  }
  if (stats.missed_ring_full != 0) {
    lost += (stats.missed_sink_error != 0 ? ", and for " : "for ") +
            std::to_string(stats.missed_ring_full) +
            " ticks the ring was full, because the disk or sink was too slow";
  }
  return lost;
}

// The first metric whose callback has thrown, and how many more there are; empty: none has.
std::string stale_columns(const std::vector<CallbackError>& errors) {
  std::string text;
  std::size_t more = 0;
  for (const CallbackError& error : errors) {
    if (error.negative) {
      continue;
    }
    if (text.empty()) {
      text = text_of(error);
    } else {
      ++more;
    }
  }
  return more == 0 ? text : text + " (" + std::to_string(more) + " more: see warnings())";
}

}  // namespace

Result<void> with_losses(Result<void> closed, const ProfilerStats& stats,
                         const std::string& refusal, const std::vector<CallbackError>& errors) {
  std::optional<Error> error;
  if (!closed) {
    error = closed.error();
  }
  for (const std::string& loss : {lacking_ticks(stats, refusal), stale_columns(errors)}) {
    if (loss.empty()) {
      continue;
    }
    if (error) {
      error->code = Code::data_loss;  // whatever closing has returned: rows are missing
      error->message += "; " + loss;
    } else {
      error = Error{Code::data_loss, loss, 0};
    }
  }
  return error ? Result<void>(*std::move(error)) : Result<void>();
}

Result<void> end_ring(RingMemory& ring, Result<void> closed, const Sink& sink) {
  // data_loss: the file is finished, or it was removed.
  if (closed || closed.error().code == Code::data_loss || sink.output_place().path.empty()) {
    ring.remove_file();
    return closed;
  }
  if (ring.path().empty()) {
    return closed;
  }
  Error unfinished = closed.error();
  unfinished.message += "; to finish it: kymo recover " + ring.path();
  return unfinished;
}

}  // namespace kymo
