#pragma once

#include <string>
#include <string_view>

namespace kymo::report {

// What of an error fits into a table's cell: at most 80 bytes, printable, on one line. Its cause
// stands at its end, before what to do about it ("; see ..."): that is what is kept. The whole
// error is shown by `kymo inspect`.
std::string short_reason(std::string_view error);

}  // namespace kymo::report
