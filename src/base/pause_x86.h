// pause() for x86: about 40 to 140 cycles.
#pragma once

namespace tutti {

inline void pause() { __builtin_ia32_pause(); }

}  // namespace tutti
