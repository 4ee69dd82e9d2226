#pragma once

#include <cstdint>
#include <span>
#include <string>

// What is fuzzed: one function a reader, each in NAME_fuzz.cc, its seeds in corpus/NAME. It reads
// the bytes as that reader's input and checks what must hold for any; where it does not hold, the
// process ends.
namespace kymo::fuzz {

using Bytes = std::span<const std::uint8_t>;

void annotated(Bytes data);  // gVisor's format, plain and in a log
void archive(Bytes data);    // an exported checkpoint
void checksums(Bytes data);  // the list of images' checksums
void counters(Bytes data);   // counter files
void criu(Bytes data);       // CRIU's statistics and process tree images
void gaps(Bytes data);       // NAME.gaps.tsv
void http(Bytes data);       // requests, up to the HTTP library's end of them
void json(Bytes data);       // all foreign JSON: checkpoint.json, the store's, a container's
void log(Bytes data);        // CRIU's log of a failure
void metadata(Bytes data);   // NAME.meta.json
void past(Bytes data);       // ranges of a recording, as /api/past is asked for them
void recover(Bytes data);    // a ring left behind, and the recording that it belongs to
void ring(Bytes data);       // ring files, looked at from without
void rule(Bytes data);       // the flight recorder's rules
void streamer(Bytes data);   // CRIU's requests for images, and compressed images
void bodies(Bytes data);     // the rows of a store of stack profiles
void elf(Bytes data);        // programs and libraries, as stacks are unwound and named by them
void folded(Bytes data);     // folded stacks, and what a reader says of a stack profile
void pprof(Bytes data);      // profiles in the format of pprof
void rows(Bytes data);       // what the process says that reads programs for the unwinder
void symbols(Bytes data);    // perf maps, and the kernel's list of symbols
void targets(Bytes data);    // whose profiles are pulled, and what was pulled
void tsv(Bytes data);        // plain recordings
void zstd(Bytes data);       // compressed ones

// Ends the process where `holds` is false.
void require(bool holds, const char* what);

inline std::string text_of(Bytes data) {
  return {data.begin(), data.end()};
}

}  // namespace kymo::fuzz
