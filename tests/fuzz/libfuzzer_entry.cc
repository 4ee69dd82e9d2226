// The entry point of libFuzzer. It is compiled once for each target. Run: NAME_fuzz
// tests/fuzz/corpus/NAME.

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kymo::fuzz::KYMO_FUZZ_TARGET({data, size});
  return 0;
}
