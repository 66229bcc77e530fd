#pragma once
// Parts of torch.cuda that PyTorch offers in Python only, because this module is built without headers of CUDA.

#include <c10/core/Stream.h>

namespace tutti_torch {

// Returns whether this process has used CUDA, without a call that initializes it.
bool cuda_is_initialized();

// Returns whether the current stream is captured in a CUDA graph.
bool current_stream_is_captured();

// Returns the cudaStream_t of a stream. Takes the GIL at the first call with the stream.
void* cuda_stream_of(const c10::Stream& stream);

}  // namespace tutti_torch
