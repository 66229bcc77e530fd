// What nccl.h names of CUDA, for tests on machines that have nccl.h and no CUDA toolkit: the wheel brings it alone.
#pragma once

#include <stddef.h>

#define CUDART_VERSION 13000

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
