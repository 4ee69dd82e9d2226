#include "recorder/sampling/collect/recorder_metrics.h"

namespace kymo {

std::vector<RecorderMetric> recorder_metrics() {
  using C = const RecorderCounts&;
  const auto counter = [](const char* name, const char* help, Unit unit) {
    return Metric{name, help, Kind::counter, unit, {}};
  };
  return {
      // The sink gets many rows at once: a rate of what it accepted would be that of its calls.
      {counter("profiler_rows",
               "Rows that were taken; those that the sink refused are missed ticks, too",
               Unit::count),
       [](C c) { return c.collected.captured.get(); }},
      {counter("profiler_missed_ticks", "Ticks that left no row, for any cause", Unit::count),
       [](C c) {
         return c.collected.missed_late.get() + c.collected.missed_ring_full.get() +
                c.collected.missed_frozen.get() + c.written.missed_sink_error.get();
       }},
      {counter("profiler_backoffs", "Times the collector waited because the ring was full",
               Unit::count),
       [](C c) { return c.collected.backoffs.get(); }},
      {counter("profiler_timing_error_ns",
               "Time from the tick to the beginning of its sample, summed over all rows",
               Unit::nanoseconds),
       [](C c) { return c.collected.timing_error_ns.get(); }},
      {counter("profiler_written_bytes", "Bytes of recording that the sink accepted", Unit::bytes),
       [](C c) { return c.written.bytes.get(); }},
  };
}

}  // namespace kymo
