// Runs the corpora of the fuzzers with any compiler. It also cuts each seed at every position.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <vector>

#include "base/sanitizers.h"
#include "targets.h"

namespace kymo::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(Bytes);
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Target& target, std::ostream* out) {
  *out << target.name;
}

class Corpus : public ::testing::TestWithParam<Target> {};

TEST_P(Corpus, EverySeedIsReadWholeAndCutAtEveryPlace) {
  // A sanitizer takes ten times as long. The fuzzers cover these inputs with sanitizers, too.
  constexpr std::size_t kMaxCuts = KYMO_SANITIZER ? 100 : 1000;
  int seeds = 0;
  const std::string folder = std::string(KYMO_CORPUS_DIR) + "/" + GetParam().name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                                  std::istreambuf_iterator<char>()};
    const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
    const std::size_t step = std::max<std::size_t>(1, data.size() / kMaxCuts);
    for (std::size_t size = 0; size < data.size(); size += step) {
      GetParam().run(Bytes(data).first(size));
    }
    GetParam().run(data);
    ++seeds;
  }
  EXPECT_GE(seeds, 3);
}

constexpr Target kTargets[] = {
    {"annotated", annotated},
    {"counters", counters},
    {"gaps", gaps},
    {"json", json},
    {"metadata", metadata},
    {"recover", recover},
    {"ring", ring},
    {"rule", rule},
    {"tsv", tsv},
    {"zstd", zstd},
#if KYMO_FUZZ_CRIU
    {"archive", archive},
    {"checksums", checksums},
    {"criu", criu},
    {"log", log},
    {"streamer", streamer},
#endif
#if KYMO_FUZZ_HTTP
    {"http", http},
    {"past", past},
#endif
#if KYMO_FUZZ_PROFILES
    {"bodies", bodies},
    {"targets", targets},
#endif
#if KYMO_FUZZ_STACKS
    {"elf", elf},
    {"folded", folded},
    {"pprof", pprof},
    {"rows", rows},
    {"symbols", symbols},
#endif
};

INSTANTIATE_TEST_SUITE_P(Readers, Corpus, ::testing::ValuesIn(kTargets),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace kymo::fuzz
