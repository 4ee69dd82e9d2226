// kymo-churn: a workload to checkpoint. It keeps a given amount of memory changing at a bounded
// rate and prints a line `count N` ten times a second, N being the pages it has rewritten so far.
// Before a page is rewritten it is checked against what was written last, so that a restore which
// lost or mixed up memory ends the program with an error instead of going unnoticed.

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "kymo/version.h"

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kPageWords = kPageBytes / sizeof(std::uint64_t);
constexpr std::uint64_t kPagesPerMib = (1U << 20U) / kPageBytes;
constexpr std::uint64_t kTickNs = 5'000'000;
constexpr std::uint64_t kTicksPerLine = 20;

constexpr const char* kUsage =
    "usage: kymo-churn [--mib N] [--rate MIB_PER_SECOND]\n"
    "  --mib N     memory to keep changing (default 512)\n"
    "  --rate R    how much of it to rewrite each second, in MiB (default 64)\n";

struct Options {
  std::uint64_t mib = 512;
  std::uint64_t rate_mib = 64;
};

// splitmix64: cheap, and its output does not compress, so that images are as large as the memory.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// A page holds its number, its generation, and then words that follow from both.
void write_page(std::uint64_t* page, std::uint64_t number, std::uint64_t generation) {
  page[0] = number;
  page[1] = generation;
  std::uint64_t state = number ^ (generation << 32U);
  for (std::size_t i = 2; i < kPageWords; ++i) {
    page[i] = next_random(state);
  }
}

bool page_is_whole(const std::uint64_t* page, std::uint64_t number) {
  if (page[0] != number) {
    return false;
  }
  std::uint64_t state = number ^ (page[1] << 32U);
  for (std::size_t i = 2; i < kPageWords; ++i) {
    if (page[i] != next_random(state)) {
      return false;
    }
  }
  return true;
}

bool print_count(std::uint64_t count) {
  return dprintf(STDOUT_FILENO, "count %lu\n", count) > 0;
}

// Waits one tick of the monotonic clock. Relative on purpose: a restored process has been away, and
// must not run after the deadlines it missed.
void wait_tick() {
  timespec tick{0, static_cast<long>(kTickNs)};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &tick, &tick) == EINTR) {
  }
}

int churn(const Options& options) {
  const std::uint64_t pages = options.mib * kPagesPerMib;
  void* memory = mmap(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "kymo-churn: cannot map %lu MiB: %s; ask for less with --mib\n",
                 options.mib, std::strerror(errno));
    return 1;
  }
  auto* words = static_cast<std::uint64_t*>(memory);
  for (std::uint64_t number = 0; number < pages; ++number) {
    write_page(words + number * kPageWords, number, 0);
  }

  const std::uint64_t pages_per_second = options.rate_mib * kPagesPerMib;
  std::uint64_t random_state = 1;
  std::uint64_t count = 0;
  std::uint64_t credit = 0;  // pages * ns per second that the rate allows by now
  for (std::uint64_t tick = 0;; ++tick) {
    if (tick % kTicksPerLine == 0 && !print_count(count)) {
      return 1;
    }
    wait_tick();
    credit += pages_per_second * kTickNs;
    for (; credit >= 1'000'000'000U; credit -= 1'000'000'000U) {
      const std::uint64_t number = next_random(random_state) % pages;
      std::uint64_t* page = words + number * kPageWords;
      if (!page_is_whole(page, number)) {
        std::fprintf(stderr, "kymo-churn: page %lu is not what was written to it\n", number);
        return 1;
      }
      write_page(page, number, page[1] + 1);
      ++count;
    }
  }
}

bool parse_number(std::string_view text, std::uint64_t least, std::uint64_t most,
                  std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= least &&
         value <= most;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::uint64_t kMaxMib = 1U << 20U;
  const option known[] = {{"mib", required_argument, nullptr, 'm'},
                          {"rate", required_argument, nullptr, 'r'},
                          {"help", no_argument, nullptr, 'h'},
                          {"version", no_argument, nullptr, 'v'},
                          {nullptr, 0, nullptr, 0}};
  Options options;
  for (int choice = 0; (choice = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    bool good = true;
    switch (choice) {
      case 'm':
        good = parse_number(optarg, 1, kMaxMib, options.mib);
        break;
      case 'r':
        good = parse_number(optarg, 1, kMaxMib, options.rate_mib);
        break;
      case 'h':
        std::fputs(kUsage, stdout);
        return 0;
      case 'v':
        std::puts("kymo-churn " KYMO_VERSION);
        return 0;
      default:
        return 2;
    }
    if (!good) {
      std::fprintf(stderr, "kymo-churn: --%s %s: want a whole number of MiB, at most %lu\n",
                   choice == 'm' ? "mib" : "rate", optarg, kMaxMib);
      return 2;
    }
  }
  if (optind != argc) {
    std::fprintf(stderr, "kymo-churn: unexpected argument '%s'\n%s", argv[optind], kUsage);
    return 2;
  }
  return churn(options);
}
