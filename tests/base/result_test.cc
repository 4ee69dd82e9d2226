#include "kymo/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

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
  EXPECT_THROW(static_cast<void>(result.value()), std::bad_variant_access);
}

TEST(SystemError, SaysWhatOnWhatAndWhy) {
  const Error error = system_error("cannot open /x", ENOENT);
  EXPECT_EQ(error.code, Code::not_found);
  EXPECT_EQ(error.errno_value, ENOENT);
  EXPECT_EQ(error.message, "cannot open /x: No such file or directory");
}

}  // namespace
}  // namespace kymo
