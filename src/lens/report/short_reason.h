#pragma once

#include <string>
#include <string_view>

namespace kymo::report {

// Shortens an error for a table cell: at most 80 bytes, printable, on one line. It keeps the cause,
// which is at the end of the error, before the advice ("; see ...", or the remedy of an explained
// failure). `kymo inspect` shows the whole error.
std::string short_reason(std::string_view error);

}  // namespace kymo::report
