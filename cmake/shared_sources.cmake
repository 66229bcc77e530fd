# What host and device compile from one source must keep compiling under nvcc, long before there is a GPU to run it.
# The test needs the compiler only. The parts that are shared are listed in the file by being used there.
set(TUTTI_SHARED_SOURCES ${PROJECT_SOURCE_DIR}/tests/cuda/shared_sources.cu
)
set(TUTTI_SHARED_ARCHITECTURES 80 90 100)

if(NOT TUTTI_HAS_CUDA OR TUTTI_SANITIZE)
  return()
endif()
set(targets "")
foreach(architecture ${TUTTI_SHARED_ARCHITECTURES})
  list(APPEND targets -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()
foreach(source ${TUTTI_SHARED_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  tutti_add_test(NAME cuda.${name} LABELS cuda
    COMMAND ${TUTTI_NVCC} -std=c++20 --threads 0 ${targets} -ccbin ${CMAKE_CXX_COMPILER} -I ${PROJECT_SOURCE_DIR}
            -I ${PROJECT_SOURCE_DIR}/include -Xcompiler -Wall,-Wextra -Werror all-warnings -c ${source} -o ${name}.o)
endforeach()
