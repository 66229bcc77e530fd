#include "src/communicator/device/neighbours.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "src/communicator/group.h"

namespace tutti {
namespace {

// Memory for lanes from other processes: taken at once, since both ends have to know it.
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kInboxesBytes = 48 * kMiB;
constexpr std::size_t kMostInboxBytes = 16 * kMiB;
constexpr std::size_t kChannelBytes = 5 * kMiB / 3;  // Of one rank to another: both protocols, two tags, and messages.
constexpr std::uint32_t kMostLaneChannels = 8;

// Of the process, not of the one that it was forked from.
std::uint64_t number_of_process() {
  static const std::uint64_t number = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return number + static_cast<std::uint64_t>(::getpid());
}

std::size_t inbox_bytes(Rank ranks) {
  return std::clamp(kInboxesBytes / std::max(ranks - 1, 1U) / kMiB * kMiB, kMiB, kMostInboxBytes);
}

// Where a writer's lanes begin in the reader's memory.
std::size_t inbox_at(Rank writer, Rank reader, Rank ranks) {
  return (writer < reader ? writer : writer - 1) * inbox_bytes(ranks);
}

// Every rank's item, for each of the members.
template <typename Item>
Result<std::vector<std::vector<Item>>> gather(const std::vector<Communicator*>& members, const std::vector<Item>& own) {
  std::vector<std::vector<Item>> all;
  std::vector<GroupedCall> calls(members.size());
  for (const Communicator* member : members) all.emplace_back(member->ranks());
  for (std::size_t i = 0; i < members.size(); ++i) {
    calls[i].communicator = members[i];
    calls[i].options.timeout_ms = members[i]->options().init_timeout_ms;
    calls[i].options.force();
    Call& call = calls[i].call;
    call.collective = Collective::all_gather;
    call.type = DataType::uint8;
    call.count = sizeof(Item);
    call.input = reinterpret_cast<const std::byte*>(&own[i]);
    call.output = reinterpret_cast<std::byte*>(all[i].data());
  }
  TUTTI_CHECK_OK(run_group(calls));
  return all;
}

}  // namespace

// What a rank tells the others of itself.
struct Neighbours::Card {
  std::uint64_t process = 0;  // A random number of the process: ranks with the same one share its memory.
  std::uint64_t home = 0;
  DeviceIdentity device = {};
  std::uint32_t teams = 0;
  std::uint32_t failed = 0;  // 1: it has no memory for its inboxes.
  DeviceHandle inboxes = {};
};

Result<std::vector<Neighbours>> Neighbours::meet(const std::vector<std::unique_ptr<Communicator>>& members,
                                                 const std::shared_ptr<Device>& device) {
  static_assert(sizeof(Card) == 104);
  std::vector<Communicator*> all_members;
  for (const auto& member : members) all_members.push_back(member.get());
  std::vector<std::shared_ptr<DeviceHome>> own;
  std::vector<Card> cards;
  for (std::size_t i = 0; i < members.size(); ++i) {
    own.push_back(std::make_shared<DeviceHome>(device));
    Card& card = cards.emplace_back();
    card.process = number_of_process();
    card.home = DeviceHome::publish(own.back());
    card.device = device->traits().identity;
    card.teams = device->traits().teams;
  }
  auto all = TUTTI_TRY(gather(all_members, cards));
  const auto is_foreign = [&](const Card& card) { return card.process != number_of_process(); };
  // All ranks come to the same answer, but a set of members may be part of one communicator alone.
  if (std::any_of(all.front().begin(), all.front().end(), is_foreign)) {
    for (std::size_t i = 0; i < members.size(); ++i)
      cards[i].failed =
          own[i]->open_inboxes((members[i]->ranks() - 1) * inbox_bytes(members[i]->ranks()), cards[i].inboxes).ok() ? 0
                                                                                                                    : 1;
    all = TUTTI_TRY(gather(all_members, cards));
  }
  std::vector<Neighbours> made;
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto each = among(all[i], members[i]->rank(), own[i]);
    if (!each.ok()) return members[i]->fail(std::move(each).status());
    made.push_back(std::move(each).value());
  }
  return made;
}

Status Neighbours::await_all(const std::vector<Communicator*>& members) {
  return gather(members, std::vector<std::uint64_t>(members.size())).status();
}

Result<Neighbours> Neighbours::among(const std::vector<Card>& cards, Rank self,
                                     const std::shared_ptr<DeviceHome>& own) {
  std::vector<std::shared_ptr<DeviceHome>> homes(cards.size());
  for (Rank peer = 0; peer < cards.size(); ++peer) {
    if (cards[peer].process == number_of_process()) homes[peer] = DeviceHome::find(cards[peer].home);
  }
  homes[self] = own;
  Neighbours made(self, std::move(homes));
  TUTTI_CHECK_OK(made.open_inboxes(cards));
  made.lane_channels_ = kMostLaneChannels;
  if (made.foreign_ > 0) {
    const std::size_t channels = inbox_bytes(made.ranks()) / kChannelBytes;
    made.lane_channels_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(channels, 1, kMostLaneChannels));
  }
  // The fewest that any rank can count on, where several share a device.
  made.teams_ = kMostChannels;
  made.one_device_ = std::all_of(cards.begin(), cards.end(), [&](const Card& card) {
    return card.process == cards.front().process && card.device == cards.front().device;
  });
  for (const Card& card : cards) {
    const auto sharers =
        std::count_if(cards.begin(), cards.end(), [&](const Card& other) { return other.device == card.device; });
    made.teams_ = std::min(made.teams_, card.teams / static_cast<std::uint32_t>(sharers));
    if (made.family_ == 0 && card.process == number_of_process()) made.family_ = card.home;
  }
  if (made.teams_ == 0) return unsupported("so many ranks share a GPU that they cannot all be under way at once");
  return made;
}

Status Neighbours::open_inboxes(const std::vector<Card>& cards) {
  Device& device = home().device();
  to_.resize(cards.size());
  from_.resize(cards.size());
  const std::size_t bytes = inbox_bytes(ranks());
  for (Rank peer = 0; peer < cards.size(); ++peer) {
    const std::string name = "rank " + std::to_string(peer);
    const bool here = cards[peer].process == number_of_process();
    if (here && homes_[peer] == nullptr) return remote_error(name + " has gone while the ranks met on their devices");
    if (here) {
      TUTTI_CHECK_OK(device.reach(home(peer).device()).during("reaching the memory of " + name));
      continue;
    }
    if (cards[peer].failed != 0) return remote_error(name + " has no memory for lanes on its device");
    ++foreign_;
    std::byte* memory = TUTTI_TRY(device.open(cards[peer].inboxes));
    opened_.push_back(memory);
    to_[peer] = Inbox(memory + inbox_at(self_, peer, ranks()), bytes);
    from_[peer] = Inbox(home().inboxes() + inbox_at(peer, self_, ranks()), bytes);
  }
  return {};
}

Neighbours::~Neighbours() { let_go(); }

void Neighbours::let_go() {
  for (std::byte* memory : opened_) home().device().close(memory);
  opened_.clear();
}

Result<LanePair> Neighbours::lane(const LaneSpec& spec) {
  if (homes_[spec.reader] != nullptr && homes_[spec.writer] != nullptr) return homes_[spec.reader]->lane(spec);
  return spec.writer == self_ ? to_[spec.reader].lane(spec) : from_[spec.writer].lane(spec);
}

}  // namespace tutti
