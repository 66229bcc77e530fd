// Messages with tags of communicators on a device.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/api/ranks.h"
#include "tutti/tutti.h"

namespace tutti::test {
namespace {

constexpr std::size_t kBytes = 1000;

class DeviceRequests : public testing::Test {
 protected:
  void SetUp() override {
    tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
    options.memory = "cuda";
    TUTTI_EXPECT_OK(tutti_comm_create_all(2, &options, comms_));
    TUTTI_EXPECT_OK(tutti_mem_alloc_cuda(&memory_, kBytes));
  }
  void TearDown() override {
    TUTTI_EXPECT_OK(tutti_mem_free(memory_));
    for (const tutti_comm comm : comms_) TUTTI_EXPECT_OK(tutti_comm_leave(comm));
  }

  tutti_comm comms_[2] = {};
  void* memory_ = nullptr;
};

TEST_F(DeviceRequests, MoveHostMemory) {
  const std::vector<std::uint8_t> sent = {3, 4};
  std::vector<std::uint8_t> received(2);
  tutti_request requests[2] = {};
  TUTTI_EXPECT_OK(tutti_isend(sent.data(), 2, tutti_uint8, 1, 7, comms_[0], &requests[0]));
  TUTTI_EXPECT_OK(tutti_irecv(received.data(), 2, tutti_uint8, 0, 7, comms_[1], &requests[1]));
  for (const tutti_request request : requests) {
    TUTTI_EXPECT_OK(tutti_request_wait(request, -1, nullptr));
    TUTTI_EXPECT_OK(tutti_request_destroy(request));
  }
  EXPECT_EQ(received, sent);
}

TEST_F(DeviceRequests, RefuseDeviceMemory) {
  tutti_request request = nullptr;
  EXPECT_EQ(tutti_isend(memory_, kBytes, tutti_uint8, 1, 7, comms_[0], &request), tutti_unsupported);
  EXPECT_STREQ(
      tutti_last_error(nullptr),
      "tutti_isend: send is in device memory; messages with tags need host memory: copy it, or call tutti_send");
  auto* last = static_cast<std::uint8_t*>(memory_) + kBytes - 1;
  EXPECT_EQ(tutti_irecv(last, 1, tutti_uint8, 0, 7, comms_[1], &request), tutti_unsupported);
  TUTTI_EXPECT_OK(tutti_isend(memory_, 0, tutti_uint8, 1, 7, comms_[0], &request));  // No data.
  TUTTI_EXPECT_OK(tutti_request_destroy(request));
}

}  // namespace
}  // namespace tutti::test
