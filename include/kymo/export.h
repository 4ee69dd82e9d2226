#pragma once

#if __cplusplus < 202002L
#error "kymo's headers need C++20 or later: compile with -std=c++20"
#endif

// KYMO_API marks what the shared libkymo exports; everything else is built hidden.
#if defined(__GNUC__)
#define KYMO_API __attribute__((visibility("default")))
#else
#define KYMO_API
#endif
