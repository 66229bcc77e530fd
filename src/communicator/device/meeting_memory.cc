#include "src/communicator/device/meeting_memory.h"

#include <span>
#include <vector>

#include "src/base/pages.h"

namespace tutti {

Result<MeetingMemory> make_meeting_memory(const PeerSet& peers, Rank self, const KernelReports& reports) {
  static_assert(kMaxRemoteAccesses == kMaxChannels);
  Device& device = peers.own_memory().device();
  const Rank ranks = peers.ranks();
  std::vector<MeetingRecord*> records;
  for (Rank rank = 0; rank < ranks; ++rank) records.push_back(TUTTI_TRY(peers.records(rank)));
  const std::size_t records_at = round_up(sizeof(MeetingPlace), 16);
  const std::size_t meetings_at = records_at + round_up(records.size() * sizeof(MeetingRecord*), 16);
  const std::size_t windows_at = meetings_at + kMaxChannels * sizeof(std::uint64_t);
  std::byte* memory =
      TUTTI_TRY(peers.own_memory().allocate(windows_at + std::size_t{kMaxWindows} * ranks * sizeof(WindowPart)));
  auto* windows = reinterpret_cast<WindowPart*>(memory + windows_at);
  const MeetingPlace place = {.records = reinterpret_cast<MeetingRecord* const*>(memory + records_at),
                              .meetings = reinterpret_cast<std::uint64_t*>(memory + meetings_at),
                              .windows = windows,
                              .remote_accesses = reports.remote_accesses_on_device(self),
                              .failed = reports.failed_on_device()};
  TUTTI_CHECK_OK(device.upload(memory, std::as_bytes(std::span(&place, 1))));
  TUTTI_CHECK_OK(device.upload(memory + records_at, std::as_bytes(std::span(records))));
  const std::vector<WindowPart> addresses(peers.on_one_device() ? ranks : 0, kWholeMemory);
  TUTTI_CHECK_OK(device.upload(memory + windows_at, std::as_bytes(std::span(addresses))));
  return MeetingMemory{reinterpret_cast<const MeetingPlace*>(memory), windows};
}

}  // namespace tutti
