#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "kymo/export.h"

namespace kymo {

// The kind of an Error. The numbers are the status codes of gRPC (grpc/impl/codegen/status.h), so
// that the API passes an error on unchanged.
enum class Code : std::uint8_t {
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
};

// A failure. The message is one line for a person: what was tried, on what, and what to do about
// it.
struct Error {
  Code code = Code::unknown;
  std::string message;
  int errno_value = 0;  // errno of the system call that failed, else 0
};

// Makes the error for a failed system call. The message is "WHAT: <text of errno>"; the code is
// derived from errno_value.
KYMO_API Error system_error(std::string_view what, int errno_value);

namespace detail {
[[noreturn]] KYMO_API void throw_no_value(const Error& error);
[[noreturn]] KYMO_API void throw_no_error();
}  // namespace detail

// A value or an Error.
// Threads: as T.
// Cost:    that of std::variant; no allocation of its own.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition for value(), * and ->: ok(). A call that breaks it throws std::runtime_error with
  // the message of the Error.
  // Precondition for error(): !ok(). A call that breaks it throws std::logic_error.
  T& value() & { return *checked(); }
  const T& value() const& { return *checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return checked(); }
  [[nodiscard]] const Error& error() const {
    const Error* error = std::get_if<1>(&state_);
    if (error == nullptr) [[unlikely]] {
      detail::throw_no_error();
    }
    return *error;
  }

 private:
  [[nodiscard]] const T* checked() const {
    const T* value = std::get_if<0>(&state_);
    if (value == nullptr) [[unlikely]] {
      detail::throw_no_value(error());
    }
    return value;
  }
  [[nodiscard]] T* checked() { return const_cast<T*>(std::as_const(*this).checked()); }

  std::variant<T, Error> state_;
};

// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  // Precondition: !ok(). A call that breaks it throws std::logic_error.
  [[nodiscard]] const Error& error() const {
    if (!error_) [[unlikely]] {
      detail::throw_no_error();
    }
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace kymo
