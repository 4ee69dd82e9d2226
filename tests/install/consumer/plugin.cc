// The plugin that host.cc loads. It brings libkymo into the process after the program has started.

#include <kymo/registry.h>

#include <cstdint>
#include <memory>
#include <thread>

// Counts to n on each of two threads, and returns the value that the registry then has.
extern "C" std::uint64_t count_to(std::uint64_t n) {
  kymo::Registry registry;
  const auto items = registry.counter({.name = "items", .help = "Items seen"});
  auto sampler = registry.sampler({});
  if (!items || !sampler) {
    return 0;
  }
  auto count = [counter = *items, n] {
    for (std::uint64_t i = 0; i < n; ++i) {
      counter.add();
    }
  };
  std::thread first(count);
  std::thread second(count);
  first.join();
  second.join();
  std::uint64_t value = 0;
  (*sampler)->read(&value);
  return value;
}
