// Functions of graphs and user objects.
#include <algorithm>

#include "tests/ptx/runtime/kernel.h"
#include "tests/ptx/runtime/stream.h"

namespace {

using namespace tutti::cudart;

Graph* graph_of(cudaGraph_t handle) { return reinterpret_cast<Graph*>(handle); }
GraphInstance* instance_of(cudaGraphExec_t handle) { return reinterpret_cast<GraphInstance*>(handle); }

// Appends the nodes to the stream as tasks. Roots wait for the stream and for the last launch of the instance.
void launch(Lock& lock, GraphInstance& instance, Stream& stream) {
  for (const auto& node : instance.content->nodes)
    reserve_local_memory(lock, device_state(node->device), node->needs_local_memory);
  const TaskPtr first = append(stream, nullptr, {instance.last});
  std::vector<TaskPtr> tasks;
  for (const auto& node : instance.content->nodes) {
    std::vector<TaskPtr> before = {first};
    for (const std::size_t number : node->before) before.push_back(tasks[number]);
    if (node->awaited != nullptr) before.push_back(node->awaited->task);
    tasks.push_back(engine().add(node->device, node->make == nullptr ? nullptr : node->make(), before));
    if (node->recorded != nullptr) node->recorded->task = tasks.back();
  }
  instance.last = append(stream, nullptr, tasks);
  // The launch keeps the graph's objects until its end, even if the instance is destroyed.
  if (instance.last->done) return;
  instance.last->finished = [kept = instance.content, last = instance.last.get()] {
    if (kept.use_count() == 1) engine().observe(*last);  // Destructors of user objects follow.
  };
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* made, unsigned flags) {
  if (made == nullptr || flags != 0) return keep(cudaErrorInvalidValue);
  *made = reinterpret_cast<cudaGraph_t>(new Graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return without_context([&](Lock&) {
    if (graph == nullptr) return cudaErrorInvalidValue;
    delete graph_of(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return without_context([&](Lock&) {
    if (graph == nullptr || count == nullptr) return cudaErrorInvalidValue;
    const auto& all = graph_of(graph)->content->nodes;
    if (nodes != nullptr) {
      const std::size_t given = std::min(*count, all.size());
      for (std::size_t i = 0; i < given; ++i) nodes[i] = reinterpret_cast<cudaGraphNode_t>(all[i].get());
    }
    *count = all.size();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (node == nullptr || type == nullptr) return keep(cudaErrorInvalidValue);
  *type = reinterpret_cast<const GraphNode*>(node)->type;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags) {
  return enter_runtime([&](Lock&, DeviceState&) {
    if (made == nullptr || graph == nullptr) return cudaErrorInvalidValue;
    if (flags != 0) return not_supported("cudaGraphInstantiate with flags");
    auto* instance = new GraphInstance;
    instance->content = std::make_shared<GraphContent>(*graph_of(graph)->content);
    *made = reinterpret_cast<cudaGraphExec_t>(instance);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(made, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    Stream* stream = stream_of(handle, device);
    if (graph == nullptr || stream == nullptr) return cudaErrorInvalidValue;
    if (stream->capture != nullptr) {
      invalidate(*stream->capture);
      return not_supported("cudaGraphLaunch during capture");
    }
    if (stream == &device.legacy) {
      const cudaError_t error = forbid_implicit_dependency(device);
      if (error != cudaSuccess) return error;
    }
    launch(lock, *instance_of(graph), *stream);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return without_context([&](Lock&) {
    if (graph == nullptr) return cudaErrorInvalidValue;
    const TaskPtr last = instance_of(graph)->last;
    if (last != nullptr && last->done) engine().observe(*last);  // Destructors of user objects follow.
    delete instance_of(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* made, void* object, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags) {
  if (made == nullptr || destroy == nullptr || references == 0 || flags != cudaUserObjectNoDestructorSync)
    return keep(cudaErrorInvalidValue);
  *made = reinterpret_cast<cudaUserObject_t>(new UserObject{object, destroy, references});
  return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return without_context([&](Lock&) {
    if (object == nullptr || count == 0) return cudaErrorInvalidValue;
    reinterpret_cast<UserObject*>(object)->references += count;
    return cudaSuccess;
  });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return without_context([&](Lock&) {
    if (object == nullptr || count == 0) return cudaErrorInvalidValue;
    release(reinterpret_cast<UserObject*>(object), count);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count, unsigned flags) {
  return without_context([&](Lock&) {
    if (graph == nullptr || handle == nullptr || count == 0 || (flags & ~cudaGraphUserObjectMove) != 0)
      return cudaErrorInvalidValue;
    auto* object = reinterpret_cast<UserObject*>(handle);
    auto& kept = graph_of(graph)->content->kept;
    kept.insert(kept.end(), count, object);
    if ((flags & cudaGraphUserObjectMove) == 0) object->references += count;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count) {
  return without_context([&](Lock&) {
    if (graph == nullptr || handle == nullptr) return cudaErrorInvalidValue;
    auto* object = reinterpret_cast<UserObject*>(handle);
    auto& kept = graph_of(graph)->content->kept;
    for (; count > 0; --count) {
      const auto found = std::find(kept.begin(), kept.end(), object);
      if (found == kept.end()) return cudaErrorInvalidValue;
      kept.erase(found);
      release(object, 1);
    }
    return cudaSuccess;
  });
}

}  // extern "C"
