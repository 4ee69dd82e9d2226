// The smallest use of libkymo: a counter, a recording of it, a thousand rows a second. It says so
// and ends where the file exists already: a recording is never written over.

#include <kymo/profiler.h>
#include <kymo/registry.h>
#include <kymo/sink.h>

#include <chrono>
#include <cstdio>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: kymo-embed FILE.tsv\n", stderr);
    return 2;
  }
  kymo::Registry registry;
  const auto requests = registry.counter({.name = "requests", .help = "Requests served"});
  kymo::Profiler profiler(registry, {.sink = kymo::make_tsv_sink(argv[1])});
  if (auto started = profiler.start(); !started) {
    std::fprintf(stderr, "kymo-embed: %s\n", started.error().message.c_str());
    return 1;
  }

  for (int i = 0; i < 1000; ++i) {  // a second, faster and faster
    for (int k = 0; k < i; ++k) {
      requests->add();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  if (auto stopped = profiler.stop(); !stopped) {
    std::fprintf(stderr, "kymo-embed: %s\n", stopped.error().message.c_str());
    return 1;
  }
  std::printf("%lu rows in %s\n", profiler.stats().rows_written, argv[1]);
}
