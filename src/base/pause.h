// pause(): a hint to the processor that the thread spins.
#pragma once

namespace tutti {

#if defined(__x86_64__) || defined(__i386__)
// Takes 40 to 140 cycles.
inline void pause() { __builtin_ia32_pause(); }
#elif defined(__aarch64__)
// Takes a few cycles; some cores ignore it.
inline void pause() { __asm__ volatile("yield" ::: "memory"); }
#else
// A barrier that keeps the compiler from merging loads.
inline void pause() { __asm__ volatile("" ::: "memory"); }
#endif

}  // namespace tutti
