#include "tests/ptx/runtime/errors.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>

namespace tutti::cudart {
namespace {

struct KnownError {
  cudaError_t error;
  const char* runtime;
  const char* driver;
  const char* text;
};

// The errors that the stand-in returns.
constexpr std::array kErrors = {
    KnownError{cudaSuccess, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    KnownError{cudaErrorInvalidValue, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    KnownError{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    KnownError{cudaErrorInitializationError, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED",
               "initialization error"},
    KnownError{cudaErrorCudartUnloading, "cudaErrorCudartUnloading", "CUDA_ERROR_DEINITIALIZED",
               "driver shutting down"},
    KnownError{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "CUDA_ERROR_INVALID_CONFIGURATION",
               "invalid configuration argument"},
    KnownError{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "CUDA_ERROR_INVALID_DEVICE_FUNCTION",
               "invalid device function"},
    KnownError{cudaErrorNoDevice, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    KnownError{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    KnownError{cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE",
               "device kernel image is invalid"},
    KnownError{cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT",
               "invalid device context"},
    KnownError{cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed", "CUDA_ERROR_MAP_FAILED",
               "mapping of buffer object failed"},
    KnownError{cudaErrorAlreadyMapped, "cudaErrorAlreadyMapped", "CUDA_ERROR_ALREADY_MAPPED",
               "resource already mapped"},
    KnownError{cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
               "no kernel image is available for execution on the device"},
    KnownError{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE",
               "invalid resource handle"},
    KnownError{cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
               "peer access is not supported between these two devices"},
    KnownError{cudaErrorIllegalState, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE",
               "the operation cannot be performed in the present state"},
    KnownError{cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    KnownError{cudaErrorNotReady, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    KnownError{cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS",
               "an illegal memory access was encountered"},
    KnownError{cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
               "too many resources requested for launch"},
    KnownError{cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT",
               "the launch timed out and was terminated"},
    KnownError{cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
               "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    KnownError{cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
               "peer access has not been enabled"},
    KnownError{cudaErrorContextIsDestroyed, "cudaErrorContextIsDestroyed", "CUDA_ERROR_CONTEXT_IS_DESTROYED",
               "context is destroyed"},
    KnownError{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
               "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
               "part or all of the requested memory range is already mapped"},
    KnownError{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
               "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
    KnownError{cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS",
               "misaligned address"},
    KnownError{cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction", "CUDA_ERROR_ILLEGAL_INSTRUCTION",
               "an illegal instruction was encountered"},
    KnownError{cudaErrorInvalidAddressSpace, "cudaErrorInvalidAddressSpace", "CUDA_ERROR_INVALID_ADDRESS_SPACE",
               "operation not supported on global/shared address space"},
    KnownError{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED",
               "unspecified launch failure"},
    KnownError{cudaErrorCooperativeLaunchTooLarge, "cudaErrorCooperativeLaunchTooLarge",
               "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    KnownError{cudaErrorNotPermitted, "cudaErrorNotPermitted", "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    KnownError{cudaErrorNotSupported, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    KnownError{cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
               "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    KnownError{cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
               "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    KnownError{cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge", "CUDA_ERROR_STREAM_CAPTURE_MERGE",
               "operation would result in a merge of separate capture sequences"},
    KnownError{cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
               "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
    KnownError{cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
               "capturing stream has unjoined work"},
    KnownError{cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
               "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
    KnownError{cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
               "operation would make the legacy stream depend on a capturing blocking stream"},
    KnownError{cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",
               "operation not permitted on an event last recorded in a capturing stream"},
    KnownError{cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
               "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
               "attempt to terminate a thread-local capture sequence from another thread"},
    KnownError{cudaErrorUnknown, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const KnownError* find(cudaError_t error) {
  const auto* const found =
      std::find_if(kErrors.begin(), kErrors.end(), [&](const KnownError& known) { return known.error == error; });
  return found == kErrors.end() ? nullptr : found;
}

thread_local cudaError_t last = cudaSuccess;

}  // namespace

cudaError_t keep(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t last_error(bool clear) {
  const cudaError_t error = last;
  if (clear) last = cudaSuccess;
  return error;
}

void report(const char* format, ...) {
  std::array<char, 1024> text;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const std::string line = std::string("cuda stand-in: ") + text.data() + "\n";  // One write, so that lines stay whole.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

cudaError_t not_supported(const char* what) {
  report("%s is not implemented", what);
  return keep(cudaErrorNotSupported);
}

const char* error_text(cudaError_t error) { return find(error) == nullptr ? nullptr : find(error)->text; }
const char* runtime_name(cudaError_t error) { return find(error) == nullptr ? nullptr : find(error)->runtime; }
const char* driver_name(cudaError_t error) { return find(error) == nullptr ? nullptr : find(error)->driver; }

}  // namespace tutti::cudart
