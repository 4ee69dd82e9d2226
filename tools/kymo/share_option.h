#pragma once

#include <string>

namespace kymo::cli {

// "20%" or "20" is a fifth. What is no share is wrong usage of `option`: CLI11's exception.
double parse_share(const std::string& option, const std::string& text);

}  // namespace kymo::cli
