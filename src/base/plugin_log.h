// Messages that NCCL plugins log through a function of ours.
#pragma once

#include <cstdarg>
#include <cstdint>

namespace tutti {

// Logs a message at one of NCCL's levels: `kind`, a colon, and the formatted text.
void log_for_plugin(const char* kind, std::int32_t level, const char* format, std::va_list arguments);

}  // namespace tutti
