// The place where ranks meet, run by a thread of the process that made the unique id: it knows who has come, tells all
// when to go on, and if anything goes wrong before all have reached each other, tells all the same reason.
#pragma once

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
  };
  void serve(const std::vector<pollfd>& polled);
  void admit(Greeted greeted);
  void join(Greeted greeted);
  void notice_twin(const PeerRecord& emulator);
  Status refuse(const Claim& claim, const JoinRecord& record) const;
  void start();
  void receive(Rank rank, Member& member);
  void keep_time();
  void fail(const Status& status);
  void suffer(const Status& status);
  Deadline next_event() const;
  // "; rank 1 came, but ..."; empty if no such has come, or it has come again with the secret.
  std::string rank_without_secret() const;
  std::string missing() const;  // "ranks 3, 7 of 8"

  UniqueId id_;
  std::int64_t report_after_ms_;
  std::string advice_, two_jobs_;
  std::string twin_;  // "; rank 0 was started twice: ..."; empty: no second rank 0 has called.
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
  std::optional<std::pair<Code, std::string>> failure_;  // What late ranks are told.
};

}  // namespace tutti
