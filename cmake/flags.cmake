# Compiler flags of the project's own code: every module links the target tutti_flags privately.
option(TUTTI_WERROR "Treat warnings as errors" OFF)
option(TUTTI_HARDEN "Stack protection, control-flow protection and checked libc calls" ON)
set(TUTTI_SANITIZE "" CACHE STRING "Sanitizers to build everything with: address,undefined or thread")

add_library(tutti_flags INTERFACE)
# tutti_host_flags(flags...): adds flags for the C and C++ compiler. nvcc does not accept them.
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
  # gcc 12 reports "text" + std::string as an overlapping copy (GCC bug 105651).
  target_compile_options(tutti_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

if(TUTTI_SANITIZE)
  # All targets get the flags, since a sanitizer checks only code that was compiled with it.
  add_compile_options(-fsanitize=${TUTTI_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TUTTI_SANITIZE})
  # The check of vptr opens a pipe. It fails in tests that exhaust the descriptors.
  if(TUTTI_SANITIZE MATCHES "undefined")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
  endif()
  # In instrumented code, gcc wrongly reports uninitialized variables. -Wtsan warns about a fence in libstdc++'s headers, which
  # this code never executes.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized;-Wno-tsan>")
  # Kernels, compiled for many types and instruction sets, call AddressSanitizer's checks instead of inlining them: they compile
  # in a third of the time.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TUTTI_SANITIZE MATCHES "address")
    set(TUTTI_KERNEL_FLAGS "SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
  # UndefinedBehaviorSanitizer checks the library only. Test files compile in a quarter of the time without it.
  if(TUTTI_SANITIZE MATCHES "undefined")
    set(TUTTI_TEST_FLAGS -fno-sanitize=undefined)
  endif()
elseif(TUTTI_HARDEN)
  tutti_host_flags(-fstack-protector-strong -fcf-protection
                   $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(-Wl,-z,relro,-z,now)
endif()

# -O1 for test files: optimizing them takes longer than it saves. They are not at -O0, since the linker may choose their copies
# of the library's inline functions.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  list(APPEND TUTTI_TEST_FLAGS -O1)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT "$ENV{CCACHE_DISABLE}" AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
