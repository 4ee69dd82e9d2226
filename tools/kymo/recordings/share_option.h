#pragma once

#include <string>

namespace kymo::cli {

// Parses a share: "20%" and "20" are 0.2. Throws CLI11's exception, which names `option`, if `text`
// is not a share.
double parse_share(const std::string& option, const std::string& text);

}  // namespace kymo::cli
