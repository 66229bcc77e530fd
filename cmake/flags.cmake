# Compiler flags of our own code, as the target tutti_flags that every module links privately.
option(TUTTI_WERROR "Treat warnings as errors" OFF)
option(TUTTI_HARDEN "Stack protection, control-flow protection and checked libc calls" ON)
set(TUTTI_SANITIZE "" CACHE STRING "Sanitizers to build everything with: address,undefined or thread")

add_library(tutti_flags INTERFACE)
# For the compiler of the host: nvcc knows none of these.
function(tutti_host_flags)
  target_compile_options(tutti_flags INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${ARGN}>")
endfunction()
tutti_host_flags(-Wall -Wextra -Wshadow)
target_compile_options(tutti_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(TUTTI_WERROR)
  tutti_host_flags(-Werror)
  target_compile_options(tutti_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 takes "text" + std::string for an overlapping copy (GCC bug 105651).
  target_compile_options(tutti_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

if(TUTTI_SANITIZE)
  # For every target, since a sanitizer sees only what was compiled with it.
  add_compile_options(-fsanitize=${TUTTI_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TUTTI_SANITIZE})
  # Instrumented code hides from gcc what is initialised; and the one fence in libstdc++'s headers is not on our paths.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized;-Wno-tsan>")
  # For what is compiled for many types and several processors: a third of the time to compile it.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TUTTI_SANITIZE MATCHES "address")
    set(TUTTI_KERNEL_FLAGS "SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
  # UndefinedBehaviorSanitizer watches the library, not the tests' own files: a quarter of the time to compile them.
  if(TUTTI_SANITIZE MATCHES "undefined")
    set(TUTTI_TEST_FLAGS -fno-sanitize=undefined)
  endif()
elseif(TUTTI_HARDEN)
  tutti_host_flags(-fstack-protector-strong -fcf-protection
                   $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(-Wl,-z,relro,-z,now)
endif()

# Optimizing the tests' own files takes time and gains none. Inline functions of the library may be linked from there.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  list(APPEND TUTTI_TEST_FLAGS -O1)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT "$ENV{CCACHE_DISABLE}" AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
