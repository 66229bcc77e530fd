// Rendezvous of ranks, run by a thread of the process that created the unique id. It tracks which ranks have joined and
// starts them together. On any failure before all ranks are connected, it sends all of them the same reason.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/bootstrap/acceptor.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/channel.h"

namespace tutti {

class Rendezvous {
 public:
  Rendezvous(const UniqueId& id, std::int64_t report_after_ms);

  // Accepts callers that join, or that request the id.
  void listen(Socket listener, Role role, const Credentials& credentials);
  // Sets advice for the report of missing ranks, and for the refusal of duplicate ranks.
  void advise(std::string missing, std::string two_jobs) {
    advice_ = std::move(missing);
    two_jobs_ = std::move(two_jobs);
  }
  // Returns when all ranks have connected to each other, at their deadline, or when `stop` is readable.
  void run(int stop);

 private:
  struct Member {
    ControlChannel channel;
    JoinRecord record;
    bool reached = false;
    bool answered = false;  // Answered the liveness check.
  };
  void serve(const std::vector<pollfd>& polled);
  void admit(AcceptedPeer accepted);
  void join(AcceptedPeer accepted);
  void notice_duplicate(const PeerRecord& duplicate);
  Status refuse(const Claim& claim, const JoinRecord& record) const;
  void send_host(Rank newcomer);
  bool in_this_process(const JoinRecord& record) const;
  void send_to_members(const std::function<void(ControlChannel&)>& send);
  void start();
  void check_liveness();
  void receive(Rank rank, Member& member);
  void check_deadlines();
  void fail(const Status& status);
  void handle_error(const Status& status);
  Deadline next_event() const;
  // "; rank 1 came, but ..."; empty if there is no such rank, or it has since proved the secret.
  std::string rank_without_secret() const;
  Status late() const;
  // Lists the ranks for which `listed` returns true: "ranks 3, 7 of 8". Null: the rank has not joined.
  std::string list(const std::function<bool(const Member*)>& listed) const;
  std::string missing() const;

  UniqueId id_;
  std::int64_t report_after_ms_;
  std::string advice_, two_jobs_;
  std::string duplicate_;  // "; rank 0 was started twice: ..."; empty: no second rank 0 has called.
  Acceptor acceptor_{kRendezvous};
  std::map<Rank, Member> members_;
  std::vector<Rank> watched_;  // Members in the order in which they are polled.
  Rank ranks_ = 0;             // Value that the first rank to join reported.
  std::size_t reached_ = 0;
  bool started_ = false;  // All ranks have joined.
  bool finished_ = false;
  bool warned_ = false;                                // A failure without members to notify was logged.
  Deadline deadline_ = Deadline::after_ms(3'600'000);  // For the first rank to join; afterwards the limit of that rank.
  std::int64_t timeout_ms_ = 0;
  Deadline report_;
  // Time of the liveness check, before the deadline. Ranks that do not answer are stopped or unreachable.
  Deadline liveness_check_;
  HostRecord host_;
  std::optional<std::pair<Code, std::string>> failure_;  // Reason sent to late ranks.
};

}  // namespace tutti
