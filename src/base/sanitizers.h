#pragma once

// Which sanitizers this is compiled with, as 0 or 1: GCC has a macro for each, clang a feature.

#if defined(__has_feature)
#define KYMO_HAS_FEATURE(name) __has_feature(name)
#else
#define KYMO_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || KYMO_HAS_FEATURE(address_sanitizer)
#define KYMO_ADDRESS_SANITIZER 1
#else
#define KYMO_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || KYMO_HAS_FEATURE(thread_sanitizer)
#define KYMO_THREAD_SANITIZER 1
#else
#define KYMO_THREAD_SANITIZER 0
#endif

#define KYMO_SANITIZER (KYMO_ADDRESS_SANITIZER || KYMO_THREAD_SANITIZER)
