// pause() for other processors: none is known, but the compiler may not merge the loads around it.
#pragma once

namespace tutti {

inline void pause() { __asm__ volatile("" ::: "memory"); }

}  // namespace tutti
