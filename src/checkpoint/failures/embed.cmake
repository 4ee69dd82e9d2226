# Writes HEADER with the content of SOURCE as a string.
file(READ ${SOURCE} content)
file(WRITE ${HEADER} "#pragma once

#include <string_view>

namespace kymo::failures {
inline constexpr std::string_view kCatalogueJson = R\"kymo(${content})kymo\";
}
")
