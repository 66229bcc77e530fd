#include "src/api/streams.h"

#include "src/api/call_entry.h"
#include "src/api/errors.h"

namespace tutti {
namespace {

void run_callback(void (*function)(void*, tutti_status), void* argument, const Status& status) {
  if (!status.ok()) report("stream", status);
  const CallbackScope scope;
  function(argument, static_cast<tutti_status>(status.code()));
}

Status no_stream(tutti_stream handle) {
  if (handle == nullptr) return invalid_argument("stream is null: make one with tutti_stream_create");
  return invalid_argument("invalid stream: it was destroyed, or created before fork()");
}

Status no_event(tutti_event handle) {
  if (handle == nullptr) return invalid_argument("event is null: make one with tutti_event_create");
  return invalid_argument("invalid event: it was destroyed, or created before fork()");
}

// Returns whether the event was reached in this time.
Result<bool> await_event(tutti_event handle, std::int64_t timeout_ms) {
  TUTTI_CHECK_OK(check_outside_callback("synchronizing"));
  return TUTTI_TRY(event_of(handle))->synchronize_for(timeout_ms);
}

}  // namespace

Result<std::shared_ptr<Stream>> stream_of(tutti_stream handle) {
  std::shared_ptr<Stream> stream = held(Streams::instance(), handle);
  if (stream == nullptr) return no_stream(handle);
  return stream;
}

Result<std::shared_ptr<Event>> event_of(tutti_event handle) {
  std::shared_ptr<Event> event = held(Events::instance(), handle);
  if (event == nullptr) return no_event(handle);
  return event;
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
    if (stream == nullptr) return invalid_argument("stream is null: pass a pointer to a tutti_stream");
    std::shared_ptr<Stream> made = TUTTI_TRY(Stream::create());
    void* handle = TUTTI_TRY(tutti::insert(Streams::instance(), std::move(made)));
    *stream = static_cast<tutti_stream>(handle);
    return {};
  });
}

tutti_status tutti_stream_destroy(tutti_stream stream) {
  if (stream == nullptr) return tutti_ok;
  return guarded("tutti_stream_destroy", [&]() -> Status {
    TUTTI_CHECK_OK(tutti::check_outside_callback("destroying a stream"));
    const auto owned = Streams::instance().remove(stream);
    if (owned == nullptr) return tutti::no_stream(stream);
    return (*owned)->synchronize();
  });
}

tutti_status tutti_stream_synchronize(tutti_stream stream) {
  return guarded("tutti_stream_synchronize", [&]() -> Status {
    TUTTI_CHECK_OK(tutti::check_outside_callback("synchronizing"));
    const auto known = TUTTI_TRY(tutti::stream_of(stream));
    return known->synchronize();
  });
}

tutti_status tutti_stream_query(tutti_stream stream) {
  bool idle = false;
  const tutti_status status = guarded("tutti_stream_query", [&]() -> Status {
    const auto known = TUTTI_TRY(tutti::stream_of(stream));
    idle = known->idle();
    return idle ? known->failure() : Status();
  });
  return status == tutti_ok && !idle ? tutti_in_progress : status;
}

tutti_status tutti_stream_add_callback(tutti_stream stream, void (*function)(void* argument, tutti_status status),
                                       void* argument) {
  return guarded("tutti_stream_add_callback", [&]() -> Status {
    if (function == nullptr) return invalid_argument("function is null: pass the function to call");
    const auto known = TUTTI_TRY(tutti::stream_of(stream));
    known->enqueue_callback([=](const Status& status) { tutti::run_callback(function, argument, status); });
    return {};
  });
}

tutti_status tutti_event_create(tutti_event* event) {
  return guarded("tutti_event_create", [&]() -> Status {
    if (event == nullptr) return invalid_argument("event is null: pass a pointer to a tutti_event");
    void* handle = TUTTI_TRY(tutti::insert(Events::instance(), std::make_shared<Event>()));
    *event = static_cast<tutti_event>(handle);
    return {};
  });
}

tutti_status tutti_event_destroy(tutti_event event) {
  if (event == nullptr) return tutti_ok;
  return guarded("tutti_event_destroy", [&]() -> Status {
    return Events::instance().remove(event) != nullptr ? Status() : tutti::no_event(event);
  });
}

tutti_status tutti_event_record(tutti_event event, tutti_stream stream) {
  return guarded("tutti_event_record", [&]() -> Status {
    const auto mark = TUTTI_TRY(tutti::event_of(event));
    const auto known = TUTTI_TRY(tutti::stream_of(stream));
    mark->record(*known);
    return {};
  });
}

tutti_status tutti_stream_wait(tutti_stream stream, tutti_event event) {
  return guarded("tutti_stream_wait", [&]() -> Status {
    const auto mark = TUTTI_TRY(tutti::event_of(event));
    const auto known = TUTTI_TRY(tutti::stream_of(stream));
    mark->hold(*known);
    return {};
  });
}

tutti_status tutti_event_synchronize(tutti_event event) {
  return guarded("tutti_event_synchronize", [&] { return tutti::await_event(event, -1).status(); });
}

tutti_status tutti_event_synchronize_for(tutti_event event, int64_t timeout_ms) {
  bool reached = false;
  const tutti_status status = guarded("tutti_event_synchronize_for", [&]() -> Status {
    TUTTI_CHECK_OK(tutti::check_timeout(timeout_ms));
    reached = TUTTI_TRY(tutti::await_event(event, timeout_ms));
    return {};
  });
  return status == tutti_ok && !reached ? tutti_in_progress : status;
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
