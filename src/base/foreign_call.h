#pragma once

#include <exception>
#include <string>
#include <utility>

#include "kymo/result.h"

namespace kymo {

// Calls `work`, which runs code of the program that embeds libkymo, and returns what it returns. An
// exception becomes an Error that begins with `who`, such as "the sink". On a thread of libkymo, it
// would end the program otherwise.
template <class Work>
Result<void> call_foreign(const char* who, const Work& work) {
  const auto thrown = [who](const char* what) {
    std::string message = who;
    message += " has thrown: ";
    message += what;
    return Error{Code::internal, std::move(message), 0};
  };
  try {
    return work();
  } catch (const std::exception& error) {
    return thrown(error.what());
  } catch (...) {
    return thrown("not a std::exception");
  }
}

}  // namespace kymo
