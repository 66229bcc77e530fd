#include "tests/ptx/runtime/event.h"

#include <algorithm>

namespace {

using namespace tutti::cudart;

std::set<Event*>& events() {
  static auto& all = *new std::set<Event*>;
  return all;
}

// Runs `body` with the event of a handle.
cudaError_t on_event(cudaEvent_t handle, const std::function<cudaError_t(Lock&, DeviceState&, Event&)>& body) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    auto* event = reinterpret_cast<Event*>(handle);
    return events().count(event) == 0 ? cudaErrorInvalidResourceHandle : body(lock, device, *event);
  });
}

// A query of an event whose last mark is in a capture is an error, which invalidates the capture.
cudaError_t forbid_query(Event& event) {
  if (event.capture == nullptr) return forbid_during_capture();
  invalidate(*event.capture);
  return cudaErrorCapturedEvent;
}

cudaError_t record(Event& event, Stream& stream) {
  if (event.device != stream.device) return cudaErrorInvalidResourceHandle;
  if (stream.capture != nullptr) {
    if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
    event.capture = stream.capture;
    event.captured = stream.dependencies;
    event.mark->task = nullptr;
    return cudaSuccess;
  }
  const cudaError_t error = enqueue(stream, {}, &event.mark->task);
  if (error != cudaSuccess) return error;
  event.capture = nullptr;
  event.captured.clear();
  return cudaSuccess;
}

// Makes each launch of the captured graph record the event. Source: CUDA runtime API, cudaEventRecordWithFlags.
cudaError_t record_in_launches(Event& event, Stream& stream) {
  if (stream.capture == nullptr || event.device != stream.device) return cudaErrorInvalidValue;
  if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  capture_node(stream, cudaGraphNodeTypeEventRecord, nullptr).recorded = event.mark;
  return cudaSuccess;
}

// Makes each launch of the captured graph wait for the event. Source: CUDA runtime API, cudaStreamWaitEvent.
cudaError_t wait_in_launches(Stream& stream, const Event& event) {
  if (stream.capture == nullptr) return cudaErrorInvalidValue;
  if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  capture_node(stream, cudaGraphNodeTypeWaitEvent, nullptr).awaited = event.mark;
  return cudaSuccess;
}

void join(Stream& stream, const Event& event) {
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.dependencies.clear();
    event.capture->streams.insert(&stream);
  }
  for (GraphNode* node : event.captured) {
    auto& all = stream.dependencies;
    if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
  }
}

cudaError_t fail(Stream& stream, const Event& event, cudaError_t error) {
  if (stream.capture != nullptr) invalidate(*stream.capture);
  if (event.capture != nullptr) invalidate(*event.capture);
  return error;
}

cudaError_t wait(Stream& stream, const Event& event) {
  if (event.capture != nullptr && event.capture->ended) return fail(stream, event, cudaErrorCapturedEvent);
  if (stream.capture != nullptr && stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (event.capture != nullptr) {
    if (&stream == &device_state(stream.device).legacy) return fail(stream, event, cudaErrorStreamCaptureUnsupported);
    if (stream.capture != nullptr && stream.capture != event.capture)
      return fail(stream, event, cudaErrorStreamCaptureMerge);
    if (event.capture->invalid) return cudaErrorStreamCaptureInvalidated;
    join(stream, event);
    return cudaSuccess;
  }
  if (stream.capture != nullptr) return fail(stream, event, cudaErrorStreamCaptureIsolation);
  if (event.mark->task == nullptr) return cudaSuccess;  // Never recorded.
  append(stream, nullptr, {event.mark->task});
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  return enter_runtime([&](Lock&, DeviceState& device) {
    constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (made == nullptr || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
    if ((flags & cudaEventInterprocess) != 0) return not_supported("cudaEventInterprocess");
    auto* event = new Event;
    event->device = device.ordinal;
    event->timing = (flags & cudaEventDisableTiming) == 0;
    events().insert(event);
    *made = reinterpret_cast<cudaEvent_t>(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return on_event(handle, [](Lock&, DeviceState&, Event& event) {
    events().erase(&event);
    delete &event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t in, unsigned flags) {
  if (flags > cudaEventRecordExternal) return keep(cudaErrorInvalidValue);
  return on_event(handle, [&](Lock&, DeviceState& device, Event& event) {
    Stream* stream = stream_of(in, device);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return flags == cudaEventRecordExternal ? record_in_launches(event, *stream) : record(event, *stream);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t of, cudaEvent_t handle, unsigned flags) {
  if (flags > cudaEventWaitExternal) return keep(cudaErrorInvalidValue);
  return on_event(handle, [&](Lock&, DeviceState& device, Event& event) {
    Stream* stream = stream_of(of, device);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return flags == cudaEventWaitExternal ? wait_in_launches(*stream, event) : wait(*stream, event);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return on_event(handle, [](Lock&, DeviceState&, Event& event) {
    const cudaError_t error = forbid_query(event);
    if (error != cudaSuccess) return error;
    return are_done({event.mark->task}) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return on_event(handle, [](Lock& lock, DeviceState&, Event& event) {
    const cudaError_t error = forbid_query(event);
    if (error != cudaSuccess) return error;
    const TaskPtr task = event.mark->task;
    const int device = event.device;
    engine().await(lock, "cudaEventSynchronize", task);
    return device_state(device).fault;
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t until) {
  return on_event(from, [&](Lock&, DeviceState&, Event& start) {
    auto* end = reinterpret_cast<Event*>(until);
    if (events().count(end) == 0 || !start.timing || !end->timing) return cudaErrorInvalidResourceHandle;
    for (Event* event : {&start, end}) {
      if (event->capture != nullptr) return forbid_query(*event);
      if (event->mark->task == nullptr) return cudaErrorInvalidResourceHandle;
    }
    if (!are_done({start.mark->task, end->mark->task})) return cudaErrorNotReady;
    *ms = static_cast<float>(static_cast<double>(end->mark->task->done_ns - start.mark->task->done_ns) * 1e-6);
    return cudaSuccess;
  });
}

}  // extern "C"
