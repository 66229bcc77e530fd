# What host and device compile from one source must keep compiling under nvcc, long before there is a GPU to run it.
# The test needs the compiler only: it makes one .cu file that includes every header of the list, and compiles it.
set(TUTTI_SHARED_HEADERS
  src/base/atomic.h
  src/base/types.h
  src/plan/layout.h
  transports/lane_view.h
)
set(TUTTI_SHARED_ARCHITECTURES 80 90 100)

if(NOT TUTTI_HAS_CUDA OR TUTTI_SANITIZE)
  return()
endif()
set(includes "")
foreach(header ${TUTTI_SHARED_HEADERS})
  string(APPEND includes "#include \"${header}\"\n")
endforeach()
file(CONFIGURE OUTPUT shared_sources.cu CONTENT "${includes}")
set(targets "")
foreach(architecture ${TUTTI_SHARED_ARCHITECTURES})
  list(APPEND targets -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()
tutti_add_test(NAME cuda.shared_sources LABELS cuda
  COMMAND ${TUTTI_NVCC} -std=c++20 --threads 0 ${targets} -ccbin ${CMAKE_CXX_COMPILER} -I ${PROJECT_SOURCE_DIR}
          -I ${PROJECT_SOURCE_DIR}/include -Xcompiler -Wall,-Wextra -Werror all-warnings
          -c shared_sources.cu -o shared_sources.o)
