// Ranks that run out of memory in the API, before the communicator receives the call: no peer waits for the calls.
#include <functional>
#include <optional>

#include "tests/api/ranks.h"
#include "tests/communicator/refusal.h"

namespace tutti::test {
namespace {

// The calls of both ranks; returns the status of the waiting call.
using Calls = std::function<tutti_status(tutti_comm comm, tutti_stream stream, float* values)>;

tutti_status in_group(tutti_comm comm, tutti_stream stream, float* values) {
  tutti_group_start();
  for (int i = 0; i < 2; ++i) tutti_all_reduce(values, values, 1, tutti_float32, tutti_sum, comm, nullptr);
  if (stream != nullptr) tutti_all_reduce(values, values, 1, tutti_float32, tutti_sum, comm, stream);
  return tutti_group_end();
}

tutti_status unequal(tutti_comm comm, tutti_stream stream, float* values) {
  const std::size_t counts[2] = {1, 1}, offsets[2] = {0, 1};
  const tutti_status status =
      tutti_all_to_all_v(values, counts, offsets, values + 2, counts, offsets, tutti_float32, comm, stream);
  return stream == nullptr || status != tutti_ok ? status : tutti_stream_synchronize(stream);
}

// Returns whether an allocation of rank 1 failed. In that case, both ranks must fail at once.
bool lacks_memory(std::uint64_t which, const Calls& calls, bool streamed) {
  const Ranks ranks(2);
  bool came = false;
  ranks.run([&](int rank, tutti_comm comm) {
    float values[4] = {1, 1, 1, 1};
    tutti_stream stream = nullptr;
    TUTTI_EXPECT_OK(streamed ? tutti_stream_create(&stream) : tutti_ok);
    if (rank == 0) {
      EXPECT_NE(calls(comm, stream, values), tutti_timeout) << which << ": " << last_error();
    } else {
      std::optional<Refusal> refusal(which);
      const tutti_status status = calls(comm, stream, values);
      came = refusal->came();
      refusal.reset();
      EXPECT_EQ(status, came ? tutti_system_error : tutti_ok) << which << ": " << last_error();
    }
    (void)tutti_stream_destroy(stream);  // Reports the failure of the stream's calls again.
  });
  for (const int rank : {0, 1}) {
    tutti_status error = tutti_ok;
    TUTTI_EXPECT_OK(tutti_comm_async_error(ranks[rank], &error));
    EXPECT_EQ(error != tutti_ok, came) << which << ": " << tutti_last_error(ranks[rank]);
  }
  return came;
}

TEST(OutOfMemory, IsReportedToAllRanks) {
  for (const Calls& calls : {Calls(in_group), Calls(unequal)}) {
    for (const bool streamed : {false, true}) {
      std::uint64_t which = 1;
      while (lacks_memory(which, calls, streamed)) ++which;
      EXPECT_GT(which, 10U);
    }
  }
}

}  // namespace
}  // namespace tutti::test
