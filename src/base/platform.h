// Marks functions that both the host and a CUDA device compile from one source.
#pragma once

#ifdef __CUDACC__
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif
