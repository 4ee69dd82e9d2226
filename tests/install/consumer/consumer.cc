// Counts, records, and checks that the last row of the recording has the count.

#include <kymo/profiler.h>
#include <kymo/registry.h>
#include <kymo/sink.h>
#include <kymo/version.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  constexpr int kThreads = 2;
  constexpr int kAdds = 100'000;
  kymo::Registry registry;
  const auto items = registry.counter({.name = "items", .help = "Items seen"});
  if (!items) {
    std::fprintf(stderr, "%s\n", items.error().message.c_str());
    return 1;
  }
  kymo::Profiler profiler(registry, {.sink = kymo::make_tsv_sink(argv[1])});
  if (const auto started = profiler.start(); !started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([counter = *items] {
      for (int k = 0; k < kAdds; ++k) {
        counter.add();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  if (const auto stopped = profiler.stop(); !stopped) {
    std::fprintf(stderr, "%s\n", stopped.error().message.c_str());
    return 1;
  }

  std::ifstream recording(argv[1]);
  std::string line;
  std::string last;
  while (std::getline(recording, line)) {
    last = line;
  }
  const std::string value = last.substr(last.find('\t') + 1);
  std::printf("libkymo %s, last value %s\n", KYMO_VERSION, value.c_str());
  return value == std::to_string(kThreads * kAdds) ? 0 : 1;
}
