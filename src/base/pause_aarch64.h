// pause() for 64-bit ARM: a hint that some cores pass over in a few cycles.
#pragma once

namespace tutti {

inline void pause() { __asm__ volatile("yield" ::: "memory"); }

}  // namespace tutti
