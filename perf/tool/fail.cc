#include "perf/tool/fail.h"

#include <unistd.h>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace perf {
namespace {

const char* name = "perf";

}  // namespace

void set_program_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  name = slash == nullptr ? path : slash + 1;
}

const char* program_name() { return name; }

void fail(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", name, text);
  ::_exit(2);  // Other ranks of this process may be inside the library: no destructors.
}

void require(tutti_status status, const char* action) {
  if (status != tutti_ok) fail("%s: %s: %s", action, tutti_status_name(status), tutti_last_error(nullptr));
}

}  // namespace perf
