# Enables the CUDA language if a compiler was found. The build runs on all architectures listed below, and the driver compiles
# the PTX code for later ones. Pass -DCMAKE_CUDA_ARCHITECTURES=native to build for the GPU of this machine only.
if(NOT TUTTI_HAS_CUDA)
  return()
endif()
set(CMAKE_CUDA_COMPILER ${TUTTI_NVCC})
option(TUTTI_PTX "Link the stand-in for the CUDA runtime (tests/ptx), which executes PTX on the CPU. For tests only" OFF)
if(TUTTI_PTX)
  set(CMAKE_CUDA_ARCHITECTURES 90-virtual)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --no-compress -lineinfo")
endif()
set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 100-virtual CACHE STRING "GPUs to build for")
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc supports C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
  # ccache preprocesses for one of nvcc's passes only, so it would miss changes in headers that other passes read. In depend
  # mode it uses the list of dependencies, which covers all passes.
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
if(TUTTI_PTX)  # Known before find_package(), which then does not define it.
  add_library(CUDA::cudart_static INTERFACE IMPORTED)
  target_link_libraries(CUDA::cudart_static INTERFACE CUDA::toolkit tutti_ptx_runtime)
endif()
find_package(CUDAToolkit 12.2 REQUIRED)
