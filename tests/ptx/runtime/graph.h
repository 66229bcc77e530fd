// Graphs of work, their instances, user objects, and captures of streams into graphs.
#pragma once

#include <map>

#include "tests/ptx/runtime/state.h"

// Handles of the public interface point to these objects.
namespace tutti::cudart {

struct UserObject {
  void* object = nullptr;
  cudaHostFn_t destroy = nullptr;
  std::size_t references = 0;
};

// The last mark of an event that was recorded outside of captures, or by a launch of a graph. Null: none.
struct EventMark {
  TaskPtr task;
};

struct GraphNode {
  int device = 0;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  MakeWork make;                               // Null: the node only joins its predecessors.
  const Kernel* needs_local_memory = nullptr;  // Null: not a kernel with local memory.
  std::shared_ptr<EventMark> awaited;          // Each launch waits for the mark that the event has then.
  std::shared_ptr<EventMark> recorded;         // Each launch moves the mark.
  std::vector<std::size_t> before;  // Numbers of the nodes that must end first; smaller than this node's number.
  std::size_t number = 0;
};

// Nodes and references to user objects. Copied by instantiation.
struct GraphContent {
  std::vector<std::shared_ptr<GraphNode>> nodes;
  std::vector<UserObject*> kept;  // One entry for each reference.

  GraphContent() = default;
  GraphContent(const GraphContent& other);
  GraphContent& operator=(const GraphContent&) = delete;
  ~GraphContent();  // Releases the references.
};

struct Graph {
  std::shared_ptr<GraphContent> content = std::make_shared<GraphContent>();
};

struct GraphInstance {
  std::shared_ptr<GraphContent> content;
  TaskPtr last;  // End of the last launch. Launches of an instance run one after the other.
};

struct Capture {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  bool invalid = false;
  bool ended = false;
  Graph* graph = nullptr;
};

// Drops a reference. The last one calls the destructor in a thread of its own, which must not call CUDA.
void release(UserObject* object, std::size_t references);

// Appends a node to the stream's capture.
GraphNode& capture_node(Stream& stream, cudaGraphNodeType type, MakeWork make);
void invalidate(Capture& capture);

// Returns an error if a function that may be unsafe during capture is called while it is forbidden to this thread, and
// invalidates the captures in question. See cudaThreadExchangeStreamCaptureMode().
cudaError_t forbid_during_capture();
// Returns an error and invalidates captures if a capturing stream of the device synchronises with the legacy stream.
cudaError_t forbid_implicit_dependency(const DeviceState& device);
// True if some stream of the device that is blocking is being captured.
bool captures_blocking_stream(const DeviceState& device);
// Returns an error and invalidates captures in streams of the device, which a wait for the device would violate.
cudaError_t forbid_device_wait(const DeviceState& device);

}  // namespace tutti::cudart
