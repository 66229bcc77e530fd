// The names of CUDA that nccl.h uses, for tests on machines with nccl.h but without a CUDA toolkit: the wheel contains
// nccl.h alone.
#pragma once

#include <stddef.h>

#define CUDART_VERSION 13000

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
