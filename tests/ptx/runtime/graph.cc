#include "tests/ptx/runtime/graph.h"

#include <algorithm>
#include <thread>

namespace tutti::cudart {
namespace {

std::set<std::shared_ptr<Capture>> captures_of(const DeviceState& device) {
  std::set<std::shared_ptr<Capture>> found;
  for (const Stream* stream : device.streams) {
    if (stream->capture != nullptr) found.insert(stream->capture);
  }
  return found;
}

std::set<std::shared_ptr<Capture>> all_captures() {
  std::set<std::shared_ptr<Capture>> found;
  for (int i = 0; i < device_count(); ++i) found.merge(captures_of(device_state(i)));
  return found;
}

// A global-mode capture of any thread forbids unsafe calls to threads in global mode. A thread in global or
// thread-local mode is also forbidden by its own captures in these modes. Source: CUDA runtime API,
// cudaThreadExchangeStreamCaptureMode.
bool forbids(const Capture& capture) {
  const cudaStreamCaptureMode mode = this_thread().capture_mode;
  if (mode == cudaStreamCaptureModeRelaxed || capture.mode == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id()) return true;
  return mode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal;
}

}  // namespace

GraphContent::GraphContent(const GraphContent& other) : nodes(other.nodes), kept(other.kept) {
  for (UserObject* object : kept) ++object->references;
}

GraphContent::~GraphContent() {
  for (UserObject* object : kept) release(object, 1);
}

void release(UserObject* object, std::size_t references) {
  object->references -= std::min(references, object->references);
  if (object->references > 0) return;
  std::thread([object] {
    object->destroy(object->object);
    delete object;
  }).detach();
}

GraphNode& capture_node(Stream& stream, cudaGraphNodeType type, MakeWork make) {
  GraphContent& content = *stream.capture->graph->content;
  auto node = std::make_shared<GraphNode>();
  node->device = stream.device;
  node->type = type;
  node->make = std::move(make);
  node->number = content.nodes.size();
  for (const GraphNode* each : stream.dependencies) node->before.push_back(each->number);
  content.nodes.push_back(node);
  stream.dependencies = {node.get()};
  return *node;
}

void invalidate(Capture& capture) { capture.invalid = true; }

cudaError_t forbid_during_capture() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : all_captures()) {
    if (!forbids(*capture)) continue;
    invalidate(*capture);
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

bool captures_blocking_stream(const DeviceState& device) {
  return std::any_of(device.streams.begin(), device.streams.end(),
                     [](const Stream* stream) { return stream->blocking && stream->capture != nullptr; });
}

// Source: CUDA programming guide, "Prohibited and unhandled operations" of stream capture.
cudaError_t forbid_implicit_dependency(const DeviceState& device) {
  cudaError_t error = cudaSuccess;
  for (const Stream* stream : device.streams) {
    if (!stream->blocking || stream->capture == nullptr) continue;
    invalidate(*stream->capture);
    error = cudaErrorStreamCaptureImplicit;
  }
  return error;
}

cudaError_t forbid_device_wait(const DeviceState& device) {
  const auto captures = captures_of(device);
  for (const auto& capture : captures) invalidate(*capture);
  return captures.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

}  // namespace tutti::cudart
