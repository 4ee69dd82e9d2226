// libFuzzer's way in. Run: tsv_fuzz tests/fuzz/corpus/tsv (see CONTRIBUTING).

#include "read_recording.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kymo::tests::read_recording(data, size);
  return 0;
}
