#include "src/communicator/joining/between_hosts.h"

#include <utility>

#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/carriers.h"

namespace tutti {

FarOffer BetweenHosts::offer() {
  Result<std::unique_ptr<CarrierSource>> opened = open_unasked();
  if (!opened.ok()) return {"", std::move(opened).status().message()};
  opened_ = std::move(opened).value();
  return {kUnasked, ""};
}

std::unique_ptr<CarrierSource> BetweenHosts::choose(const Bootstrap& bootstrap) {
  if (bootstrap.far_offers().empty()) return nullptr;  // All ranks are on one host.
  const auto named = [&](Rank rank) {
    return "rank " + std::to_string(rank) + " (" + describe(bootstrap.peer(rank)) + ")";
  };
  const std::string why = why_tcp(bootstrap.far_offers(), named);
  if (why.empty()) {
    log(LogLevel::info, "between hosts %s: all ranks have it", kUnasked);
    return std::move(opened_);
  }
  opened_ = nullptr;
  log(LogLevel::info, "between hosts tcp: %s", why.c_str());
  return nullptr;
}

std::string why_tcp(const std::vector<FarOffer>& offers, const std::function<std::string(Rank)>& named) {
  for (Rank rank = 0; rank < offers.size(); ++rank) {
    const FarOffer& offer = offers[rank];
    if (offer.carrier.empty()) return named(rank) + " has no " + kUnasked + ": " + offer.why_none;
    if (offer.carrier != offers.front().carrier)
      return named(0) + " has " + offers.front().carrier + ", and " + named(rank) + " " + offer.carrier;
  }
  return "";
}

std::string describe_between_hosts() {
  if (!config().transport.empty()) return config().transport + ", for TUTTI_TRANSPORT";
  if (config().encrypt || config().check_wire) return "tcp, for TUTTI_ENCRYPT and TUTTI_CHECK";
  Result<std::string> found = describe_unasked();
  if (found.ok()) return std::string(kUnasked) + ", where all ranks have it: " + found.value();
  return "tcp, no " + std::string(kUnasked) + ": " + std::move(found).status().message();
}

}  // namespace tutti
