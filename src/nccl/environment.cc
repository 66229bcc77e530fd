#include "src/nccl/environment.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

#include "src/base/read_number.h"
#include "src/nccl/banner.h"

namespace tutti::nccl {
namespace {

double number_of(const char* name, double fallback) {
  double number = fallback;
  return read_number(variable(name), number) ? number : fallback;
}

// Logs a value that counts as unset, once per variable.
std::nullopt_t ignored(const std::string& name, const std::string& value, const char* wanted) {
  static std::mutex mutex;
  static std::set<std::string> logged;
  const std::lock_guard lock(mutex);
  if (logged.insert(name).second) log_warning(name + " is \"" + value + "\", but must be " + wanted + ": ignored");
  return std::nullopt;
}

}  // namespace

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

bool rdma_is_disabled() {
  const std::string own = variable("TUTTI_IB_DISABLE");
  return (own.empty() ? variable("NCCL_IB_DISABLE") : own) == "1";
}

bool traffic_class_is_set() {
  const std::string own = variable("TUTTI_IB_TC");
  const std::string value = own.empty() ? variable("NCCL_IB_TC") : own;
  std::uint8_t parsed = 0;
  return read_number(value, parsed);
}

// Communicators are not created if one of the variables is invalid.
std::int64_t timeout_ms_of_environment() {
  const double limit_ms = number_of("TUTTI_TIMEOUT_MS", -1) * number_of("TUTTI_TIMEOUT_SCALE", 1);
  return limit_ms <= 0 ? -1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(limit_ms));
}

std::optional<int> blocking_of_environment() {
  const std::string value = variable("NCCL_COMM_BLOCKING");
  if (value.empty()) return std::nullopt;
  if (value != "0" && value != "1") return ignored("NCCL_COMM_BLOCKING", value, "0 or 1");
  return value == "1" ? 1 : 0;
}

std::optional<int> ctas_of_environment(const char* name) {
  const std::string value = variable(name);
  if (value.empty()) return std::nullopt;
  int ctas = 0;
  if (!read_number(value, ctas) || ctas < 1) return ignored(name, value, "a whole number, 1 or more");
  return ctas;
}

std::optional<int> cta_policy_of_environment() {
  constexpr const char* kNames[] = {"DEFAULT", "EFFICIENCY", "ZERO"};
  const std::string value = variable("NCCL_CTA_POLICY");
  if (value.empty()) return std::nullopt;
  for (int policy = 0; policy < 3; ++policy)
    if (::strcasecmp(value.c_str(), kNames[policy]) == 0) return policy;
  int bits = 0;
  if (read_number(value, bits) && bits >= 0 && bits <= 3) return bits;
  return ignored("NCCL_CTA_POLICY", value, "0 to 3, DEFAULT, EFFICIENCY or ZERO");
}

bool algorithm_is_set() { return !variable("TUTTI_ALGORITHM").empty() || !variable("NCCL_ALGO").empty(); }

}  // namespace tutti::nccl
