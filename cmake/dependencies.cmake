# Finds dependencies. Each optional one is AUTO (used if found), ON (an error if not found) or OFF. print_dependencies()
# prints which are on, and why the others are off.
set(TUTTI_DEPS "" CACHE PATH "Where packages were unpacked (dpkg -x) for a machine on which nothing can be installed")
if(TUTTI_DEPS)
  list(PREPEND CMAKE_PREFIX_PATH ${TUTTI_DEPS}/usr ${TUTTI_DEPS})
endif()
find_package(Threads REQUIRED)
find_package(GTest QUIET)

# tutti_dependency(UCX FOUND <bool> FOR <purpose> WANTS <what is missing>): sets TUTTI_HAS_UCX.
#   DEVELOPMENT: the dependency is off unless TUTTI_DEVELOP is ON.
function(tutti_dependency name)
  cmake_parse_arguments(DEPENDENCY "DEVELOPMENT" "FOUND;FOR;WANTS" "" ${ARGN})
  set(TUTTI_${name} AUTO CACHE STRING "${DEPENDENCY_FOR}: AUTO, ON or OFF")
  set_property(CACHE TUTTI_${name} PROPERTY STRINGS AUTO ON OFF)
  set(has OFF)
  set(unused OFF)
  if(DEPENDENCY_DEVELOPMENT AND NOT TUTTI_DEVELOP)
    set(unused ON)
  elseif(TUTTI_${name} STREQUAL "AUTO" OR TUTTI_${name})
    set(has ${DEPENDENCY_FOUND})
  endif()
  if(unused)
    set(line "off  ${DEPENDENCY_FOR}: TUTTI_DEVELOP is OFF")
  elseif(has)
    set(line "on   ${DEPENDENCY_FOR}")
  elseif(TUTTI_${name} STREQUAL "AUTO")
    set(line "off  ${DEPENDENCY_FOR}: ${DEPENDENCY_WANTS}")
  elseif(TUTTI_${name})
    message(FATAL_ERROR "TUTTI_${name} is ON, but this machine has no ${DEPENDENCY_FOR}: ${DEPENDENCY_WANTS}")
  else()
    set(line "off  ${DEPENDENCY_FOR}: TUTTI_${name} is ${TUTTI_${name}}")
  endif()
  string(SUBSTRING "${name}            " 0 12 title)
  set_property(GLOBAL APPEND_STRING PROPERTY TUTTI_SUMMARY "  ${title}${line}\n")
  set(TUTTI_HAS_${name} ${has} PARENT_SCOPE)
endfunction()

# Sets <variable> to ON if <header> was found, else to OFF. Caches its folder in <variable>_INCLUDE_DIR.
function(tutti_header_found variable header)
  find_path(${variable}_INCLUDE_DIR ${header})
  mark_as_advanced(${variable}_INCLUDE_DIR)
  if(${variable}_INCLUDE_DIR)
    set(${variable} ON PARENT_SCOPE)
  else()
    set(${variable} OFF PARENT_SCOPE)
  endif()
endfunction()

# libsodium is linked statically, so that it does not replace another libsodium that a Python process has loaded.
find_library(TUTTI_SODIUM_LIBRARY libsodium.a)
find_path(TUTTI_SODIUM_INCLUDE_DIR sodium.h)
if(TUTTI_SODIUM_LIBRARY AND TUTTI_SODIUM_INCLUDE_DIR)
  add_library(sodium STATIC IMPORTED GLOBAL)
  set_target_properties(sodium PROPERTIES IMPORTED_LOCATION ${TUTTI_SODIUM_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${TUTTI_SODIUM_INCLUDE_DIR})
else()
  message(FATAL_ERROR "libsodium is needed, with its static library (Debian: apt-get install libsodium-dev)")
endif()

find_program(TUTTI_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
set(nvcc_found OFF)
if(TUTTI_NVCC AND NOT TUTTI_SANITIZE)  # Sanitizers do not check device code.
  set(nvcc_found ON)
endif()
# The library loads UCX and verbs at run time with dlopen(), so the build needs only their headers.
tutti_header_found(ucx_found ucp/api/ucp.h)
tutti_header_found(verbs_found infiniband/verbs.h)
# Parsers of topology files: pugixml is linked statically, nlohmann-json is a header.
tutti_header_found(pugixml_found pugixml.hpp)
tutti_header_found(json_found nlohmann/json.hpp)
find_library(TUTTI_PUGIXML_LIBRARY libpugixml.a)
mark_as_advanced(TUTTI_PUGIXML_LIBRARY)
set(formats_found OFF)
if(pugixml_found AND json_found AND TUTTI_PUGIXML_LIBRARY)
  set(formats_found ON)
  add_library(pugixml STATIC IMPORTED GLOBAL)
  set_target_properties(pugixml PROPERTIES IMPORTED_LOCATION ${TUTTI_PUGIXML_LIBRARY})
endif()
find_program(TUTTI_MPIRUN mpirun)
find_program(TUTTI_MPICC mpicc)
set(mpi_found OFF)
if(TUTTI_MPIRUN AND TUTTI_MPICC)
  set(mpi_found ON)
endif()

# nccl.h from the CUDA toolkit or the wheel nvidia-nccl-cu13. Only tests need it. The wheel lacks CUDA headers, so the tests
# have substitutes for them.
find_path(TUTTI_NCCL_INCLUDE_DIR nccl.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include ${TUTTI_DEPS}/nccl/include)
if(NOT TUTTI_NCCL_INCLUDE_DIR)
  find_package(Python3 COMPONENTS Interpreter QUIET)
endif()
if(NOT TUTTI_NCCL_INCLUDE_DIR AND Python3_FOUND)  # Python locates the folder of the wheel.
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import nvidia.nccl; print(nvidia.nccl.__path__[0])"
                  OUTPUT_VARIABLE wheel OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(TUTTI_NCCL_INCLUDE_DIR nccl.h PATHS ${wheel}/include NO_DEFAULT_PATH)
endif()
mark_as_advanced(TUTTI_NCCL_INCLUDE_DIR)
set(nccl_found OFF)
if(EXISTS ${TUTTI_NCCL_INCLUDE_DIR}/nccl.h)
  set(nccl_found ON)
endif()
set(TUTTI_NCCL_WANTS "no nccl.h: install the CUDA toolkit, or `pip install nvidia-nccl-cu13`, or name its folder with \
-DTUTTI_NCCL_INCLUDE_DIR=<folder>")

tutti_dependency(CUDA FOUND ${nvcc_found} FOR "compiler for NVIDIA GPUs"
                 WANTS "no nvcc in PATH, CUDA_HOME or /usr/local/cuda, or a build with sanitizers")
tutti_dependency(UCX FOUND ${ucx_found} FOR "headers of UCX" WANTS "no ucp/api/ucp.h (libucx-dev)")
tutti_dependency(VERBS FOUND ${verbs_found} FOR "headers of RDMA verbs" WANTS "no infiniband/verbs.h (libibverbs-dev)")
tutti_dependency(FORMATS FOUND ${formats_found} FOR "pugixml and nlohmann-json, for files of topologies"
                 WANTS "no pugixml.hpp with libpugixml.a, or no nlohmann/json.hpp (libpugixml-dev, nlohmann-json3-dev)")
tutti_dependency(NCCL DEVELOPMENT FOUND ${nccl_found} FOR "nccl.h, for tests of libnccl.so.2"
                 WANTS "${TUTTI_NCCL_WANTS}")
tutti_dependency(MPI DEVELOPMENT FOUND ${mpi_found} FOR "launcher test and peers in perf (the library never links MPI)"
                 WANTS "no mpirun and mpicc (libopenmpi-dev or mpich)")
tutti_dependency(GTEST DEVELOPMENT FOUND ${GTest_FOUND} FOR "tests" WANTS "no GoogleTest (libgtest-dev)")

# Prints version, build type, compiler, and the state of all optional dependencies.
function(print_dependencies)
  get_property(summary GLOBAL PROPERTY TUTTI_SUMMARY)
  if(TUTTI_SANITIZE)
    set(sanitizers ", sanitizers ${TUTTI_SANITIZE}")
  endif()
  message(STATUS "tutti ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}${sanitizers}, ${CMAKE_CXX_COMPILER_ID} "
                 "${CMAKE_CXX_COMPILER_VERSION}, in ${CMAKE_BINARY_DIR}\n${summary}")
endfunction()
