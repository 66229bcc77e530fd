#include "src/communicator/joining/network_choice.h"

#include <utility>

#include "src/base/log.h"
#include "src/communicator/call/carriers.h"
#include "src/communicator/call/forced.h"

namespace tutti {

RemoteOffer NetworkChoice::offer() {
  Result<std::unique_ptr<CarrierSource>> opened = open_default_carrier({.traffic_class = traffic_class_});
  if (!opened.ok()) return {"", std::move(opened).status().message()};
  opened_ = std::move(opened).value();
  return {kDefaultCarrier, ""};
}

std::unique_ptr<CarrierSource> NetworkChoice::choose(const Bootstrap& bootstrap) {
  if (bootstrap.remote_offers().empty()) return nullptr;  // All ranks are on one host.
  const auto named = [&](Rank rank) {
    return "rank " + std::to_string(rank) + " (" + describe(bootstrap.peer(rank)) + ")";
  };
  const std::string why = why_tcp(bootstrap.remote_offers(), named);
  if (why.empty()) {
    log(LogLevel::info, "between hosts %s: all ranks have it", kDefaultCarrier);
    return std::move(opened_);
  }
  opened_ = nullptr;
  log(LogLevel::info, "between hosts tcp: %s", why.c_str());
  return nullptr;
}

std::string why_tcp(const std::vector<RemoteOffer>& offers, const std::function<std::string(Rank)>& named) {
  for (Rank rank = 0; rank < offers.size(); ++rank) {
    const RemoteOffer& offer = offers[rank];
    if (offer.carrier.empty()) return named(rank) + " has no " + kDefaultCarrier + ": " + offer.why_none;
    if (offer.carrier != offers.front().carrier)
      return named(0) + " has " + offers.front().carrier + ", and " + named(rank) + " " + offer.carrier;
  }
  return "";
}

Status check_requested_transport(const Config& config) {
  TUTTI_CHECK_OK(check_transport("TUTTI_TRANSPORT", config.transport));
  Result<std::unique_ptr<CarrierSource>> opened = open_carriers(config.transport);
  if (!opened.ok()) return std::move(opened).status().during("opening " + config.transport + ", for TUTTI_TRANSPORT");
  if (opened.value() != nullptr && (config.encrypt || config.check_tcp))
    return protection_unsupported(config.transport);
  return {};
}

std::string describe_between_hosts() {
  const std::string& requested = config().transport;
  if (requested == "shm") return "none: TUTTI_TRANSPORT is shm, which connects ranks of one host";
  if (!requested.empty()) {
    Status possible = check_requested_transport(config());
    return possible.ok() ? network_of(requested) + ", for TUTTI_TRANSPORT" : "none: " + std::move(possible).message();
  }
  if (config().encrypt || config().check_tcp) return "tcp, for TUTTI_ENCRYPT and TUTTI_CHECK";
  Result<std::string> found = describe_default_carrier();
  if (found.ok()) return std::string(kDefaultCarrier) + ", where all ranks have it: " + found.value();
  return "tcp, no " + std::string(kDefaultCarrier) + ": " + std::move(found).status().message();
}

}  // namespace tutti
