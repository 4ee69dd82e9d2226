#include "kymo/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace kymo {
namespace {

Result<std::unique_ptr<int>> half(int n) {
  if (n % 2 != 0) {
    return Error{Code::invalid_argument, "odd", 0};
  }
  return std::make_unique<int>(n / 2);
}

TEST(Result, CarriesAMoveOnlyValue) {
  Result<std::unique_ptr<int>> result = half(8);
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 4);
}

TEST(Result, CarriesAnError) {
  const Result<std::unique_ptr<int>> result = half(7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "odd");
}

// Returns the message of the exception that `use` throws, or an empty string if it throws nothing.
template <class Use>
std::string thrown_by(Use use) {
  try {
    use();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST(Result, TheErrorWasNotSaidWhereAValueWasTakenThatIsNotThere) {
  Result<std::string> failed = Error{Code::invalid_argument, "metric 'Bad': a name is [a-z]", 0};
  const Result<std::string> fixed = failed;
  const std::string message = "metric 'Bad': a name is [a-z]";
  EXPECT_EQ(thrown_by([&] { static_cast<void>(failed.value()); }), message);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(fixed.value()); }), message);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(failed->size()); }), message);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(fixed->size()); }), message);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(*failed); }), message);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(*fixed); }), message);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(*std::move(failed)); }), message);
}

TEST(Result, ASuccessHasNoError) {
  const Result<int> value = 7;
  const std::string message = "kymo::Result: error() was called, and there is no error";
  EXPECT_EQ(thrown_by([&] { static_cast<void>(value.error()); }), message);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(Result<void>().error()); }), message);
}

TEST(SystemError, SaysWhatOnWhatAndWhy) {
  const Error error = system_error("cannot open /x", ENOENT);
  EXPECT_EQ(error.code, Code::not_found);
  EXPECT_EQ(error.errno_value, ENOENT);
  EXPECT_EQ(error.message, "cannot open /x: No such file or directory");
}

}  // namespace
}  // namespace kymo
