// Records a few metrics in gVisor's format with the real recorder, so that a separate reader can
// check the file.
// Usage: annotated_program FILE annotated|annotated-lossy

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>

#include "kymo/annotated_sink.h"
#include "kymo/profiler.h"
#include "kymo/registry.h"
#include "kymo/sink.h"

namespace {

kymo::Result<void> record(const char* path, kymo::AnnotatedFormat format) {
  kymo::Registry registry;
  const auto calls = registry.counter_family(
      {"calls", "Calls", kymo::Kind::counter, kymo::Unit::count, {{"result", {"ok", "error"}}}});
  if (!calls) return calls.error();
  const auto lag = registry.callback({"lag_ns", "", kymo::Kind::gauge, kymo::Unit::nanoseconds, {}},
                                     [] { return UINT64_MAX; });
  if (!lag) return lag.error();
  kymo::ProfilerOptions options;
  options.sink = kymo::make_annotated_sink(path, format);
  kymo::Profiler profiler(registry, options);
  if (auto started = profiler.start(); !started) return started;
  const auto ok = calls->with({"ok"});
  const auto failed = calls->with({"error"});
  if (!ok) return ok.error();
  if (!failed) return failed.error();
  for (int i = 0; i < 100; ++i) {
    ok->add(10);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  failed->add(7);
  while (profiler.stats().rows_captured < 60) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return profiler.stop();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: annotated_program FILE annotated|annotated-lossy\n");
    return 2;
  }
  const bool lossy = std::string_view(argv[2]) == "annotated-lossy";
  const auto recorded =
      record(argv[1], lossy ? kymo::AnnotatedFormat::lossy : kymo::AnnotatedFormat::plain);
  if (!recorded) {
    std::fprintf(stderr, "annotated_program: %s\n", recorded.error().message.c_str());
    return 1;
  }
  return 0;
}
