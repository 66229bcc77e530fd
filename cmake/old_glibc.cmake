# TUTTI_GLIBC=2.28 links the shared libraries so that they run on glibc 2.28 and newer, as wheels for manylinux_2_28 must. The
# compiled code is the same. Programs are linked for this machine's glibc, whose start files they need.
set(TUTTI_GLIBC "" CACHE STRING "Oldest glibc on which the shared libraries run, such as 2.28; empty: one close to this machine's")
if(TUTTI_GLIBC)
  if(NOT TUTTI_GLIBC MATCHES "^2\\.[0-9]+$")
    message(FATAL_ERROR "TUTTI_GLIBC is ${TUTTI_GLIBC}: it must be a version of glibc, such as 2.28")
  endif()
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/old_glibc)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/src/old_glibc/stubs.py ${TUTTI_GLIBC}
                          ${PROJECT_BINARY_DIR}/old_glibc ${CMAKE_C_COMPILER} COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/old_glibc/stubs.py)
endif()

# tutti_run_on_old_glibc(targets...): links shared libraries for TUTTI_GLIBC, if that is set.
function(tutti_run_on_old_glibc)
  if(NOT TUTTI_GLIBC)
    return()
  endif()
  foreach(target ${ARGN})
    target_sources(${target} PRIVATE ${tutti_SOURCE_DIR}/src/old_glibc/functions.c)
    # Before glibc 2.34 libc had neither threads nor dlopen().
    target_link_options(${target} PRIVATE -L${tutti_BINARY_DIR}/old_glibc
                        "SHELL:-Wl,--push-state,--no-as-needed -lpthread -ldl -lrt -Wl,--pop-state")
  endforeach()
endfunction()
