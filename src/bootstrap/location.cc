#include "src/bootstrap/location.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr std::uint32_t kMaxDomains = 1U << 16;  // More than any kernel supports.

using Field = std::array<char, 24>;

void fill(Field& field, std::string_view text) {
  field = {};
  // Too long names are dropped, not truncated.
  if (text.size() < field.size()) std::copy(text.begin(), text.end(), field.begin());
}

std::string text_of(const Field& field) { return {field.begin(), std::find(field.begin(), field.end(), '\0')}; }

bool is_name(const Field& field) {
  const auto end = std::find(field.begin(), field.end(), '\0');
  return end != field.end() &&
         std::all_of(field.begin(), end, [](char letter) { return letter > 0x20 && letter < 0x7f; });
}

}  // namespace

void set_gpu(Location& location, std::string_view bus_id) { fill(location.gpu, bus_id); }
void set_port(Location& location, std::string_view name) { fill(location.port, name); }
std::string gpu_of(const Location& location) { return text_of(location.gpu); }
std::string port_of(const Location& location) { return text_of(location.port); }

Location sane(const Location& received) {
  const bool known_domain = received.domain == kNoDomain || received.domain < kMaxDomains;
  const bool sound = received.version == kLocationVersion && known_domain && received.wants_topology <= 1 &&
                     received.instructions <= number_of(Instructions::avx512) && is_name(received.gpu) &&
                     is_name(received.port);
  return sound ? received : Location();
}

}  // namespace tutti
