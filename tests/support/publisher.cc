// A program whose counters can be read from without: publishes them in FILE, counts a known amount
// in some threads and in a child, says "ready", and then counts `ticks` about once a millisecond
// until it is ended. At SIGUSR1 it registers one counter more.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "kymo/counter_file.h"
#include "kymo/registry.h"

namespace {

constexpr int kAdders = 4;
constexpr int kAdds = 1000;
std::atomic<bool> g_register_more{false};

kymo::Metric metric(const char* name, std::vector<kymo::Field> fields = {}) {
  return {name, "Of the test", kymo::Kind::counter, kymo::Unit::count, std::move(fields)};
}

// A child without exec: what it counts is its own.
void count_in_a_child(const kymo::Counter& counter) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    counter.add(1'000'000);
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: publisher FILE THREADS\n", stderr);
    return 2;
  }
  ::signal(SIGUSR1, [](int) { g_register_more = true; });
  kymo::Registry registry;
  const auto ticks = registry.counter(metric("ticks")).value();
  kymo::CounterFileOptions options;
  options.threads = static_cast<std::size_t>(std::atoi(argv[2]));
  if (const auto published = kymo::publish_counters(argv[1], options); !published) {
    std::fprintf(stderr, "%s\n", published.error().message.c_str());
    return 1;
  }
  const auto steps = registry.counter_family(metric("steps", {{"way", {"up", "down"}}})).value();
  std::vector<std::thread> adders;
  for (int i = 0; i < kAdders; ++i) {
    adders.emplace_back([down = steps.with({"down"}).value()] {
      for (int n = 0; n < kAdds; ++n) {
        down.add(2);
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& adder : adders) {
    adder.join();
  }
  count_in_a_child(steps.with({"down"}).value());
  std::puts("ready");
  std::fflush(stdout);
  std::optional<kymo::Counter> more;
  for (;;) {
    ticks.add();
    if (g_register_more && !more) {
      more = registry.counter(metric("more")).value();
      more->add(7);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
