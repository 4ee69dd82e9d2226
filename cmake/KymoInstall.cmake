# What `cmake --install` lays down: headers, libkymo, the bridge, the programs, the CMake package and the
# pkg-config files.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/kymo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/kymo/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kymo)
install(TARGETS kymo EXPORT kymoTargets)
if(KYMO_BUILD_PROMETHEUS AND TARGET kymo_prometheus)
  install(TARGETS kymo_prometheus EXPORT kymoTargets)
endif()
install(EXPORT kymoTargets NAMESPACE kymo:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kymo)

configure_package_config_file(cmake/kymoConfig.cmake.in ${PROJECT_BINARY_DIR}/kymoConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kymo)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kymoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kymoConfig.cmake ${PROJECT_BINARY_DIR}/kymoConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kymo)

configure_file(cmake/kymo.pc.in ${PROJECT_BINARY_DIR}/kymo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kymo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
