# cpack makes Debian packages of what was built: libtutti0, libtutti-dev and tutti-tools (docs/guide/install.md).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tutti)
set(CPACK_PACKAGE_CONTACT "The Tutti maintainers <maintainers@tutti.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Collective communication for host memory and GPUs")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development tools)
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS runtime)
set(CPACK_COMPONENT_TOOLS_DEPENDS runtime)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)  # On the same version.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libtutti0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "libibverbs1, libucx0")  # Opened at run time.
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "The shared library, and a library with the interface of NCCL in a folder of its own.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtutti-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS mpi-default-dev)  # For tutti/mpi.h.
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "The C API, and the packages of CMake and pkg-config.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME tutti-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "The command-line tool, benchmarks with the options of nccl-tests, and documentation.")

# The file shlibs maps libtutti.so.0 to its package for dpkg-shlibdeps. It leaves out libnccl.so.2, whose package is NVIDIA's.
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libtutti 0 libtutti0 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs)

# The licence, with those of the libraries that are linked statically or included.
file(READ ${PROJECT_SOURCE_DIR}/LICENSE copyright)
foreach(library libsodium-dev libpugixml-dev nlohmann-json3-dev)
  if(EXISTS /usr/share/doc/${library}/copyright)
    file(READ /usr/share/doc/${library}/copyright text)
    string(APPEND copyright "\n---- Part of these binaries: ${library} ----\n\n${text}")
  endif()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/debian/copyright "${copyright}")

# EXCLUDE_FROM_ALL: cpack installs these files, cmake --install does not.
foreach(component RUNTIME DEVELOPMENT TOOLS)
  string(TOLOWER ${component} name)
  install(FILES ${PROJECT_BINARY_DIR}/debian/copyright DESTINATION share/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME}
          COMPONENT ${name} EXCLUDE_FROM_ALL)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION share/doc/tutti-tools COMPONENT tools EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/tutti-tools
        COMPONENT tools EXCLUDE_FROM_ALL)
include(CPack)
