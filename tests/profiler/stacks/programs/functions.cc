// functions MODE FILE MILLISECONDS: uses this much CPU time in functions, measures the time of each, and writes the
// times to FILE. It is compiled without frame pointers.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "own_time.h"

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
std::map<std::string, std::uint64_t> times;
std::uint64_t most_ns = 0;

// Keeps the compiler from making the call before it a jump (a tail call).
#define NOT_A_TAIL_CALL() asm volatile("")

[[gnu::noinline]] std::uint64_t half() {
  return own_time::burn(5 * kMillisecond);
}
[[gnu::noinline]] std::uint64_t third() {
  return own_time::burn(3 * kMillisecond);
}
[[gnu::noinline]] std::uint64_t fifth() {
  return own_time::burn(2 * kMillisecond);
}

[[gnu::noinline]] void three() {
  while (own_time::cpu_ns() < most_ns) {
    times["half"] += half();
    times["third"] += third();
    times["fifth"] += fifth();
  }
}

// Uses time at each depth of the recursion. In the profile, this time must count only once.
[[gnu::noinline]] std::uint64_t recursive(int depth) {
  const std::uint64_t own = own_time::burn(kMillisecond / 10);
  const std::uint64_t below = depth == 0 ? 0 : recursive(depth - 1);
  NOT_A_TAIL_CALL();
  return own + below;
}

[[gnu::noinline]] void recursion() {
  constexpr int kDepth = 40;
  while (own_time::cpu_ns() < most_ns) {
    times["recursive"] += recursive(kDepth);
    times["fifth"] += fifth();
  }
}

[[gnu::noinline]] void in_thread(const char* name, std::uint64_t share, std::uint64_t* used) {
  pthread_setname_np(pthread_self(), name);
  while (own_time::cpu_ns() < most_ns / 10 * share) *used += third();
}

void threads() {
  std::uint64_t slow = 0;
  std::uint64_t fast = 0;
  std::thread one(in_thread, "seven-tenths", 7, &slow);
  std::thread other(in_thread, "three-tenths", 3, &fast);
  one.join();
  other.join();
  times = {{"seven-tenths", slow}, {"three-tenths", fast}};
}

// Starts a child every few milliseconds, which lives for some milliseconds.
void children() {
  void* const memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const used = static_cast<std::uint64_t*>(memory);
  const std::uint64_t begin = own_time::cpu_ns();
  while (*used + own_time::cpu_ns() - begin < most_ns) {
    times["half"] += half();
    const pid_t child = fork();
    if (child == 0) {
      *used += fifth();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  times["fifth"] = *used;
}

// Waits, and returns how long it has waited.
std::uint64_t wait_for(std::uint64_t ns) {
  const std::uint64_t begin = own_time::read_clock(CLOCK_MONOTONIC);
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
  return own_time::read_clock(CLOCK_MONOTONIC) - begin;
}

[[gnu::noinline]] std::uint64_t long_wait() {
  const std::uint64_t waited = wait_for(20 * kMillisecond);
  NOT_A_TAIL_CALL();
  return waited;
}
[[gnu::noinline]] std::uint64_t short_wait() {
  const std::uint64_t waited = wait_for(10 * kMillisecond);
  NOT_A_TAIL_CALL();
  return waited;
}

void waits() {
  std::uint64_t waited = 0;
  while (waited < most_ns) {
    times["long_wait"] += long_wait();
    times["short_wait"] += short_wait();
    waited = times["long_wait"] + times["short_wait"];
  }
}

// Does a fixed amount of work, however long it takes: a million turns for each of the milliseconds.
[[gnu::noinline]] void turn(std::uint64_t turns) {
  for (std::uint64_t i = 0; i < turns; ++i) asm volatile("");
}

void work() {
  const auto run = [] {
    for (std::uint64_t ns = 0; ns < most_ns; ns += kMillisecond) turn(kMillisecond);
  };
  std::thread one(run);
  std::thread other(run);
  one.join();
  other.join();
}

// Makes a function at run time, like a just-in-time compiler. It counts its argument down to 0. It has a frame pointer,
// and no unwind table describes it.
void made_at_run_time() {
  constexpr unsigned char kCode[] = {
      0x55,              // push %rbp
      0x48, 0x89, 0xe5,  // mov %rsp,%rbp
      0x48, 0xff, 0xcf,  // dec %rdi
      0x75, 0xfb,        // jne to dec
      0x5d,              // pop %rbp
      0xc3,              // ret
  };
  void* const memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(memory, kCode, sizeof kCode);
  mprotect(memory, 4096, PROT_READ | PROT_EXEC);
  const std::string map = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::FILE* const file = std::fopen(map.c_str(), "w");
  std::fprintf(file, "%llx %zx made_at_run_time\n", reinterpret_cast<unsigned long long>(memory),
               sizeof kCode);
  std::fclose(file);
  const auto function = reinterpret_cast<void (*)(std::uint64_t)>(memory);
  while (own_time::cpu_ns() < most_ns) {
    const std::uint64_t begin = own_time::cpu_ns();
    function(3'000'000);
    times["made_at_run_time"] += own_time::cpu_ns() - begin;
    times["fifth"] += fifth();
  }
  unlink(map.c_str());
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  most_ns = std::strtoull(words[3], nullptr, 10) * kMillisecond;
  const std::map<std::string, void (*)()> modes{
      {"three", three}, {"recursion", recursion},   {"threads", threads}, {"children", children},
      {"waits", waits}, {"made", made_at_run_time}, {"work", work}};
  // A mode like "unlinked:three" makes the program delete its own file first.
  const std::string unlinked = "unlinked:";
  std::string name = words[1];
  if (name.rfind(unlinked, 0) == 0) {
    unlink(words[0]);
    name.erase(0, unlinked.size());
  }
  const auto mode = modes.find(name);
  if (mode == modes.end()) return 2;
  mode->second();
  own_time::write(words[2], times);
  return 0;
}
