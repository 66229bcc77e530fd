// Joins one rank to the others, given a unique id: connects to the rendezvous, to the parent in the tree, and to the
// lower ranks on its host and on other hosts, and accepts connections of the other ranks, all in one loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/bootstrap/acceptor.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/channel.h"
#include "src/bootstrap/listener_record.h"
#include "src/bootstrap/tree.h"

namespace tutti {

class Joining {
 public:
  Joining(const UniqueId& id, Rank rank, Rank ranks, const JoinOptions& options);

  // Reports a failure to the other ranks.
  Status run();

  Tree take_tree() {
    tree_.watch_descriptor(-1, {});
    return std::move(tree_);
  }
  std::vector<PeerRecord> take_records() { return std::move(records_); }
  std::vector<Socket> take_sockets() { return std::move(sockets_); }
  std::vector<PeerSocket> take_peer_sockets() { return std::move(peer_sockets_); }
  const Address& listener_address() const { return listener_.address; }
  std::vector<RemoteOffer> take_remote_offers() { return std::move(remote_offers_); }

 private:
  Status take_steps();
  Status outcome(Status own, std::int64_t within_ms);
  Status explain_silence(Status late);
  std::string describe_rendezvous() const;
  Status join_rendezvous();  // Connects to the rendezvous and waits until all ranks have joined.
  Status explain_no_rendezvous(Status met) const;
  Result<Address> rendezvous_address() const;
  Status join_tree();
  Status connect_to_parent();
  Status join_mesh();
  Status join_peer_sockets();
  Status await_peer_sockets();
  Status connect_to_host(const Claim& claim, const PeerRecord& peer, const ListenerRecord& listener);
  Status accept_peer_socket(Rank other, AcceptedPeer accepted);
  bool on_same_host(Rank peer) const { return records_[peer].host == own_.peer.host; }
  Status finish();
  // Errors state the purpose. Empty: "connecting to rank N".
  Status connect_to_rank(const SocketAddress& endpoint, const Claim& claim, std::string purpose);
  std::string users(Rank peer) const;
  Status start_handshake(Socket socket, const Claim& claim, Connecting connecting);
  // Serves connections until `met` returns true. Fails if the rendezvous reports a failure.
  Status serve_until(const std::function<bool()>& met);
  Status serve();
  Status accept(AcceptedPeer accepted);
  Status poll_rendezvous();
  SocketAddress mesh_endpoint(Rank rank) const;

  UniqueId id_;
  Rank rank_;
  Rank ranks_;
  JoinOptions options_;
  Watch watch_;
  Credentials credentials_{};
  JoinRecord own_;
  Acceptor acceptor_;
  ControlChannel rendezvous_;
  std::optional<JoinRecord> parent_;  // Set once all ranks have joined.
  // Set once all ranks have joined: just before the rendezvous gives up, which knows fewer reasons.
  Deadline connect_deadline_;
  bool complete_ = false;  // All ranks have connected to each other.
  bool reported_ = false;  // The rendezvous has reported a failure, or has ended.
  bool answered_ = false;  // The rendezvous has answered a question.
  HostRecord host_;        // Process that runs the rendezvous, if it has been reported.
  std::string phase_;      // Current phase, for messages.
  Tree tree_;
  std::vector<PeerRecord> records_;
  std::vector<Socket> sockets_;
  ListenerRecord listener_;  // Address at which this rank accepts ranks of other hosts.
  std::vector<PeerSocket> peer_sockets_;
  std::vector<RemoteOffer> remote_offers_;
};

}  // namespace tutti
