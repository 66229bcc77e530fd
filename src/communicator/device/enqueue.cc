#include "src/communicator/device/enqueue.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/caught.h"
#include "src/communicator/device/turns.h"
#include "src/communicator/forced.h"

namespace tutti {
namespace {

bool is_message(const Call& call) { return call.kind == Kind::send || call.kind == Kind::recv; }

// When a call runs. Calls of one wave run side by side, and ranks that talk to each other are in the same: collectives
// by their position; then messages by which it is between its two ranks, and by how far ahead its receiver is. So a
// rank has a send and a recv in each wave, for which it needs two thread blocks. Where its share of the device is one,
// messages run one at a time, in an order that all ranks have: by their receivers as well. Both ends of the first that
// is not done have nothing before it.
using Wave = std::tuple<bool, std::uint32_t, Rank, Rank>;

class Waves {
 public:
  explicit Waves(std::span<const DeviceCall> calls) {
    for (const DeviceCall& call : calls) waves_[wave_of(call)].push_back(&call);
  }
  const std::map<Wave, std::vector<const DeviceCall*>>& all() const { return waves_; }

 private:
  Wave wave_of(const DeviceCall& entry) {
    const DeviceCommunicator& communicator = *entry.communicator;
    if (!is_message(entry.call)) return {false, collectives_[&communicator]++, 0, 0};
    const Rank self = communicator.rank();
    const bool sends = entry.call.kind == Kind::send;
    const Rank ahead =
        sends ? entry.call.root + communicator.ranks() - self : self + communicator.ranks() - entry.call.root;
    const bool one_at_a_time = communicator.peers().thread_blocks() == 1;
    const Rank receiver = sends ? entry.call.root : self;
    return {true, messages_[{&communicator, entry.call.root, sends}]++, ahead % communicator.ranks(),
            one_at_a_time ? receiver : 0};
  }

  std::map<const DeviceCommunicator*, std::uint32_t> collectives_;
  std::map<std::tuple<const DeviceCommunicator*, Rank, bool>, std::uint32_t> messages_;
  std::map<Wave, std::vector<const DeviceCall*>> waves_;
};

// Calls of one device that run side by side, at most kMaxCalls.
class Departure {
 public:
  explicit Departure(std::vector<const DeviceCall*> calls) : calls_(std::move(calls)) {}

  // Before anything is done.
  Status check() const {
    const std::uint64_t capture = TUTTI_TRY(device().capture_of(stream()));
    for (const auto& [communicator, caller] : callers()) {
      const std::uint64_t other = TUTTI_TRY(device().capture_of(caller));
      if (other != capture)
        return invalid_usage("the streams of a group are captured into different graphs, or not all of them are");
    }
    return {};
  }

  Status go() {
    TUTTI_CHECK_OK(begin());
    const bool timed = of_one_communicator();
    for (const DeviceCall* call : calls_)
      if (timed) TUTTI_CHECK_OK(call->communicator->start_timing(call->call, stream()));
    for (const DeviceCall* call : calls_) {
      DeviceCommunicator& communicator = *call->communicator;
      const DeviceJob job = TUTTI_TRY(is_message(call->call) ? communicator.message(call->call, call->options)
                                                             : communicator.collective(call->call, call->options));
      if (job.copy_to != nullptr) TUTTI_CHECK_OK(device().copy(job.copy_to, job.copy_from, job.copy_bytes, stream()));
      if (job.correct.compression != CompressionFormat::none) TUTTI_CHECK_OK(device().correct(job.correct, stream()));
      if (!job.launches) continue;
      if (communicator.in_turns()) {
        in_turns_[&communicator].push_back(job);
        continue;
      }
      Family& family = families_[communicator.peers().family()];
      family.jobs.push_back(job);
      family.ranks.insert(&communicator);
      family.share = communicator.peers().thread_blocks();
    }
    TUTTI_CHECK_OK(launch_all());
    for (const DeviceCall* call : calls_)
      if (timed) TUTTI_CHECK_OK(call->communicator->end_timing(stream()));
    return end();
  }

 private:
  // The ranks of one communicator that this thread drives.
  struct Family {
    std::vector<DeviceJob> jobs;
    std::set<const DeviceCommunicator*> ranks;
    std::uint32_t share = 0;  // ThreadBlocks of each of them.
  };

  Device& device() const { return calls_.front()->communicator->device(); }
  DeviceStream stream() const { return calls_.front()->stream; }

  // Then what its ranks do here takes as long as they take.
  bool of_one_communicator() const {
    const std::uint64_t family = calls_.front()->communicator->peers().family();
    return std::all_of(calls_.begin(), calls_.end(), [&](const DeviceCall* call) {
      return !is_message(call->call) && call->communicator->peers().family() == family;
    });
  }

  // Each communicator with each of the streams that its calls came in.
  std::set<std::pair<DeviceCommunicator*, DeviceStream>> callers() const {
    std::set<std::pair<DeviceCommunicator*, DeviceStream>> all;
    for (const DeviceCall* call : calls_) all.emplace(call->communicator, call->stream);
    return all;
  }

  Status begin() {
    std::set<const DeviceEvent*> held;
    for (const auto& [communicator, caller] : callers()) {
      TUTTI_CHECK_OK(communicator->begin(caller, stream()));
      const DeviceEvent* latest = communicator->latest();
      if (latest != nullptr && held.insert(latest).second) TUTTI_CHECK_OK(communicator->hold_for_latest(stream()));
    }
    return {};
  }

  // Time-sliced calls wait for each other: all are requested before one holds the stream.
  Status launch_all() {
    for (const auto& [communicator, jobs] : in_turns_) TUTTI_CHECK_OK(communicator->ask(launch_of(jobs), stream()));
    TUTTI_CHECK_OK(launch());
    for (const auto& [communicator, jobs] : in_turns_) TUTTI_CHECK_OK(communicator->await_turns(stream()));
    return {};
  }

  // All at once, if the share that each rank has of the device suffices for its calls to all of its communicators, and
  // one kernel does them; else each communicator by itself, in an order that other threads share: that always has room.
  Status launch() {
    std::vector<DeviceJob> all;
    std::uint32_t widest = 0;
    for (const auto& [number, family] : families_) {
      all.insert(all.end(), family.jobs.begin(), family.jobs.end());
      for (const DeviceJob& job : family.jobs) widest = std::max(widest, job.entry.channels);
    }
    std::size_t of_a_rank = 0;
    std::uint32_t share = ~0U;
    for (const auto& [number, family] : families_) {
      of_a_rank += (family.jobs.size() + family.ranks.size() - 1) / family.ranks.size();
      share = std::min(share, family.share);
    }
    if (families_.size() == 1 || (of_a_rank * widest <= share && alike(all))) return launch(all);
    for (const auto& [number, family] : families_) TUTTI_CHECK_OK(launch(family.jobs));
    return {};
  }

  // Whether messages of all or of none are narrow: one kernel does them.
  static bool alike(const std::vector<DeviceJob>& jobs) {
    const auto compressed = [](const DeviceJob& job) {
      return job.entry.call.task.compression != CompressionFormat::none;
    };
    return std::all_of(jobs.begin(), jobs.end(), compressed) || std::none_of(jobs.begin(), jobs.end(), compressed);
  }

  Status launch(const std::vector<DeviceJob>& jobs) const {
    if (jobs.empty()) return {};
    if (!alike(jobs))
      return invalid_usage(
          std::string(
              "some ranks make a call whose messages are in a compression format, and others one whose are not: ranks "
              "of a communicator make the same calls, in the same format or under the same bound on the error (") +
          kCompressionIsSetBy + ")");
    const DeviceLaunch all = launch_of(jobs);
    return device().launch(all.batch, all.count, all.thread_block_bytes, stream());
  }

  static DeviceLaunch launch_of(const std::vector<DeviceJob>& jobs) {
    DeviceLaunch all;
    for (const DeviceJob& job : jobs) {
      all.batch.calls[all.count++] = job.entry;
      all.thread_block_bytes = std::max(all.thread_block_bytes, job.thread_block_bytes);
    }
    return all;
  }

  Status end() {
    std::set<DeviceCommunicator*> members;
    for (const auto& [communicator, caller] : callers()) members.insert(communicator);
    TUTTI_CHECK_OK(DeviceCommunicator::end_together(members, stream()));
    for (const auto& [communicator, caller] : callers()) TUTTI_CHECK_OK(communicator->end(caller, stream()));
    return {};
  }

  std::vector<const DeviceCall*> calls_;
  std::map<std::uint64_t, Family> families_;
  std::map<DeviceCommunicator*, std::vector<DeviceJob>> in_turns_;
};

// Calls of one wave, or of several waves of messages, that fit one launch; by device.
class Schedule {
 public:
  explicit Schedule(const Waves& waves) {
    for (const auto& [wave, calls] : waves.all()) {
      std::map<Device*, std::vector<const DeviceCall*>> by_device;
      for (const DeviceCall* call : calls) by_device[&call->communicator->device()].push_back(call);
      for (auto& [device, own] : by_device) add({device, std::get<0>(wave), std::get<1>(wave), std::move(own)});
    }
  }

  // Calls of a wave wait for each other: they need one launch, or several streams.
  Status check() const {
    for (const Group& group : groups_) {
      if (group.calls.size() <= kMaxCalls) continue;
      return unsupported("one thread has " + std::to_string(group.calls.size()) +
                         " calls that must run side by side on one device, more than " + std::to_string(kMaxCalls) +
                         ": drive fewer ranks by a thread");
    }
    return {};
  }

  struct Group {
    Device* device;
    bool messages;
    std::uint32_t nth;  // Number among its communicator's collectives, or among the messages between its two ranks.
    std::vector<const DeviceCall*> calls;
  };
  const std::vector<Group>& groups() const { return groups_; }

 private:
  // Messages of several waves may go together while their communicators' shares of the device suffice.
  static bool fit_one_launch(const std::vector<const DeviceCall*>& some, const std::vector<const DeviceCall*>& more) {
    std::map<const DeviceCommunicator*, std::uint32_t> shares;
    std::uint32_t widest = 0;
    for (const auto* calls : {&some, &more}) {
      for (const DeviceCall* call : *calls) {
        shares[call->communicator] = call->communicator->peers().thread_blocks();
        widest = std::max(widest, call->communicator->message_channels(call->call));
      }
    }
    std::uint32_t limits = 0;
    for (const auto& [communicator, share] : shares) limits += share;
    const std::size_t count = some.size() + more.size();
    return count <= kMaxCalls && count * widest <= limits;
  }

  // Messages between the same two ranks share a lane, and go one after the other.
  void add(Group group) {
    std::size_t& latest = latest_[group.device];
    Group* last = latest == 0 ? nullptr : &groups_[latest - 1];
    const bool joins = last != nullptr && group.messages && last->messages && last->nth == group.nth;
    if (joins && fit_one_launch(last->calls, group.calls)) {
      last->calls.insert(last->calls.end(), group.calls.begin(), group.calls.end());
      return;
    }
    groups_.push_back(std::move(group));
    latest = groups_.size();
  }

  std::map<Device*, std::size_t> latest_;  // Number of its last group.
  std::vector<Group> groups_;
};

enum class Refused { question, failure };

// No call of the group runs. The refused call may be made again if its communicator has no other call here. The
// other ranks of that communicator, none of which has published its call, may do so too. Peers of other
// communicators wait for calls that do not come, so these communicators fail.
void refuse(std::span<const DeviceCall> calls, const DeviceCall& refused, const Status& reason, Refused which) {
  for (const DeviceCall& call : calls) call.communicator->forget_ready();
  const std::uint64_t family = refused.communicator->peers().family();
  std::map<const DeviceCommunicator*, std::uint32_t> own;
  for (const DeviceCall& call : calls) ++own[call.communicator];
  for (const DeviceCall& call : calls) {
    const bool same = call.communicator->peers().family() == family;
    if (same && own[call.communicator] == 1 && which == Refused::question) continue;
    (void)call.communicator->call_off(reason);
  }
}

// All that can be found wrong, and all memory that is taken, comes before any launch, whose thread blocks may wait for
// others.
Status get_ready(std::span<const DeviceCall> calls) {
  std::map<const DeviceCommunicator*, std::size_t> roundings;
  for (const DeviceCall& call : calls) {
    Status status = call.communicator->has_failed() ? call.communicator->failure() : Status();
    if (status.ok()) status = call.communicator->get_ready(call.call, call.options, roundings[call.communicator]);
    if (status.ok()) continue;
    refuse(calls, call, status, is_question(status) ? Refused::question : Refused::failure);
    return status;
  }
  return {};
}

Status start(std::span<const DeviceCall> calls) {
  const Schedule schedule{Waves(calls)};
  Status possible = schedule.check();
  for (const Schedule::Group& group : schedule.groups()) {
    if (possible.ok()) possible = Departure(group.calls).check();
  }
  if (!possible.ok()) {
    refuse(calls, calls.front(), possible, Refused::question);  // Whatever its code: of streams and of numbers.
    return possible;
  }
  TUTTI_CHECK_OK(get_ready(calls));
  for (const Schedule::Group& group : schedule.groups()) {
    Status status = Departure(group.calls).go();
    if (status.ok()) continue;
    for (const DeviceCall& call : calls) (void)call.communicator->call_off(status);
    return status;
  }
  return {};
}

}  // namespace

Status enqueue(std::span<const DeviceCall> calls) {
  Status ended;
  Status thrown = caught([&]() -> Status {
    ended = start(calls);
    return {};
  });
  if (thrown.ok()) return ended;
  for (const DeviceCall& call : calls) (void)call.communicator->call_off(thrown);
  return thrown;
}

}  // namespace tutti
