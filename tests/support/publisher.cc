// A program whose counters other programs can read. It publishes them in FILE, counts a known
// amount in some threads and, separately, in a child, and prints "ready". Then it adds to `ticks`
// about once a millisecond until it is ended. At SIGUSR1 it registers another counter and a
// histogram.

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

// Counts in one more thread and in one more counter. Returns whether this process can read all of
// it.
bool count_for_oneself(kymo::Registry& registry, const kymo::Counter& counter) {
  counter.add(1'000'000);
  std::thread([&] { counter.add(500'000); }).join();
  const auto own = registry.counter(metric("a_childs"));
  if (!own) {
    return false;
  }
  own->add(9);
  const auto sampler = registry.sampler({"steps", "a_childs"}).value();
  std::vector<std::uint64_t> row(sampler->columns().size());
  sampler->read(row.data());
  return row == std::vector<std::uint64_t>{0, 2 * kAdders * kAdds + 1'500'000, 9};
}

// Forks a child without exec, which has counters of its own. Returns whether the child could count.
bool count_in_a_child(kymo::Registry& registry, const kymo::Counter& counter) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(count_for_oneself(registry, counter) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return status == 0;
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
  if (!count_in_a_child(registry, steps.with({"down"}).value())) {
    std::fputs("a child could not count for itself\n", stderr);
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::optional<kymo::Counter> more;
  std::optional<kymo::Histogram> waits;
  for (;;) {
    ticks.add();
    if (g_register_more && !more) {
      more = registry.counter(metric("more")).value();
      more->add(7);
      waits = registry
                  .histogram(
                      {"wait_us", "Of the test", kymo::Kind::counter, kymo::Unit::microseconds, {}})
                  .value();
      waits->record(5);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
