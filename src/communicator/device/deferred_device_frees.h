// Deferred frees of device memory. Unmapping or freeing may synchronize with held streams of this process (see
// time_sliced_launcher.h) and so delay the launches that would release them. Frees are therefore queued while any
// stream is held. A stream that becomes held during a free delays that free until the stream is released. Streams held
// by replayed graphs are not counted. Thread-safe.
#pragma once

#include <functional>

namespace tutti {

// Count the held streams of the process.
void note_held_stream();
void note_released_stream();

// Runs `back` at once if no stream is held; otherwise the next call of free_deferred() or free_retained() without held
// streams runs it.
void free_deferred(std::function<void()> back);
// Frees queued memory if no stream is held. Called when communicators are created, and when a device lacks memory.
void free_retained();

}  // namespace tutti
