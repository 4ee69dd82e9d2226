// The fuzzer's corpus, run through the same checks by any compiler; and each seed cut at every
// place.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "read_recording.h"

namespace kymo::tests {
namespace {

TEST(TsvCorpus, EverySeedIsReadWholeAndCutAtEveryPlace) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KYMO_CORPUS_DIR)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                                  std::istreambuf_iterator<char>()};
    const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
    for (std::size_t size = 0; size <= data.size(); ++size) {
      read_recording(data.data(), size);
    }
    ++seeds;
  }
  EXPECT_GE(seeds, 10);
}

}  // namespace
}  // namespace kymo::tests
