// Calls on mapped memory, between ranks that connect as if they were in different processes.
#include <gtest/gtest.h>

#include <cstring>

#include "src/communicator/communicator.h"
#include "src/communicator/control/regions.h"
#include "src/communicator/membership/control_plane.h"
#include "tests/communicator/joined_ranks.h"

namespace tutti::test {
namespace {

// Returns an in-place broadcast from rank 0.
Call broadcast(std::byte* memory, std::uint64_t bytes) {
  Call call;
  call.collective = Collective::broadcast;
  call.type = DataType::int8;
  call.count = bytes;
  call.input = call.output = memory;
  return call;
}

// Advances an operation without waiting. Returns whether it has completed or failed.
bool done(Operation& operation) {
  auto progress = operation.advance();
  const bool failed = !progress.ok();
  EXPECT_FALSE(failed) << std::move(progress).status().message();
  return failed || progress.value();
}

// The root sees that rank 2 has no mappable buffer, sends through lanes, completes and frees its buffer. Rank 1 reads
// the published buffers afterwards, and must not access the freed one.
TEST(MappedMemory, MayBeFreedByRoot_WhenLaterRankHasPrivateBuffer) {
  constexpr std::size_t kBytes = 64 << 10;
  Communicators ranks = meet(3);
  std::vector<std::byte> hidden(kBytes);
  std::byte* shown[2];
  for (std::byte*& memory : shown) memory = Regions::of_process().allocate(kBytes).value();
  const auto start = [&](Rank rank) {
    return ranks[rank]->start(broadcast(rank < 2 ? shown[rank] : hidden.data(), kBytes)).value();
  };
  for (const Status& status : on_all(ranks, [&](Communicator& communicator) {  // Connects the lanes.
         std::vector<std::byte> buffer(kBytes);
         return communicator.run(broadcast(buffer.data(), kBytes));
       })) {
    ASSERT_TRUE(status.ok()) << status.message();
  }

  std::memset(shown[0], 7, kBytes);
  const auto second = start(1);
  EXPECT_FALSE(done(*second));
  const auto third = start(2);
  const auto root = start(0);
  ASSERT_TRUE(done(*root));
  TUTTI_ASSERT(Regions::of_process().free(shown[0]).ok());
  shown[0] = hidden.data();
  const auto next = start(0);  // Notifies peers that the memory was freed.
  while (!done(*second)) continue;
  while (!done(*third)) continue;
  EXPECT_EQ(shown[1][kBytes - 1], std::byte{7});
  EXPECT_EQ(hidden[kBytes - 1], std::byte{7});
  TUTTI_ASSERT(Regions::of_process().free(shown[1]).ok());
}

// One rank passes private memory to a mapped algorithm. All ranks detect this from the published buffers and must fail
// without waiting.
TEST(MappedMemory, FailsOnAllRanks_WhenForcedButOneBufferIsPrivate) {
  constexpr std::size_t kBytes = 64 << 10;
  Communicators ranks = meet(3);
  std::byte* shown = Regions::of_process().allocate(3 * kBytes).value();
  for (const Rank hiding : {0U, 2U}) {
    const auto statuses = on_all(ranks, [&](Communicator& communicator) {
      const Rank rank = communicator.rank();
      std::vector<std::byte> hidden(kBytes);
      CommunicatorOptions options = communicator.options();
      options.algorithm = "direct_mapped";
      options.update_agreement_hash();
      return communicator.run(broadcast(rank == hiding ? hidden.data() : shown + rank * kBytes, kBytes), &options);
    });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_NE(status.message().find("tutti_mem_alloc"), std::string::npos) << status.message();
    }
    for (const Status& status : on_all(ranks, [](Communicator& communicator) {
           std::vector<std::byte> buffer(kBytes);
           return communicator.run(broadcast(buffer.data(), kBytes));
         })) {
      EXPECT_TRUE(status.ok()) << status.message();  // The communicator must stay usable.
    }
  }
  TUTTI_ASSERT(Regions::of_process().free(shown).ok());
}

// The test acts as rank 1, the root of a broadcast, and publishes that it has no buffer. Rank 0 must fail instead of
// accessing an invalid address.
TEST(MappedMemory, RejectsPeerWithoutBuffer_WhenOneIsRequired) {
  constexpr std::size_t kBytes = 64 << 10;
  std::vector<Mesh> meshes = Mesh::within_process(Hosts::one_host(2)).value();
  const Board board = Board::create(2).value();
  Communicator rank(std::make_shared<ControlPlane>(0, std::move(meshes[0]),
                                                   Board::adopt(board.segment().duplicate().value(), 2).value(),
                                                   CommunicatorOptions(), Spread::many_processes));
  std::byte* shown = Regions::of_process().allocate(kBytes).value();
  Call call = broadcast(shown, kBytes);
  call.root = 1;
  const auto started = rank.start(call).value();
  EXPECT_FALSE(done(*started));
  CallRecord forged = *board.call(0, 1);
  forged.input = forged.output = {kNoBuffer, 0};
  board.announce(1, forged);
  EXPECT_EQ(started->advance().status().code(), Code::internal);
  TUTTI_ASSERT(Regions::of_process().free(shown).ok());
}

}  // namespace
}  // namespace tutti::test
