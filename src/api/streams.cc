#include "src/api/streams.h"

#include "src/api/errors.h"

namespace tutti {

Result<Stream*> stream_of(tutti_stream handle) {
  Stream* stream = Streams::instance().find(handle);
  if (stream != nullptr) return stream;
  if (handle == nullptr) return invalid_argument("stream is null: make one with tutti_stream_create");
  return invalid_argument("stream is none of this process: it was destroyed, or belongs to the parent of a fork");
}

Result<Event*> event_of(tutti_event handle) {
  Event* event = Events::instance().find(handle);
  if (event != nullptr) return event;
  if (handle == nullptr) return invalid_argument("event is null: make one with tutti_event_create");
  return invalid_argument("event is none of this process: it was destroyed, or belongs to the parent of a fork");
}

}  // namespace tutti

using tutti::Event;
using tutti::Events;
using tutti::guarded;
using tutti::invalid_argument;
using tutti::Status;
using tutti::Stream;
using tutti::Streams;

extern "C" {

tutti_status tutti_stream_create(tutti_stream* stream) {
  return guarded("tutti_stream_create", [&]() -> Status {
    if (stream == nullptr) return invalid_argument("stream is null: pass where to put the handle");
    auto made = TUTTI_TRY(Stream::create());
    *stream = static_cast<tutti_stream>(TUTTI_TRY(Streams::instance().insert(std::move(made))));
    return {};
  });
}

tutti_status tutti_stream_destroy(tutti_stream stream) {
  if (stream == nullptr) return tutti_ok;
  return guarded("tutti_stream_destroy", [&]() -> Status {
    TUTTI_CHECK_OK(tutti::stream_of(stream).status());
    const auto owned = Streams::instance().remove(stream);
    return owned->synchronize();
  });
}

tutti_status tutti_stream_synchronize(tutti_stream stream) {
  return guarded("tutti_stream_synchronize",
                 [&]() -> Status { return TUTTI_TRY(tutti::stream_of(stream))->synchronize(); });
}

tutti_status tutti_stream_query(tutti_stream stream) {
  bool idle = false;
  const tutti_status status = guarded("tutti_stream_query", [&]() -> Status {
    idle = TUTTI_TRY(tutti::stream_of(stream))->idle();
    return {};
  });
  return status == tutti_ok && !idle ? tutti_in_progress : status;
}

tutti_status tutti_event_create(tutti_event* event) {
  return guarded("tutti_event_create", [&]() -> Status {
    if (event == nullptr) return invalid_argument("event is null: pass where to put the handle");
    *event = static_cast<tutti_event>(TUTTI_TRY(Events::instance().insert(std::make_unique<Event>())));
    return {};
  });
}

tutti_status tutti_event_destroy(tutti_event event) {
  if (event == nullptr) return tutti_ok;
  return guarded("tutti_event_destroy", [&]() -> Status {
    TUTTI_CHECK_OK(tutti::event_of(event).status());
    Events::instance().remove(event);
    return {};
  });
}

tutti_status tutti_event_record(tutti_event event, tutti_stream stream) {
  return guarded("tutti_event_record", [&]() -> Status {
    Event* mark = TUTTI_TRY(tutti::event_of(event));
    mark->record(*TUTTI_TRY(tutti::stream_of(stream)));
    return {};
  });
}

tutti_status tutti_stream_wait(tutti_stream stream, tutti_event event) {
  return guarded("tutti_stream_wait", [&]() -> Status {
    const Event* mark = TUTTI_TRY(tutti::event_of(event));
    mark->hold(*TUTTI_TRY(tutti::stream_of(stream)));
    return {};
  });
}

tutti_status tutti_event_synchronize(tutti_event event) {
  return guarded("tutti_event_synchronize", [&]() -> Status {
    TUTTI_TRY(tutti::event_of(event))->synchronize();
    return {};
  });
}

tutti_status tutti_event_query(tutti_event event) {
  bool reached = false;
  const tutti_status status = guarded("tutti_event_query", [&]() -> Status {
    reached = TUTTI_TRY(tutti::event_of(event))->reached();
    return {};
  });
  return status == tutti_ok && !reached ? tutti_in_progress : status;
}

}  // extern "C"
