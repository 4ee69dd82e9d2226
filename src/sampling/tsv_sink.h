#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kymo/sink.h"

namespace kymo {

// make_tsv_sink() (kymo/sink.h) that follows others: `earlier` are parts that recordings before
// this one have left, oldest first. keep_bytes counts them, too, and they are removed first.
std::shared_ptr<Sink> make_tsv_sink(std::string path, TsvOptions options,
                                    std::vector<std::string> earlier);

}  // namespace kymo
