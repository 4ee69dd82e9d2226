#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/kymo/v1/kymo.pb.h"
#include "checkpoint/criu/images/image_codec.h"
#include "checkpoint/runtimes/table.h"
#include "kymo/result.h"

namespace kymo::daemon {

// How the images of a dump are stored if the request asks for streaming or for compression. Nothing:
// it does not.
// Errors: invalid_argument: the options contradict each other, or there is no such compression;
//         unimplemented: with rounds of pre-dump.
Result<std::optional<criu::Encoding>> encoding_of(const v1::DumpRequest& request);

// The compression that a request asks for.
// Errors: invalid_argument: there is no such compression.
Result<criu::Compression> compression_of(v1::Compression asked);

// "zstd". Empty: the images are not compressed.
std::string_view compression_name(criu::Compression compression);

bool is_compressed(const std::optional<criu::Encoding>& stream);

// The level of a compression; 1 if the request has none.
int level_of(const criu::Encoding& encoding);

// "zstd, level 3". Empty: the stream is not compressed.
std::string codec_of(const std::optional<criu::Encoding>& stream);

// Whether the images pass through kymod although the request does not ask for that. Then CRIU never
// waits for their disk, so it can be ended at any time (docs/jobs.md). CRIU cannot stream a dump
// that has parent images, and a container's runtime cannot tell CRIU to stream.
bool streams_by_default(const v1::DumpRequest& request, runtime::Kind kind);

// The option of the request that --compression excludes: "--pre-dump" or "--no-stream". Empty: there is none.
std::string excludes_compression(const v1::DumpRequest& request);

}  // namespace kymo::daemon
