#include "src/nccl/exchange.h"

#include <cstdio>
#include <string>

namespace tutti::nccl {
namespace {

constexpr std::uint64_t kTag = 1;  // Clients of NCCL send no messages with tags.

// A started message. Cancels it if it is destroyed early.
class Pending {
 public:
  Pending() = default;
  ~Pending() { tutti_request_destroy(request_); }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  tutti_request* out() { return &request_; }
  tutti_request get() const { return request_; }

 private:
  tutti_request request_ = nullptr;
};

// Result of a step on one rank; an empty text is success.
struct Vote {
  ncclResult_t code;
  char why[500];
};

Vote vote_of(const Outcome& outcome) {
  Vote vote = {outcome.code, ""};
  std::snprintf(vote.why, sizeof vote.why, "%s", outcome.why.c_str());
  return vote;
}

}  // namespace

Outcome Exchange::wait(tutti_request request, int peer) const {
  const tutti_status status = tutti_request_wait(request, limit_ms_, nullptr);
  if (status != tutti_in_progress) return outcome_of(status);
  tutti_comm_abort(comm_);
  return {ncclRemoteError, "rank " + std::to_string(peer) + " has not taken part for " + std::to_string(limit_ms_) +
                               " ms; call the function on all ranks, with the same settings"};
}

Outcome Exchange::transfer(Direction direction, void* values, std::size_t bytes, std::size_t distance) const {
  const int first = rank_ == 0 ? 1 : 0, end = rank_ == 0 ? ranks_ : 1;
  std::vector<Pending> messages(static_cast<std::size_t>(end));
  for (int peer = first; peer < end; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    void* value = static_cast<char*>(values) + index * distance;
    tutti_request* message = messages[index].out();
    TUTTI_NCCL_CHECK(outcome_of(direction == Direction::send
                                    ? tutti_isend(value, bytes, tutti_uint8, peer, kTag, comm_, message)
                                    : tutti_irecv(value, bytes, tutti_uint8, peer, kTag, comm_, message)));
  }
  for (int peer = first; peer < end; ++peer)
    TUTTI_NCCL_CHECK(wait(messages[static_cast<std::size_t>(peer)].get(), peer));
  return {};
}

Outcome Exchange::agree(const Outcome& own) const {
  struct Failure {
    int rank;
    Vote vote;
  } first_failure = {};
  std::vector<Vote> votes;
  TUTTI_NCCL_CHECK(gather(vote_of(own), votes));
  for (std::size_t rank = votes.size(); rank-- > 0;)
    if (votes[rank].code != ncclSuccess) first_failure = {static_cast<int>(rank), votes[rank]};
  TUTTI_NCCL_CHECK(broadcast(first_failure));
  if (own.code != ncclSuccess || first_failure.vote.code == ncclSuccess) return own;
  return {first_failure.vote.code, "rank " + std::to_string(first_failure.rank) + ": " + first_failure.vote.why};
}

}  // namespace tutti::nccl
