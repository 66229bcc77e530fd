#include "src/nccl/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tutti::nccl {
namespace {

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double number_of(const char* name, double fallback) {
  const std::string value = value_of(name);
  double number = fallback;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

}  // namespace

std::string memory_of_environment() { return value_of("TUTTI_NCCL_MEMORY"); }

std::string compression_of_environment(const std::string& rest) {
  return value_of(("TUTTI_NCCL_COMPRESS" + rest).c_str());
}

std::string log_of_environment(const char* name) { return value_of(name); }

std::string net_of_environment() { return value_of("NCCL_NET"); }

bool rdma_is_disabled() {
  const std::string own = value_of("TUTTI_IB_DISABLE");
  return (own.empty() ? value_of("NCCL_IB_DISABLE") : own) == "1";
}

std::string fallback_of_environment() { return value_of("TUTTI_NCCL_FALLBACK"); }

bool is_set(const char* name) { return !value_of(name).empty(); }

// Communicators are not created if one of the variables is invalid.
std::int64_t timeout_ms_of_environment() {
  const double limit_ms = number_of("TUTTI_TIMEOUT_MS", -1) * number_of("TUTTI_TIMEOUT_SCALE", 1);
  return limit_ms <= 0 ? -1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(limit_ms));
}

std::optional<int> blocking_of_environment() {
  const std::string value = value_of("NCCL_COMM_BLOCKING");
  if (value != "0" && value != "1") return std::nullopt;
  return value == "1" ? 1 : 0;
}

std::optional<int> ctas_of_environment(const char* name) {
  const std::string value = value_of(name);
  int ctas = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ctas);
  if (error != std::errc() || end != value.data() + value.size() || ctas < 1) return std::nullopt;
  return ctas;
}

}  // namespace tutti::nccl
