// What is given back to a device while streams of this process are held (see turns.h) waits until none is: to unmap or
// free memory may wait for these streams, and hold up the launches that bring their calls to an end. A stream that
// comes to be held just then makes it wait after all, for that stream's keeper at the longest. Nobody knows of the
// replays of graphs. Any thread.
#pragma once

#include <functional>

namespace tutti {

void note_held_stream();
void note_let_go();  // One of those.

// Does it at once if no stream is held, else when somebody comes here while none is.
void free_deferred(std::function<void()> back);
// Of what was kept; called where communicators are made, and where a device lacks memory.
void free_retained();

}  // namespace tutti
