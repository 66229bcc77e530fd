// Marks functions that both the host and a CUDA device compile from one source, and loops that a device shall not
// unroll, since each copy costs time to compile and room in its instruction cache.
#pragma once

#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif

#ifdef __CUDA_ARCH__
#define TUTTI_ROLLED _Pragma("unroll 1")
#else
#define TUTTI_ROLLED
#endif
