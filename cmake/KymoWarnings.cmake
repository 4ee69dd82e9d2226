# Warnings and sanitizers, carried by one private interface target so that nothing is set globally and
# nothing leaks into a consumer's build.
add_library(kymo_warnings INTERFACE)
target_compile_options(kymo_warnings INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${KYMO_WARNINGS_AS_ERRORS}>:-Werror> -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wcast-align -Wundef -Wformat=2)

# subobject-linkage: a unity build includes one .cc into another, and it takes their anonymous namespaces for a
# header's. shadow: clang compares a local name also with the constants of the other files that it is compiled with;
# GCC does not, and finds what hides a name of its own file. restrict: at -O3 GCC 12 finds overlaps of 2^63 bytes in std::string (its bug 105651).
target_compile_options(kymo_warnings INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage> $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>)

set(KYMO_SANITIZE "" CACHE STRING "What -fsanitize= gets (see the presets asan and tsan), or empty")
if(KYMO_SANITIZE)
  # Without what UndefinedBehaviourSanitizer adds a test's own code compiles in half the time; what it tests has it.
  target_compile_options(kymo_warnings INTERFACE -fsanitize=${KYMO_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<BOOL:$<TARGET_PROPERTY:KYMO_TEST>>:-fno-sanitize=undefined>)
  target_link_options(kymo_warnings INTERFACE -fsanitize=${KYMO_SANITIZE})
  if(KYMO_SANITIZE MATCHES "address")
    # vptr: clang's check needs a free file descriptor, and reports a false error in a test that leaves none.
    target_compile_options(kymo_warnings INTERFACE -fno-sanitize=vptr)
    # no-pie: otherwise the loader has more than a million addresses to set at each start of kymo.
    target_link_options(kymo_warnings INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()

if(KYMO_BUILD_FUZZERS AND NOT KYMO_SANITIZE MATCHES "fuzzer-no-link")
  message(FATAL_ERROR "KYMO_BUILD_FUZZERS needs the coverage that steers them: use the preset asan")
endif()
