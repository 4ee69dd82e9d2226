#pragma once

#include <exception>
#include <string>
#include <utility>

#include "kymo/result.h"

namespace kymo {

// Marks that this thread runs code of the program that embeds libkymo, while `owner` waits for it. If that
// code calls a function of `owner` that waits for the thread, the function can refuse instead.
//
// Threads: each has marks of its own.
class ForeignCall {
 public:
  ForeignCall(const void* owner, const char* who) noexcept
      : owner_(owner), who_(who), before_(newest_) {
    newest_ = this;
  }
  ~ForeignCall() { newest_ = before_; }
  ForeignCall(const ForeignCall&) = delete;
  ForeignCall& operator=(const ForeignCall&) = delete;

  // Who runs on this thread for this owner, such as "the sink"; null: nobody.
  static const char* of(const void* owner) noexcept {
    const ForeignCall* call = newest_;
    while (call != nullptr && call->owner_ != owner) call = call->before_;
    return call == nullptr ? nullptr : call->who_;
  }
  // Whom the newest mark of this thread is for; null: there is none. Marks of other threads that work for this
  // one have the same owner.
  static const void* owner() noexcept { return newest_ == nullptr ? nullptr : newest_->owner_; }

 private:
  const void* const owner_;
  const char* const who_;
  const ForeignCall* const before_;
  // NOLINTNEXTLINE(readability-identifier-naming): clang-tidy takes it for a global variable
  static inline constinit thread_local const ForeignCall* newest_ = nullptr;
};

// Calls `work`, which runs code of the program that embeds libkymo for `owner`, and returns what it
// returns. An exception becomes an Error that begins with `who`, such as "the sink". On a thread of
// libkymo, it would end the program otherwise.
template <class Work>
Result<void> call_foreign(const char* who, const void* owner, const Work& work) {
  const ForeignCall mark(owner, who);
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
