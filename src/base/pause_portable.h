// pause() for other processors: no instruction, only a barrier that keeps the compiler from merging loads.
#pragma once

namespace tutti {

inline void pause() { __asm__ volatile("" ::: "memory"); }

}  // namespace tutti
