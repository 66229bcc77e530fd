// Errors of the stand-in for the CUDA runtime: the thread's last error, names, and reports on stderr.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

namespace tutti::cudart {

// Stores an error for cudaGetLastError() and returns it.
cudaError_t keep(cudaError_t error);
// Returns the thread's last error; clears it if `clear` is true.
cudaError_t last_error(bool clear);

// The driver and the runtime number errors identically.
inline CUresult as_driver(cudaError_t error) { return static_cast<CUresult>(error); }

// Prints a line with the prefix "cuda stand-in: ".
[[gnu::format(printf, 1, 2)]] void report(const char* format, ...);

// For functions that the stand-in lacks: prints the name and returns cudaErrorNotSupported.
cudaError_t not_supported(const char* what);

// "an illegal memory access was encountered"; null for unknown errors.
const char* error_text(cudaError_t error);
const char* runtime_name(cudaError_t error);  // "cudaErrorIllegalAddress"
const char* driver_name(cudaError_t error);   // "CUDA_ERROR_ILLEGAL_ADDRESS"

}  // namespace tutti::cudart
