// A reliable connection of an RDMA port, with a completion queue and a descriptor to wait on.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/owned.h"
#include "src/base/status.h"
#include "transports/verbs/device.h"
#include "transports/verbs/frame.h"

namespace tutti {

void release_channel(ibv_comp_channel* channel);
void release_completions(ibv_cq* completions);
void release_queue_pair(ibv_qp* queue_pair);

class QueuePair {
 public:
  struct Depth {
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
    std::uint32_t inline_bytes = 0;  // Requested; a device may support less.
    bool readable = false;           // The other end may read memory registered for read_back.
  };
  // The result can receive from then on.
  static Result<QueuePair> create(const VerbsPort& port, const VerbsOptions& options, const Depth& depth);
  QueuePair(QueuePair&&) = default;

  const VerbsPort& port() const { return port_; }
  QueuePairAddress address() const;
  // Enables sending. May take some time, because the system resolves the address in the network.
  Status connect(const QueuePairAddress& other);

  // Maximum size that the device copies when a send is posted.
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  Status post(ibv_send_wr& first);
  Status post(ibv_recv_wr& first);
  // Stores up to `max` completions, and returns their number.
  Result<int> poll(ibv_wc* completions, int max);

  int descriptor() const { return channel_.get()->fd; }
  // Makes the descriptor readable at the next completion. Earlier completions cause no event: poll once more.
  Status arm();

  // Returns, for example, "rxe0 port 1, gid 1 (::ffff:10.77.0.1) to ::ffff:10.77.0.2".
  std::string describe() const;
  // Returns the error for a failed completion.
  Status failure(const ibv_wc& completion) const;

 private:
  QueuePair() = default;
  Status refused(const std::string& action, int error) const;
  ibv_qp_attr path_to(const QueuePairAddress& other) const;

  VerbsPort port_;
  VerbsOptions options_;
  std::uint32_t inline_bytes_ = 0;
  std::uint32_t first_packet_ = 0;
  std::string other_;
  Owned<ibv_comp_channel*, release_channel> channel_;
  Owned<ibv_cq*, release_completions> completions_;
  Owned<ibv_qp*, release_queue_pair> queue_pair_;
};

}  // namespace tutti
