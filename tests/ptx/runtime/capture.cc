// Functions that capture streams into graphs.
#include <algorithm>

#include "tests/ptx/runtime/stream.h"

namespace {

using namespace tutti::cudart;

cudaError_t on_stream_of(cudaStream_t handle, const std::function<cudaError_t(DeviceState&, Stream&)>& body) {
  return enter_runtime([&](Lock&, DeviceState& device) {
    Stream* stream = stream_of(handle, device);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : body(device, *stream);
  });
}

// True if every node of the graph precedes the end of the stream.
bool is_joined(const Capture& capture, const Stream& stream) {
  const auto& nodes = capture.graph->content->nodes;
  std::vector<bool> reached(nodes.size());
  for (const GraphNode* node : stream.dependencies) reached[node->number] = true;
  for (std::size_t i = nodes.size(); i-- > 0;) {  // Predecessors have smaller numbers.
    if (!reached[i]) return false;
    for (const std::size_t before : nodes[i]->before) reached[before] = true;
  }
  return true;
}

cudaError_t ended(Capture& capture, const Stream& stream) {
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  return is_joined(capture, stream) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

cudaError_t begin(Stream& stream, DeviceState& device, cudaStreamCaptureMode mode) {
  if (&stream == &device.legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream.capture != nullptr || mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
    return cudaErrorInvalidValue;
  static unsigned long long last_id = 0;
  const auto capture = std::make_shared<Capture>();
  capture->id = ++last_id;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->streams = {&stream};
  capture->graph = new Graph;
  stream.capture = capture;
  stream.dependencies.clear();
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return on_stream_of(handle, [&](DeviceState& device, Stream& stream) { return begin(stream, device, mode); });
}

// Ends the capture even if it has failed.
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* made) {
  return on_stream_of(handle, [&](DeviceState&, Stream& stream) {
    const std::shared_ptr<Capture> capture = stream.capture;
    if (made != nullptr) *made = nullptr;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->origin != &stream) {
      invalidate(*capture);
      return cudaErrorStreamCaptureUnmatched;
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    const cudaError_t error = ended(*capture, stream);
    capture->ended = true;
    for (Stream* each : capture->streams) {
      each->capture = nullptr;
      each->dependencies.clear();
    }
    if (error == cudaSuccess && made != nullptr) {
      *made = reinterpret_cast<cudaGraph_t>(capture->graph);
    } else {
      delete capture->graph;
    }
    capture->graph = nullptr;
    return error;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  if (dependencies != nullptr || edges != nullptr || count != nullptr)
    return not_supported("cudaStreamGetCaptureInfo with dependencies");
  return on_stream_of(handle, [&](DeviceState& device, Stream& stream) {
    if (status == nullptr) return cudaErrorInvalidValue;
    // Does not invalidate the capture. Source: CUDA runtime API, cudaStreamIsCapturing.
    if (&stream == &device.legacy && captures_blocking_stream(device)) return cudaErrorStreamCaptureImplicit;
    const Capture* capture = stream.capture.get();
    *status = cudaStreamCaptureStatusNone;
    if (capture == nullptr) return cudaSuccess;
    *status = capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(capture->graph);
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return keep(cudaErrorInvalidValue);
  std::swap(*mode, this_thread().capture_mode);
  return cudaSuccess;
}

}  // extern "C"
