// Communicator::split() among threads of one process.
#include <gtest/gtest.h>

#include <set>

#include "src/communicator/group.h"
#include "tests/communicator/calls.h"
#include "tests/communicator/ranks.h"

namespace tutti::test {
namespace {

TEST(Split, OrdersByKey_AndExcludesRanksWithoutColor) {
  Communicators ranks = make_ranks(5);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    const int rank = static_cast<int>(communicator.rank());
    auto part = TUTTI_TRY(communicator.split(rank == 4 ? -1 : rank % 2, -rank, communicator.options()));
    if (rank == 4) return part == nullptr ? Status() : internal_error("rank 4 has no color, but a sub-communicator");
    if (part->ranks() != 2 || part->rank() != (rank < 2 ? 1U : 0U))
      return internal_error("rank " + std::to_string(rank) + " is misplaced");
    std::vector<float> buffer(10, static_cast<float>(rank));
    TUTTI_CHECK_OK(part->run(all_reduce(buffer)));
    return buffer[9] == (rank % 2 == 0 ? 2 : 4) ? Status() : internal_error("a wrong sum");
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

// Communicators with equal ids would match each other's messages with tags.
TEST(Split, HasOtherIdThanSplitsAndShrinksOfSameRanks) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    Communicators parts;
    const CommunicatorOptions& options = communicator.options();
    for (int turn = 0; turn < 2; ++turn) {
      parts.push_back(TUTTI_TRY(communicator.split(0, 0, options)));
      parts.push_back(TUTTI_TRY(communicator.shrink({}, options)));
    }
    std::set<std::uint64_t> ids = {communicator.mesh().hosts().id()};
    for (const auto& part : parts) ids.insert(part->mesh().hosts().id());
    return ids.size() == 1 + parts.size() ? Status() : internal_error("some ids are equal");
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

// Timeout errors contain the name, so it must identify the new communicator.
TEST(Split, NamesNewCommunicatorsByColor) {
  for (const std::string name : {"", "grid"}) {
    CommunicatorOptions options;
    options.name = name;
    Communicators ranks = make_ranks(2, options);
    const auto statuses = on_all(ranks, [&](Communicator& communicator) -> Status {
      const auto part = TUTTI_TRY(communicator.split(3, 0, communicator.options()));
      CommunicatorOptions given = communicator.options();
      given.name = "rows";
      const auto named = TUTTI_TRY(communicator.split(3, 0, given));
      return invalid_usage(part->options().name + ", " + named->options().name);
    });
    for (const Status& status : statuses)
      EXPECT_EQ(status.message(), (name.empty() ? "a split" : name) + " (color 3), rows");
  }
}

// Rank 0 starts a recv, which sends the address of its lane. Rank 1 reads this frame while it waits for a socket of the
// split. The frame must not be lost, or the message would never arrive.
TEST(Split, ProcessesFramesSentBeforeIt) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    const Rank rank = communicator.rank();
    std::vector<int> buffer(100, rank == 0 ? 0 : 7);
    (void)TUTTI_TRY(communicator.split(0, 0, communicator.options()));  // Creates the lanes of split.
    std::vector<std::unique_ptr<Operation>> recv;
    if (rank == 0) {
      recv.push_back(TUTTI_TRY(communicator.start(message(Kind::recv, 1, buffer))));
      (void)TUTTI_TRY(recv[0]->advance());
    }
    const auto part = TUTTI_TRY(communicator.split(0, 0, communicator.options()));
    if (rank == 1) return communicator.run(message(Kind::send, 0, buffer));
    TUTTI_CHECK_OK(drive(recv));
    return buffer == std::vector<int>(100, 7) ? Status() : internal_error("another message arrived");
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Split, DoesNotMatchAllGatherOfSameShape) {
  Communicators ranks = make_ranks(2);
  const auto statuses = on_all(ranks, [](Communicator& communicator) {
    if (communicator.rank() == 0) return communicator.split(0, 0, communicator.options()).status();
    std::vector<float> in(2), out(4);
    Call call = all_reduce(in);
    call.collective = Collective::all_gather;
    call.type = DataType::int8;
    call.count = 8;
    call.output = reinterpret_cast<std::byte*>(out.data());
    return communicator.run(call);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::invalid_usage);
    EXPECT_NE(status.message().find("rank 0 called split"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("rank 1 called all_gather(8 int8)"), std::string::npos) << status.message();
  }
}

TEST(Split, IgnoresForcedOptionsOfCollectives) {
  CommunicatorOptions options;
  options.protocol = "no such protocol";
  Communicators ranks = make_ranks(2, options);
  const auto statuses = on_all(
      ranks, [](Communicator& communicator) { return communicator.split(0, 0, communicator.options()).status(); });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace tutti::test
