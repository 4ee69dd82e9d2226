#pragma once

#include <cstdint>
#include <span>
#include <string>

// The fuzz targets: one function for each reader, in NAME_fuzz.cc, with its seeds in corpus/NAME.
// Each reads the bytes as the input of that reader, and checks what must hold for any input. If a
// check fails, the process ends.
namespace kymo::fuzz {

using Bytes = std::span<const std::uint8_t>;

void annotated(Bytes data);  // gVisor's format, plain and in a log
void archive(Bytes data);    // an exported checkpoint
void checksums(Bytes data);  // the list of images' checksums
void counters(Bytes data);   // counter files
void criu(Bytes data);       // CRIU's statistics and process tree images
void gaps(Bytes data);       // NAME.gaps.tsv
void http(Bytes data);       // HTTP requests, up to where the HTTP library sees their end
void json(Bytes data);       // all JSON from outside: checkpoint.json, the store's, a container's
void log(Bytes data);        // CRIU's log of a failure
void metadata(Bytes data);   // NAME.meta.json
void past(Bytes data);       // requests for a range of a recording, as /api/past gets them
void recover(Bytes data);    // a ring that was left, and the recording to which it belongs
void ring(Bytes data);       // ring files, read by another process
void rule(Bytes data);       // the flight recorder's rules
void streamer(Bytes data);   // CRIU's requests for images, and compressed images
void bodies(Bytes data);     // the rows of a store of stack profiles
// Programs and libraries, as the unwinder and the symbol reader read them.
void elf(Bytes data);
void folded(Bytes data);   // folded stacks, and a reader's answer about a stack profile
void pprof(Bytes data);    // profiles in the format of pprof
void rows(Bytes data);     // the answer of the process that reads programs for the unwinder
void symbols(Bytes data);  // perf maps, and the kernel's list of symbols
// The list of targets whose profiles are pulled, and the pulled profiles.
void targets(Bytes data);
void tsv(Bytes data);   // plain recordings
void zstd(Bytes data);  // compressed recordings

// Ends the process if `holds` is false.
void require(bool holds, const char* what);

inline std::string text_of(Bytes data) {
  return {data.begin(), data.end()};
}

}  // namespace kymo::fuzz
