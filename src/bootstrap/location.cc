#include "src/bootstrap/location.h"

#include <algorithm>
#include <span>

namespace tutti {
namespace {

constexpr std::uint32_t kMaxDomains = 1U << 16;  // More than any kernel supports.

bool is_terminated_name(std::span<const char> text) {
  const auto end = std::find(text.begin(), text.end(), '\0');
  return end != text.end() &&
         std::all_of(text.begin(), end, [](char letter) { return letter > 0x20 && letter < 0x7f; });
}

}  // namespace

// Drops names that are too long, since a truncated name could be that of another GPU.
void set_gpu(Location& location, std::string_view bus_id) {
  location.gpu = {};
  if (bus_id.size() < location.gpu.size()) std::copy(bus_id.begin(), bus_id.end(), location.gpu.begin());
}

std::string gpu_of(const Location& location) {
  return {location.gpu.begin(), std::find(location.gpu.begin(), location.gpu.end(), '\0')};
}

Location validated(const Location& received) {
  const bool known_domain = received.domain == kNoDomain || received.domain < kMaxDomains;
  const bool sound = received.version == kLocationVersion && known_domain && received.wants_topology <= 1 &&
                     received.instructions <= number_of(Instructions::avx512) && is_terminated_name(received.gpu);
  return sound ? received : Location();
}

}  // namespace tutti
