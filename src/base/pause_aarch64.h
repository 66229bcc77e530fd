// pause() for 64-bit ARM: a hint that takes a few cycles and that some cores ignore.
#pragma once

namespace tutti {

inline void pause() { __asm__ volatile("yield" ::: "memory"); }

}  // namespace tutti
