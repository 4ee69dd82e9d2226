#pragma once

#include <gtest/gtest.h>

// Whether a text has this part. A failure shows both.
#define EXPECT_SAYS(text, part) EXPECT_PRED_FORMAT2(::testing::IsSubstring, part, text)
#define EXPECT_SAYS_NOT(text, part) EXPECT_PRED_FORMAT2(::testing::IsNotSubstring, part, text)
#define ASSERT_SAYS(text, part) ASSERT_PRED_FORMAT2(::testing::IsSubstring, part, text)
