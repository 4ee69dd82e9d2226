#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/criu/images/image_list.h"
#include "kymo/result.h"

namespace kymo::report {

// The version of the format of checkpoint.json, kymod's record of a checkpoint.
inline constexpr std::int64_t kRecordVersion = 1;

// The largest checkpoint.json that is written or read. A larger one was not written by kymod, and
// would cost its reader many times its size. This is room for the list of the images of ten thousand processes.
inline constexpr std::size_t kMaxRecordBytes = std::size_t{16} << 20;
// The same without the list of images.
inline constexpr std::size_t kMaxRecordWithoutImages = std::size_t{1} << 20;

// Reads the checkpoint.json in the directory of a checkpoint. Follows no link there.
//
// Errors: not_found if there is none.
//         data_loss if it is damaged, or has more than kMaxRecordBytes.
//         unimplemented if its format is newer than kRecordVersion.
Result<nlohmann::json> read_checkpoint_record(const std::string& directory);

// Whether the dump came to its end. If the disk became full, or kymod was killed at that moment, the
// record still says "started", but the images have their final name, which only complete images get.
bool is_complete(const nlohmann::json& record, const std::string& directory);

// The list of images in a record: {"name", "bytes", "xxh128"} each.
inline constexpr char kImages[] = "images";
nlohmann::json json_of(const criu::ImageList& list);
// Returns nothing if the record has no list. What is wrong in it is left out of the list, and said in `fault`.
std::optional<criu::ImageList> image_list_of(const nlohmann::json& record, std::string& fault);

// "stdout" or "stderr" if the path is that of an output file which kymod made for the job of this record, in any state
// directory: .../jobs/ID/stdout. Such a file is no file of the program, and a restore makes it anew. Else empty.
std::string output_file_at(const nlohmann::json& record, const std::string& path);

}  // namespace kymo::report
