# kymo_add_module(NAME SOURCES ... LINKS ...): one folder of src/ as a static library for our own
# programs and tests. A folder names the folders it stands on; tests/layers holds the order.
function(kymo_add_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
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

# kymo_add_test(NAME SOURCES ... LINKS ... LABELS ... [LOCK NAME [LOCKED FILTER]] [ALONE FILTER]): one GoogleTest program,
# its cases in ctest; those of one lock run one at a time: all, or those that a filter of GoogleTest's names. What ALONE
# names measures time: it has the label `alone` and runs beside nothing.
function(kymo_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;LOCK;LOCKED;ALONE" "SOURCES;LINKS;LABELS" ${ARGN})
  set(lock)
  if(arg_LOCK)
    set(lock RESOURCE_LOCK ${arg_LOCK})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  # The headers of GoogleTest cost more than the tests that include them: they are read once.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON KYMO_TEST ON)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gtest_main kymo_warnings)
  # What a test itself does takes longer to optimise than to run, but for those that drive what they test to its limit.
  if(NOT "stress" IN_LIST arg_LABELS AND NOT KYMO_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  # ctest starts what costs most first, so that no long test and no row of locked ones is left for the end.
  set(cost 0)
  if(arg_LOCK)
    set(cost 30)
  elseif(arg_LABELS MATCHES "stress|e2e")
    set(cost 20)
  elseif(arg_LABELS MATCHES "integration")
    set(cost 10)
  endif()
  set(properties PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${cost})
  set(filter)
  if(arg_LOCKED)
    gtest_discover_tests(${name} TEST_FILTER "-${arg_LOCKED}" TEST_LIST ${name}_free ${properties} DISCOVERY_TIMEOUT 60)
    set(filter TEST_FILTER "${arg_LOCKED}")
  elseif(arg_ALONE)
    gtest_discover_tests(${name} TEST_FILTER "${arg_ALONE}" TEST_LIST ${name}_alone
      PROPERTIES LABELS alone TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ON DISCOVERY_TIMEOUT 60)
    set(filter TEST_FILTER "-${arg_ALONE}")
  endif()
  gtest_discover_tests(${name} ${filter} ${properties} ${lock} DISCOVERY_TIMEOUT 60)
endfunction()
