// DeviceAutotuning with scripted durations and no device. Ranks of one communicator make the same calls at different
// times.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <memory>
#include <set>
#include <vector>

#include "src/communicator/autotuning/device_autotuning.h"
#include "src/communicator/planning/planning.h"

namespace tutti::test {

// Timer that completes once all ranks have made the timed call.
class ScriptedTimer final : public DeviceTimer {
 public:
  ScriptedTimer(const std::int64_t& takes_ns, const std::uint64_t& call, const std::uint64_t& done)
      : takes_ns_(takes_ns), call_(call), done_(done) {}
  Status begin(DeviceStream) override {
    timed_ = call_;
    return {};
  }
  Status end(DeviceStream) override {
    ns_ = takes_ns_;
    return {};
  }
  Result<std::optional<std::int64_t>> took_ns() override {
    return timed_ <= done_ ? std::optional(ns_) : std::optional<std::int64_t>();
  }

 private:
  const std::int64_t& takes_ns_;
  const std::uint64_t& call_;
  const std::uint64_t& done_;
  std::int64_t ns_ = 0;
  std::uint64_t timed_ = 0;
};

class ScriptedRanks {
 public:
  // takes_us[rank][candidate]: duration in us.
  ScriptedRanks(std::vector<std::vector<double>> takes_us, CommunicatorOptions options = {})
      : takes_us_(std::move(takes_us)), board_(Board::create(static_cast<Rank>(takes_us_.size())).value()) {
    for (Rank rank = 0; rank < takes_us_.size(); ++rank) {
      Own& own = ranks_.emplace_back();
      const auto make = [this, &own]() -> Result<std::unique_ptr<DeviceTimer>> {
        ++timers;
        return std::unique_ptr<DeviceTimer>(new ScriptedTimer(own.takes_ns, own.calls, done_));
      };
      own.autotuning =
          std::make_unique<DeviceAutotuning>(options, DeviceAutotuning::Environment{board_, rank, make, "nowhere"});
    }
  }

  struct Own {
    std::unique_ptr<DeviceAutotuning> autotuning;
    std::uint64_t calls = 0;
    std::int64_t takes_ns = 0;
    std::vector<std::size_t> candidates;  // [call]
    Call call;
  };
  Own& operator[](Rank rank) { return *std::next(ranks_.begin(), rank); }
  Rank size() const { return static_cast<Rank>(ranks_.size()); }
  const Board& board() const { return board_; }

  // Returns the rank's autotuning class of calls with this many bytes.
  DeviceAutotuning::Class& class_at(Rank rank, std::uint64_t bytes = 1000) {
    Problem problem;
    problem.ranks = size();
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < takes_us_.front().size(); ++i) {
      Candidate candidate;
      candidate.choice.algorithm = kNames[i];
      candidate.predicted_us = 10 + static_cast<double>(i);
      candidates.push_back(candidate);
    }
    return (*this)[rank].autotuning->class_of(query_of(problem, bytes), std::move(candidates));
  }

  // Emulates the enqueue of a call, with or without timing.
  void make(Rank rank, bool timed = true, std::uint64_t bytes = 1000) {
    Own& own = (*this)[rank];
    DeviceAutotuning::Class& tuned = class_at(rank, bytes);
    own.autotuning->assign(tuned, own.call);
    const DeviceAutotuning::Assignment turn = *own.autotuning->assignment_of(own.call);
    own.takes_ns = std::llround(takes_us_[rank][turn.candidate] * 1e3);
    ++own.calls;
    EXPECT_TRUE(!timed || own.autotuning->start_timing(own.call, nullptr).ok());
    own.autotuning->keep_classes();
    own.autotuning->note_made(own.call);
    EXPECT_TRUE(own.autotuning->end_timing(nullptr).ok());
    own.candidates.push_back(turn.candidate);
    done_ = ~std::uint64_t{0};
    for (const Own& each : ranks_) done_ = std::min(done_, each.calls);
  }

  // Expects that ranks chose the same candidate for each call.
  void expect_alike() {
    for (Rank rank = 1; rank < size(); ++rank) {
      const std::size_t both = std::min((*this)[rank].candidates.size(), (*this)[0].candidates.size());
      for (std::size_t i = 0; i < both; ++i)
        ASSERT_EQ((*this)[rank].candidates[i], (*this)[0].candidates[i]) << "rank " << rank << ", call " << i + 1;
    }
  }

  int timers = 0;

 private:
  static constexpr std::string_view kNames[] = {"ring", "direct", "tree"};
  const std::vector<std::vector<double>> takes_us_;
  const Board board_;
  std::list<Own> ranks_;
  std::uint64_t done_ = 0;  // Number of calls that all ranks have made.
};

}  // namespace tutti::test
