#include "src/bootstrap/bootstrap.h"

#include "src/base/log.h"
#include "src/bootstrap/joining.h"

namespace tutti {
namespace {

class JoinedBootstrap final : public Bootstrap {
 public:
  JoinedBootstrap(Rank rank, Joining& joining)
      : rank_(rank),
        tree_(joining.take_tree()),
        records_(joining.take_records()),
        sockets_(joining.take_sockets()),
        peer_sockets_(joining.take_peer_sockets()),
        remote_offers_(joining.take_remote_offers()),
        listener_address_(joining.listener_address()) {}

  Rank rank() const override { return rank_; }
  Rank ranks() const override { return static_cast<Rank>(records_.size()); }
  const PeerRecord& peer(Rank peer) const override { return records_[peer]; }
  const std::vector<RemoteOffer>& remote_offers() const override { return remote_offers_; }
  const Address& listener_address() const override { return listener_address_; }
  std::vector<Socket> take_sockets() override { return std::move(sockets_); }
  std::vector<PeerSocket> take_peer_sockets() override { return std::move(peer_sockets_); }

  Status all_gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch) override {
    return tree_.all_gather(records, bytes_per_rank, watch);
  }

  Status broadcast(Rank root, std::span<std::byte> bytes, const Watch& watch) override {
    return tree_.broadcast(root, bytes, watch);
  }

  Status agree(Status own, const Watch& watch) override {
    if (own.ok()) return barrier(watch);
    if (own.code() == Code::remote) {
      Status received = barrier(watch);
      return received.ok() ? std::move(own) : std::move(received);
    }
    Status reported = std::move(own).during("rank " + std::to_string(rank_) + " was joining");
    tree_.fail(reported);
    return reported;
  }

 private:
  Rank rank_;
  Tree tree_;
  std::vector<PeerRecord> records_;
  std::vector<Socket> sockets_;
  std::vector<PeerSocket> peer_sockets_;
  std::vector<RemoteOffer> remote_offers_;
  Address listener_address_;
};

}  // namespace

Result<std::unique_ptr<Bootstrap>> Bootstrap::join(const UniqueId& id, Rank rank, Rank ranks,
                                                   const JoinOptions& options) {
  TUTTI_CHECK_OK(check(id));
  if (ranks > kMaxRanks || rank >= ranks)
    return invalid_argument("rank " + std::to_string(rank) + " is out of range for " + std::to_string(ranks) +
                            " ranks");
  Joining joining(id, rank, ranks, options);
  TUTTI_CHECK_OK(joining.run());
  log(LogLevel::info, "rank %u of %u joined at %s", rank, ranks, describe(id.address).c_str());
  return std::unique_ptr<Bootstrap>(std::make_unique<JoinedBootstrap>(rank, joining));
}

}  // namespace tutti
