// Names of CUDA that nccl.h uses, for tests on machines with nccl.h from the wheel and without a CUDA toolkit.
#pragma once

#include <stddef.h>

#define CUDART_VERSION 13000

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
