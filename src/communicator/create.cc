// Creation of communicators: joins their ranks, connects them, and shares a board.
#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <string>

#include "src/base/caught.h"
#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/log.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/secrets.h"
#include "src/communicator/call/carriers.h"
#include "src/communicator/communicator.h"
#include "src/communicator/joining/join.h"
#include "src/communicator/joining/merge.h"
#include "src/communicator/joining/network_choice.h"
#include "src/communicator/joining/own_host.h"
#include "src/communicator/joining/probe.h"
#include "src/communicator/joining/settings.h"
#include "src/communicator/membership/control_plane.h"

namespace tutti {

namespace {

// Warns once per process. With TUTTI_TUNE or TUTTI_DETERMINISTIC, the file is unused on purpose.
void warn_of_idle_tune_file() {
  static std::atomic_flag reported;
  const std::string idle = config().tune == Tune::off && !config().deterministic ? ineffective_tuning(config()) : "";
  if (!idle.empty() && !reported.test_and_set()) log(LogLevel::warn, "%s", idle.c_str());
}

Status check_reach(const Bootstrap& bootstrap, const CommunicatorOptions& options) {
  if (options.transport != "shm") return {};
  for (Rank peer = 0; peer < bootstrap.ranks(); ++peer) {
    if (bootstrap.on_same_host(peer)) continue;
    return unsupported("transport shm reaches ranks of one host, and rank " + std::to_string(peer) + " is " +
                       describe(bootstrap.peer(peer)) + ": use tcp, or leave the transport unset");
  }
  return {};
}

// Transport that was requested or chosen. Without carriers: TCP.
struct Chosen {
  std::unique_ptr<CarrierSource> carriers;
  std::string instead;  // See CarrierOptions.
};

std::uint64_t number_of(const UniqueId& id) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.communicator.data(), sizeof number);
  return number;
}

CarrierUser user_of(const CommunicatorOptions& options, const Bootstrap& bootstrap, const UniqueId& id) {
  CarrierUser user = {.communicator = number_of(id), .traffic_class = options.traffic_class};
  for (Rank peer = 0; peer < bootstrap.rank(); ++peer) user.index_on_host += bootstrap.on_same_host(peer) ? 1 : 0;
  return user;
}

Result<Chosen> chosen_carriers(const CommunicatorOptions& options, Protection protection, const Bootstrap& bootstrap,
                               const UniqueId& id, NetworkChoice& network_choice) {
  if (!options.transport.empty()) {
    std::unique_ptr<CarrierSource> carriers =
        TUTTI_TRY(open_carriers(options.transport, user_of(options, bootstrap, id)));
    if (carriers != nullptr && protection != Protection::none) return protection_unsupported(options.transport);
    return Chosen{std::move(carriers), ""};
  }
  if (protection != Protection::none) return Chosen{};
  return Chosen{network_choice.choose(bootstrap), NetworkChoice::kRdmaErrorAdvice};
}

std::string carrier_name(const CommunicatorOptions& options, const Chosen& chosen, Protection protection) {
  if (chosen.carriers != nullptr) return options.transport.empty() ? kDefaultCarrier : network_of(options.transport);
  if (protection == Protection::none) return "tcp";
  return protection == Protection::encrypted ? "tcp encrypted" : "tcp checked";
}

Result<std::vector<Contact>> contacts_of(Bootstrap& bootstrap, std::vector<PeerSocket> peer_sockets,
                                         const Chosen& chosen, Protection protection) {
  std::vector<Socket> sockets = bootstrap.take_sockets();
  std::vector<Contact> contacts(bootstrap.ranks());
  for (Rank peer = 0; peer < contacts.size(); ++peer) {
    PeerSocket& link = peer_sockets[peer];
    if (!link.socket) {
      contacts[peer] = Contact(std::move(sockets[peer]));
      continue;
    }
    CarrierOptions carrier_options = {nullptr, chosen.carriers != nullptr, chosen.instead};
    if (chosen.carriers != nullptr) {
      Result<std::unique_ptr<Carrier>> made = chosen.carriers->make();
      if (!made.ok() && chosen.instead.empty()) return std::move(made).status();
      if (!made.ok()) return Status(Code::system, std::move(made).status().message() + "; " + chosen.instead);
      carrier_options.carrier = std::move(made).value();
    }
    contacts[peer] =
        Contact(std::make_shared<TcpConnection>(std::move(link.socket), link.opened_by_us, std::move(link.route),
                                                std::move(carrier_options), Seal{protection, link.session}));
  }
  return contacts;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const UniqueId& id, Rank rank, Rank ranks,
                                                           CommunicatorOptions options) {
  JoinOptions join;
  join.timeout_ms = options.init_timeout_ms;
  join.secret_file = config().secret_file;
  join.socket_ifname = config().socket_ifname;
  join.one_host_per_rank = options.over_network();
  const Protection protection = protection_of(config());
  join.protection = static_cast<std::uint32_t>(protection);
  NetworkChoice network_choice(options.traffic_class);
  if (options.transport.empty() && protection == Protection::none)
    join.remote_offer = [&network_choice] { return network_choice.offer(); };
  join.abort = options.abort;
  Result<Location> location = own_location(options.gpu);
  if (location.ok()) join.location = location.value();
  const std::unique_ptr<Bootstrap> bootstrap = TUTTI_TRY(Bootstrap::join(id, rank, ranks, join));
  if (rank == 0) warn_of_idle_tune_file();  // Not repeated for sub-communicators.
  const Watch watch{Deadline::after_ms(options.init_timeout_ms), options.abort};
  Result<Hosts> hosts = caught([&] { return gather_hosts(*bootstrap, watch); });
  Result<Secret> secret = communicator_key(id, join.secret_file);
  const auto choose_carriers = [&]() -> Result<Chosen> {
    if (!secret.ok()) return std::move(secret).status();
    if (!location.ok()) return std::move(location).status();
    if (!hosts.ok()) return std::move(hosts).status();
    TUTTI_CHECK_OK(check_reach(*bootstrap, options));
    return chosen_carriers(options, protection, *bootstrap, id, network_choice);
  };
  Result<Chosen> chosen = caught(choose_carriers);
  TUTTI_CHECK_OK(bootstrap->agree(chosen.ok() ? Status() : std::move(chosen).status(), watch));
  hosts.value().set_transport(carrier_name(options, chosen.value(), protection));
  hosts.value().set_own_address(bootstrap->listener_address());
  std::vector<PeerSocket> peer_sockets = bootstrap->take_peer_sockets();
  // Predictions for loopback come from earlier measurements.
  const bool loopback = join.one_host_per_rank && hosts.value().one_machine();
  // Links are measured for ranks on GPUs too, since their calls may get an error bound later.
  const bool probed = options.probes && !loopback && chosen.value().carriers == nullptr;
  hosts.value().set_network(TUTTI_TRY(probe_network(*bootstrap, hosts.value(), peer_sockets, probed, watch)));
  if (rank == 0 && hosts.value().network()) log(LogLevel::info, "%s", describe(*hosts.value().network()).c_str());
  Result<std::vector<Contact>> contacts =
      caught([&] { return contacts_of(*bootstrap, std::move(peer_sockets), chosen.value(), protection); });
  const bool connected = contacts.ok();
  if (Status all = bootstrap->agree(connected ? Status() : std::move(contacts).status(), watch); !all.ok()) {
    if (connected) Contact::close_all(std::move(contacts).value());
    return all;
  }
  hosts.value().set_id(number_of(id), secret.value());
  Mesh mesh(rank, std::move(contacts).value(), std::move(hosts).value());
  Result<Board> shared = caught([&] { return share_board(mesh, rank, ranks, watch); });
  const bool made = shared.ok();
  if (Status all = bootstrap->agree(made ? Status() : std::move(shared).status(), watch); !all.ok()) {
    mesh.abandon(all);
    return all;
  }
  Board board = std::move(shared).value();
  return std::make_unique<Communicator>(std::make_shared<ControlPlane>(rank, std::move(mesh), std::move(board),
                                                                       std::move(options), Spread::many_processes));
}

namespace {

// Counts a socket at each end of each pair of ranks, and for each rank the board and the memory of its lanes.
std::uint64_t descriptors_of(std::uint64_t ranks) { return ranks * (ranks - 1) + 2 * ranks; }

// Fails before thousands of descriptors are opened. A failure to open one would not state how many are needed.
Status check_descriptors(Rank ranks) {
  rlimit files = {};
  const std::uint64_t wanted = descriptors_of(ranks);
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || wanted <= files.rlim_cur) return {};
  return {Code::system, std::to_string(ranks) + " ranks in one process take " + std::to_string(wanted) +
                            " descriptors (their number squared), and the limit of this process is " +
                            std::to_string(files.rlim_cur) +
                            ": raise it with ulimit -n, or make the ranks processes, which take few each"};
}

}  // namespace

Result<std::vector<std::unique_ptr<Communicator>>> Communicator::create_all(Rank ranks,
                                                                            const CommunicatorOptions& options) {
  return create_all(options.over_network() ? Hosts::one_rank_per_host(ranks) : Hosts::one_host(ranks), options);
}

Result<std::vector<std::unique_ptr<Communicator>>> Communicator::create_all(const Hosts& given,
                                                                            const CommunicatorOptions& options,
                                                                            CarrierSource* carriers) {
  static std::atomic<std::uint64_t> made{0};  // Unique, since all ranks are in this process.
  Hosts hosts = given;
  Secret secret;
  TUTTI_CHECK_OK(fill_randomly(std::as_writable_bytes(std::span(secret))));
  hosts.set_id(++made, secret);
  const std::string network = network_of(options.transport);
  hosts.set_transport(network.empty() || network == "shm" ? "tcp" : network);
  const Rank ranks = hosts.ranks();
  TUTTI_CHECK_OK(check_descriptors(ranks));
  std::unique_ptr<CarrierSource> opened;
  if (carriers == nullptr) {
    opened = TUTTI_TRY(
        open_carriers(options.transport, {.communicator = hosts.id(), .traffic_class = options.traffic_class}));
    carriers = opened.get();
  }
  std::vector<Mesh> meshes = TUTTI_TRY(Mesh::within_process(hosts, carriers));
  std::vector<Board> boards(ranks);  // By first rank of the host.
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (Rank rank = 0; rank < ranks; ++rank) {
    Board& first = boards[hosts.first_rank_of_host(rank)];
    if (rank == hosts.first_rank_of_host(rank)) first = TUTTI_TRY(Board::create(ranks, meshes[rank].ranks_here()));
    File file = TUTTI_TRY(first.segment().duplicate());
    Board board = TUTTI_TRY(adopt_board(meshes[rank], std::move(file), ranks));
    communicators.push_back(std::make_unique<Communicator>(
        std::make_shared<ControlPlane>(rank, std::move(meshes[rank]), std::move(board), options, Spread::one_process)));
  }
  warn_of_idle_tune_file();
  return communicators;
}

}  // namespace tutti
