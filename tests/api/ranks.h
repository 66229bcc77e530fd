// Ranks as threads of this process, each with a communicator.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::test {

inline std::string last_error() { return tutti_last_error(nullptr); }

// Expects that a call succeeds. On failure, prints the library's error message.
#define TUTTI_EXPECT_OK(call) EXPECT_EQ(call, tutti_ok) << last_error()

class Ranks {
 public:
  explicit Ranks(int ranks) : comms_(static_cast<std::size_t>(ranks)) {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.timeout_ms = 20'000;
    TUTTI_EXPECT_OK(tutti_comm_create_all(ranks, &options, comms_.data()));
  }
  ~Ranks() {
    run([](int, tutti_comm comm) { tutti_comm_destroy(comm); });
  }

  int count() const { return static_cast<int>(comms_.size()); }
  tutti_comm operator[](int rank) const { return comms_[static_cast<std::size_t>(rank)]; }

  void run(const std::function<void(int, tutti_comm)>& body) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count(); ++rank) threads.emplace_back([&, rank] { body(rank, (*this)[rank]); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<tutti_comm> comms_;
};

// Test data: element i of a rank. Differs between test runs.
class Values {
 public:
  Values() : seed_(std::random_device()()) { ::testing::Test::RecordProperty("seed", std::to_string(seed_)); }
  std::int32_t operator()(int rank, std::size_t i) const {
    return static_cast<std::int32_t>((i * 7919 + static_cast<std::size_t>(rank) * 104729 + seed_) % 65521);
  }
  std::vector<std::int32_t> of(int rank, std::size_t count) const {
    std::vector<std::int32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = (*this)(rank, i);
    return values;
  }
  std::uint32_t seed() const { return seed_; }

 private:
  std::uint32_t seed_;
};

}  // namespace tutti::test
