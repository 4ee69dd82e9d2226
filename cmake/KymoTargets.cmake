# kymo_add_module(NAME [TEST] SOURCES ... LINKS ...): one folder of src/ as a static library for our own
# programs and tests. A folder names the folders it stands on; tests/layers holds the order. TEST: a folder of tests/.
function(kymo_add_module name)
  cmake_parse_arguments(arg "TEST" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  if(arg_TEST)
    kymo_compile_as_test(${name})
  elseif(TARGET kymo_precompiled)
    target_compile_options(${name} PRIVATE -pthread)  # as kymo_precompiled: a precompiled header fits no other options
    target_precompile_headers(${name} REUSE_FROM kymo_precompiled)
  endif()
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(${name} PUBLIC ${arg_LINKS} PRIVATE kymo_warnings)
endfunction()

# kymo_install_program(TARGET): installs it where it is built, and says so where it is not: a build of some targets
# can be installed.
function(kymo_install_program target)
  install(CODE "if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
  message(STATUS \"Not built, so not installed: $<TARGET_FILE_NAME:${target}> (cmake --build ${PROJECT_BINARY_DIR} --target ${target})\")
endif()")
  install(TARGETS ${target} OPTIONAL)
endfunction()

# kymo_compile_as_test(TARGET): what a test itself does takes longer to optimise than to run, and the headers of
# GoogleTest and of the JSON library cost more than what includes them: they are read once (tests/CMakeLists.txt). The target
# must link GTest::gtest.
function(kymo_compile_as_test target)
  set_target_properties(${target} PROPERTIES KYMO_TEST ON)
  if(TARGET kymo_test_headers)
    target_compile_options(${target} PRIVATE -O0 -pthread -fPIE)  # all alike, so that one precompiled header fits all
    target_precompile_headers(${target} REUSE_FROM kymo_test_headers)
  endif()
endfunction()

# kymo_add_test(NAME SOURCES ... LINKS ... LABELS ... [LOCK NAME [LOCKED FILTER]] [SLOW FILTER] [ALONE FILTER]): one
# GoogleTest program, its cases in ctest. The filters are GoogleTest's:
#   LOCKED  cases that run one at a time among all of that lock; without it, all cases. The lock is their label.
#   SLOW    cases that scripts/test leaves to `scripts/test --all`. Their label is `slow`.
#   ALONE   cases that need the machine for themselves; also left to --all. Their label is `alone`.
# A case has one label, since gtest_discover_tests takes no list.
# tests/support/run_tests.py has the time limit.
function(kymo_add_test name)
  cmake_parse_arguments(arg "" "LOCK;LOCKED;SLOW;ALONE" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON KYMO_TEST ON)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gtest_main kymo_warnings)
  # But for those that drive what they test to its limit.
  if(NOT "stress" IN_LIST arg_LABELS)
    kymo_compile_as_test(${name})
  endif()
  # ctest starts what costs most first, so that no long test and no row of locked ones is left for the end.
  set(cost 0)
  if(arg_LABELS MATCHES "stress|e2e")
    set(cost 20)
  elseif(arg_LABELS MATCHES "integration")
    set(cost 10)
  endif()
  set(lock)
  if(arg_LOCK)
    set(lock RESOURCE_LOCK ${arg_LOCK} COST 30)
    if(NOT arg_LOCKED)
      set(arg_LOCKED "*")
    endif()
  endif()
  # discover(GROUP FILTER PROPERTY...): the cases that the filter names and no earlier group has.
  set(taken)
  macro(discover group filter)
    set(except)
    if(taken)
      list(JOIN taken ":" except)
      set(except "-${except}")
    endif()
    gtest_discover_tests(${name} TEST_FILTER "${filter}${except}" TEST_LIST ${name}_${group} DISCOVERY_TIMEOUT 60
      PROPERTIES ${ARGN})
    list(APPEND taken "${filter}")
  endmacro()
  if(arg_ALONE)
    discover(alone "${arg_ALONE}" LABELS alone RUN_SERIAL ON)
  endif()
  if(arg_SLOW)
    discover(slow "${arg_SLOW}" LABELS slow ${lock})
  endif()
  if(arg_LOCK)
    discover(locked "${arg_LOCKED}" LABELS ${arg_LOCK} ${lock})
  endif()
  if(NOT arg_LOCKED STREQUAL "*")
    discover(free "*" LABELS ${arg_LABELS} COST ${cost})
  endif()
endfunction()
