# What `cmake --install` lays down of the library: headers, libkymo, the bridge, the CMake package and the
# pkg-config file. It is the component `library`, to be had without the programs, which install themselves
# (tools/).
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kymo)

install(DIRECTORY include/kymo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "prometheus.h" EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/include/kymo/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kymo)
install(TARGETS kymo EXPORT kymoTargets)
install(EXPORT kymoTargets NAMESPACE kymo:: DESTINATION ${package_dir})

configure_file(cmake/kymo.pc.in ${PROJECT_BINARY_DIR}/kymo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kymo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# An export set of its own: whoever does not ask for the bridge is not made to have prometheus-cpp.
if(TARGET kymo_prometheus)
  install(FILES include/kymo/prometheus.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kymo)
  # It finds libkymo beside it, wherever the prefix is.
  set_target_properties(kymo_prometheus PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS kymo_prometheus EXPORT kymoPrometheusTargets)
  install(EXPORT kymoPrometheusTargets NAMESPACE kymo:: DESTINATION ${package_dir})
endif()

configure_package_config_file(cmake/kymoConfig.cmake.in ${PROJECT_BINARY_DIR}/kymoConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kymoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kymoConfig.cmake ${PROJECT_BINARY_DIR}/kymoConfigVersion.cmake
  DESTINATION ${package_dir})
