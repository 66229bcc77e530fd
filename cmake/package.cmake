# cmake --install installs the library, its headers, the CMake package Tutti::tutti, tutti.pc, and the tools that were built
# (tutti and the perf tools). Components: runtime, development, tools.
if(NOT TARGET tutti)
  return()
endif()
include(CMakePackageConfigHelpers)

if(NOT TARGET Tutti::tutti)
  add_library(Tutti::tutti ALIAS tutti)
endif()
install(TARGETS tutti EXPORT TuttiTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h")
# libnccl.so.2 has a folder of its own: beside libtutti.so it would replace NVIDIA's library for every program.
install(TARGETS tutti_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tutti COMPONENT runtime NAMELINK_SKIP)
if(TARGET tutti_tool)
  install(TARGETS tutti_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools OPTIONAL)
endif()
if(TUTTI_PERF_TOOLS)
  file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${TUTTI_PERF_TOOLS} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS ${TUTTI_PERF_TOOLS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools OPTIONAL)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti)
install(EXPORT TuttiTargets NAMESPACE Tutti:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TuttiConfig.cmake.in TuttiConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(TuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/TuttiConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/TuttiConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tutti.pc.in tutti.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tutti.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
