// The streams and events behind their handles. Any thread may destroy one while others use it: a call holds a reference
// to each that it uses.
#pragma once

#include <memory>

#include "src/base/handle_table.h"
#include "src/communicator/call/stream.h"
#include "tutti/tutti.h"

namespace tutti {

using Streams = HandleTable<std::shared_ptr<Stream>, HandleKind::stream>;
using Events = HandleTable<std::shared_ptr<Event>, HandleKind::event>;

Result<std::shared_ptr<Stream>> stream_of(tutti_stream stream);
Result<std::shared_ptr<Event>> event_of(tutti_event event);

}  // namespace tutti
