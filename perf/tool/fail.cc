#include "perf/tool/fail.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>

namespace perf {
namespace {

const char* name = "perf";

// Hashes of printed messages, in memory shared by all processes. 0 marks a free entry. If the table is full, messages
// may repeat.
using Reported = std::array<std::atomic<std::uint64_t>, 64>;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
Reported* reported = nullptr;

bool is_new(std::string_view sentence) {
  if (reported == nullptr) return true;
  const std::uint64_t mine = std::hash<std::string_view>()(sentence) | 1;
  for (std::atomic<std::uint64_t>& slot : *reported) {
    std::uint64_t there = 0;
    if (slot.compare_exchange_strong(there, mine)) return true;
    if (there == mine) return false;
  }
  return true;
}

}  // namespace

void share_failures() {
  void* memory = ::mmap(nullptr, sizeof(Reported), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) reported = new (memory) Reported();
}

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
  if (is_new(text)) std::fprintf(stderr, "%s: %s\n", name, text);
  ::_exit(2);  // Skips destructors: other ranks of this process may be inside the library.
}

void require(tutti_status status, const char* action) {
  if (status != tutti_ok) fail("%s: %s: %s", action, tutti_status_name(status), tutti_last_error(nullptr));
}

}  // namespace perf
