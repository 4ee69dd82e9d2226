# Warnings and sanitizers, carried by one private interface target so that nothing is set globally and
# nothing leaks into a consumer's build.
add_library(kymo_warnings INTERFACE)
target_compile_options(kymo_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wcast-align -Wundef -Wformat=2)

# subobject-linkage: a unity build includes one .cc into another, and it takes their anonymous namespaces for a
# header's. restrict: at -O3 GCC 12 finds overlaps of 2^63 bytes in std::string (its bug 105651).
target_compile_options(kymo_warnings INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

set(KYMO_SANITIZE "" CACHE STRING "Sanitizers to build with: 'address,undefined', 'thread', or empty")
if(KYMO_SANITIZE)
  # Without what UndefinedBehaviourSanitizer adds a test's own code compiles in half the time; what it tests has it.
  target_compile_options(kymo_warnings INTERFACE -fsanitize=${KYMO_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<BOOL:$<TARGET_PROPERTY:KYMO_TEST>>:-fno-sanitize=undefined>)
  target_link_options(kymo_warnings INTERFACE -fsanitize=${KYMO_SANITIZE})
endif()

# Coverage steers the fuzzer; float-cast-overflow is no part of clang's "undefined".
if(KYMO_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "KYMO_BUILD_FUZZERS needs clang: use the preset fuzz, or CMAKE_CXX_COMPILER=clang++")
  endif()
  set(kymo_fuzz_sanitizers -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow)
  target_compile_options(kymo_warnings INTERFACE ${kymo_fuzz_sanitizers} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(kymo_warnings INTERFACE ${kymo_fuzz_sanitizers})
endif()
