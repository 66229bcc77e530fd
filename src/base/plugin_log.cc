#include "src/base/plugin_log.h"

#include <cstdio>

#include "src/base/log.h"

namespace tutti {
namespace {

// NCCL's levels: 0 none, 1 version, 2 warn, 3 info, 4 abort, 5 trace.
LogLevel level_of_nccl(std::int32_t level) {
  if (level == 1 || level == 3) return LogLevel::info;
  return level == 5 ? LogLevel::trace : LogLevel::warn;
}

}  // namespace

void log_for_plugin(const char* kind, std::int32_t level, const char* format, std::va_list arguments) {
  if (level <= 0 || format == nullptr || !logs(level_of_nccl(level))) return;
  char text[900];
  std::vsnprintf(text, sizeof text, format, arguments);
  log(level_of_nccl(level), "%s: %s", kind, text);
}

}  // namespace tutti
