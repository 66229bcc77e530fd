// The rendezvous of ranks, run by a thread of the process that made the unique id. It knows which ranks have joined,
// tells all of them when to go on, and if anything goes wrong before all have reached each other, sends all the same
// reason.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/channel.h"
#include "src/bootstrap/greeter.h"

namespace tutti {

class Rendezvous {
 public:
  Rendezvous(const UniqueId& id, std::int64_t report_after_ms);

  // Callers of these may join, or be given the id.
  void listen(Socket listener, Role role, const Credentials& credentials);
  // Added to the report of ranks that are missing, and to the refusal of those that are too many.
  void advise(std::string missing, std::string two_jobs) {
    advice_ = std::move(missing);
    two_jobs_ = std::move(two_jobs);
  }
  // Returns when all ranks have reached each other, when their deadline has passed, or when `stop` can be read.
  void run(int stop);

 private:
  struct Member {
    ControlChannel channel;
    JoinRecord record;
    bool reached = false;
    bool answered = false;  // The roll call.
  };
  void serve(const std::vector<pollfd>& polled);
  void admit(Greeted greeted);
  void join(Greeted greeted);
  void notice_twin(const PeerRecord& duplicate);
  Status refuse(const Claim& claim, const JoinRecord& record) const;
  void tell_host(Rank newcomer);
  void start();
  void call_roll();
  void receive(Rank rank, Member& member);
  void keep_time();
  void fail(const Status& status);
  void suffer(const Status& status);
  Deadline next_event() const;
  // "; rank 1 came, but ..."; empty if no such has come, or it has come again with the secret.
  std::string rank_without_secret() const;
  Status late() const;
  // "ranks 3, 7 of 8": those for which `listed` is true. Null: the rank has not joined.
  std::string list(const std::function<bool(const Member*)>& listed) const;
  std::string missing() const;

  UniqueId id_;
  std::int64_t report_after_ms_;
  std::string advice_, two_jobs_;
  std::string duplicate_;  // "; rank 0 was started twice: ..."; empty: no second rank 0 has called.
  Greeter greeter_{kRendezvous};
  std::map<Rank, Member> members_;
  std::vector<Rank> watched_;  // Members in the order in which they are polled.
  Rank ranks_ = 0;             // As the first to come said.
  std::size_t reached_ = 0;
  bool started_ = false;  // All have come.
  bool finished_ = false;
  bool warned_ = false;                                // Of a failure that there was nobody to tell.
  Deadline deadline_ = Deadline::after_ms(3'600'000);  // For the first to come; then as that rank said.
  std::int64_t timeout_ms_ = 0;
  Deadline report_;
  Deadline roll_call_;  // Shortly before the deadline: ranks that do not answer are stopped or out of reach.
  HostRecord host_;
  std::optional<std::pair<Code, std::string>> failure_;  // What late ranks are told.
};

}  // namespace tutti
