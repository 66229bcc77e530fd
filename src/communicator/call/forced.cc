#include "src/communicator/call/forced.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/base/nearest_name.h"
#include "src/base/protocol.h"
#include "src/communicator/call/carriers.h"
#include "src/communicator/call/options.h"
#include "src/tuner/choose.h"

namespace tutti {
namespace {

using Names = std::vector<std::string_view>;

// Returns the algorithms of all collectives, for one host or several, without duplicates, and kCopyEngines.
const Names& algorithm_names() {
  static const Names names = [] {
    Names made;
    for (std::uint32_t i = 0; i < kCollectives; ++i) {
      for (const Algorithm* algorithm : catalogue(static_cast<Collective>(i))) {
        const bool is_new = std::find(made.begin(), made.end(), algorithm->name()) == made.end();
        if (is_new) made.emplace_back(algorithm->name());
      }
    }
    made.push_back(kCopyEngines);
    return made;
  }();
  return names;
}

Status check_name(const std::string& source, const std::string& name, const Names& known) {
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return {};
  return invalid_argument(source + " is \"" + name + "\": " + suggestion(name, known));
}

Requested requested_of(const CommunicatorOptions& options) {
  constexpr std::uint32_t kMaxReported = 255;
  const auto number = [](const auto& known, const std::string& name) {
    const auto found = std::find(std::begin(known), std::end(known), name);
    return static_cast<std::uint8_t>(found == std::end(known) ? 0 : found - std::begin(known) + 1);
  };
  const auto compression = parse_compression(options.compression);
  Requested requested;
  requested.algorithm = number(algorithm_names(), options.algorithm);
  requested.protocol = number(kProtocols, options.protocol);
  if (compression.ok()) requested.compression = static_cast<std::uint8_t>(compression.value());
  if (options.max_relative_error > 0) requested.compression = Requested::kBound;
  requested.channels = static_cast<std::uint8_t>(std::min(options.channels, kMaxReported));
  return requested;
}

}  // namespace

Status check_algorithm(const std::string& source, const std::string& name) {
  return check_name(source, name, algorithm_names());
}

Status check_transport(const std::string& source, const std::string& name) {
  const std::vector<std::string> known = transport_names();
  return check_name(source, name, {known.begin(), known.end()});
}

Status check_protocol(const std::string& source, const std::string& name) {
  return check_name(source, name, {std::begin(kProtocols), std::end(kProtocols)});
}

Status check_compression_format(const std::string& source, const std::string& name) {
  return name.empty() ? Status() : parse_compression(name).status().during("reading " + source);
}

Status check_compression_or_bound(const std::string& sources, const std::string& name, double max_relative_error) {
  if (name.empty() || max_relative_error == 0) return {};
  return invalid_argument("compression format " + name +
                          " and a bound on the error are both set; set only one of them (" + sources + ")");
}

Status check_bounded_rounding(const std::string& sources, Rounding rounding, double max_relative_error) {
  if (rounding == Rounding::nearest || max_relative_error == 0) return {};
  return invalid_argument(
      "stochastic rounding and a bound on the error are both set, but the bound holds for rounding to nearest; set "
      "only one of them (" +
      sources + ")");
}

Status check_on_host_memory(std::string_view protocol, std::uint32_t channels) {
  if (channels > 1)
    return unsupported(
        std::to_string(channels) +
        " channels: host memory has 1 channel; pass 0 or 1 (options.tuning->channels or TUTTI_CHANNELS)");
  if (protocol != "LL128") return {};
  return unsupported(
      "protocol LL128 is for GPUs: on host memory there are LL and Simple (see options.tuning->protocol and "
      "TUTTI_PROTOCOL)");
}

Result<Rounding> parse_rounding(const std::string& source, const std::string& name) {
  TUTTI_CHECK_OK(check_name(source, name, {"nearest", "stochastic"}));
  return name == "stochastic" ? Rounding::stochastic : Rounding::nearest;
}

void CommunicatorOptions::update_agreement_hash() {
  agreement_hash = 0;
  std::string autotunes = std::to_string(static_cast<int>(tune)) + (tune_file.empty() ? "" : "f");
  if (tune != Tune::off && has_plugin()) autotunes += "p";
  if (deterministic) autotunes += "d";
  // Independent of the locale.
  const std::string bound = std::to_string(std::bit_cast<std::uint64_t>(max_relative_error));
  const std::string format_or_bound = max_relative_error > 0 ? bound : compression == "raw" ? "" : compression;
  const std::string range = std::to_string(min_channels) + '-' + std::to_string(max_channels);
  // Names from NCCL's variables are ignored where they do not apply.
  const auto with_source = [](const std::string& word, bool is_from_nccl) {
    return word.empty() || !is_from_nccl ? word : word + " of NCCL";
  };
  for (const std::string& word :
       {with_source(algorithm, algorithm_is_from_nccl), with_source(protocol, protocol_is_from_nccl), format_or_bound,
        std::to_string(channels), range, autotunes})
    agreement_hash = hashed(agreement_hash, word + '/');
  requested = requested_of(*this);
}

std::string_view algorithm_name(std::uint8_t number) {
  const Names& known = algorithm_names();
  return number == 0 || number > known.size() ? std::string_view() : known[number - 1];
}

void warn_about_nccl_variable(const std::string& variable, const std::string& why) {
  static std::mutex& mutex = *new std::mutex;
  static auto& reported = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (reported.insert(variable).second) log(LogLevel::warn, "%s ignored: %s", variable.c_str(), why.c_str());
}

Result<const char*> algorithms_of(std::string_view collective) {
  static const std::vector<std::string> lists = [] {
    std::vector<std::string> made;
    for (std::uint32_t i = 0; i < kCollectives; ++i) {
      made.push_back(names_of(static_cast<Collective>(i)));
      if (is_for_copy_engines(static_cast<Collective>(i))) made.back().append(", ").append(kCopyEngines);
    }
    return made;
  }();
  const Collective known = TUTTI_TRY(parse_collective(collective));
  return lists[static_cast<std::size_t>(known)].c_str();
}

}  // namespace tutti
