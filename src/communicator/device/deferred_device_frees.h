// Deferred frees of device memory. Unmapping or freeing may synchronize with streams of this process that are held
// (see turns.h), and so delay the launches that end their calls. Frees are queued while a stream is held. A stream
// that becomes held during a free delays it, at most until that stream is released. Replays of graphs are not
// known. Any thread.
#pragma once

#include <functional>

namespace tutti {

void note_held_stream();
void note_let_go();  // One of those.

// Does it at once if no stream is held, else when somebody comes here while none is.
void free_deferred(std::function<void()> back);
// Frees queued memory. Called when communicators are created, and when a device lacks memory.
void free_retained();

}  // namespace tutti
