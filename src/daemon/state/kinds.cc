#include "daemon/state/kinds.h"

#include <algorithm>
#include <cctype>

namespace kymo::daemon {

v1::Runtime to_api(runtime::Kind kind) {
  std::string name(runtime::name_of(kind));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  v1::Runtime value = v1::RUNTIME_UNSPECIFIED;
  static_cast<void>(v1::Runtime_Parse(name, &value));
  return value;
}

Result<runtime::Kind> kind_of(v1::Runtime runtime) {
  if (runtime == v1::RUNTIME_UNSPECIFIED) return runtime::Kind{};
  for (const runtime::RuntimeRow& row : runtime::runtime_table()) {
    const runtime::Kind kind = runtime::kind_named(row.name).value();
    if (to_api(kind) == runtime) return kind;
  }
  return Error{Code::invalid_argument, "unknown runtime " + std::to_string(runtime) +
                                           ": choose one of " + runtime::runtime_names()};
}

Result<runtime::Kind> kind_named(const std::string& name) {
  if (name.empty()) return runtime::Kind{};
  if (const auto kind = runtime::kind_named(name)) return *kind;
  return Error{Code::unimplemented, "it was made by the runtime '" + name +
                                        "', but this kymod only knows " + runtime::runtime_names()};
}

}  // namespace kymo::daemon
