// The streams and events behind their handles.
#pragma once

#include "src/api/handles.h"
#include "src/communicator/stream.h"
#include "tutti/tutti.h"

namespace tutti {

using Streams = HandleTable<Stream, HandleKind::stream>;
using Events = HandleTable<Event, HandleKind::event>;

Result<Stream*> stream_of(tutti_stream stream);
Result<Event*> event_of(tutti_event event);

}  // namespace tutti
