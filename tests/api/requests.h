// Messages with tags for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/ranks.h"

namespace tutti::test {

constexpr std::int64_t kHangMs = 20'000;  // Turns a hang into a failure.
constexpr std::size_t kLarge = 100'000;   // Elements of a message that is not eager.

inline tutti_request isend(const std::vector<std::int32_t>& values, int peer, std::uint64_t tag, tutti_comm comm) {
  tutti_request request = nullptr;
  TUTTI_EXPECT_OK(tutti_isend(values.data(), values.size(), tutti_int32, peer, tag, comm, &request));
  return request;
}

inline tutti_request irecv(std::vector<std::int32_t>& values, int peer, std::uint64_t tag, tutti_comm comm) {
  tutti_request request = nullptr;
  TUTTI_EXPECT_OK(tutti_irecv(values.data(), values.size(), tutti_int32, peer, tag, comm, &request));
  return request;
}

// Waits for the request and destroys it. Returns "ok", or the message of its error.
inline std::string outcome(tutti_request request, tutti_message* message = nullptr) {
  const tutti_status status = tutti_request_wait(request, kHangMs, message);
  const std::string text = status == tutti_ok ? "ok" : last_error();
  TUTTI_EXPECT_OK(tutti_request_destroy(request));
  return text;
}

// Exchanges a message in each direction between two ranks, which one thread drives.
inline void exchange(tutti_comm first, tutti_comm second, std::uint64_t tag, std::int32_t value) {
  int ranks[2];
  tutti_comm_rank(first, &ranks[0]);
  tutti_comm_rank(second, &ranks[1]);
  std::vector<std::int32_t> sent = {value}, received[2] = {{0}, {0}};
  const tutti_request requests[] = {irecv(received[0], ranks[1], tag, first), irecv(received[1], ranks[0], tag, second),
                                    isend(sent, ranks[1], tag, first), isend(sent, ranks[0], tag, second)};
  for (const tutti_request request : requests) EXPECT_EQ(outcome(request), "ok");
  EXPECT_EQ(received[0], sent);
  EXPECT_EQ(received[1], sent);
}

}  // namespace tutti::test
