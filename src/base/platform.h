// Macros for functions compiled for host and device. TUTTI_HOST_ONLY contains statements that kernels leave out.
// TUTTI_ROLLED precedes loops that device code must not unroll, since that costs compile time and instruction cache.
// TUTTI_UNROLLED precedes loops over arrays that must stay in registers.
#pragma once

#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif

#ifdef __CUDA_ARCH__
#define TUTTI_HOST_ONLY(...)
#define TUTTI_ROLLED _Pragma("unroll 1")
#define TUTTI_UNROLLED _Pragma("unroll")
#else
#define TUTTI_HOST_ONLY(...) __VA_ARGS__
#define TUTTI_ROLLED
#define TUTTI_UNROLLED
#endif
