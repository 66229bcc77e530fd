#include "src/communicator/device/address_exchange_memory.h"

#include <span>
#include <vector>

#include "src/base/pages.h"

namespace tutti {

Result<AddressExchangeMemory> make_address_exchange(const PeerSet& peers, Rank self, const KernelReports& reports) {
  static_assert(kMaxRemoteAccesses == kMaxChannels);
  Device& device = peers.own_memory().device();
  const Rank ranks = peers.ranks();
  std::vector<AddressRecord*> records;
  for (Rank rank = 0; rank < ranks; ++rank) records.push_back(TUTTI_TRY(peers.records(rank)));
  const std::size_t records_at = round_up(sizeof(AddressExchange), 16);
  const std::size_t counts_at = records_at + round_up(records.size() * sizeof(AddressRecord*), 16);
  const std::size_t windows_at = counts_at + kMaxChannels * sizeof(std::uint64_t);
  std::byte* memory =
      TUTTI_TRY(peers.own_memory().allocate(windows_at + std::size_t{kMaxWindows} * ranks * sizeof(WindowPart)));
  auto* windows = reinterpret_cast<WindowPart*>(memory + windows_at);
  const AddressExchange exchange = {.records = reinterpret_cast<AddressRecord* const*>(memory + records_at),
                                    .counts = reinterpret_cast<std::uint64_t*>(memory + counts_at),
                                    .windows = windows,
                                    .remote_accesses = reports.remote_accesses_on_device(self),
                                    .failed = reports.failed_on_device()};
  TUTTI_CHECK_OK(device.upload(memory, std::as_bytes(std::span(&exchange, 1))));
  TUTTI_CHECK_OK(device.upload(memory + records_at, std::as_bytes(std::span(records))));
  const std::vector<WindowPart> addresses(peers.on_one_device() ? ranks : 0, kWholeMemory);
  TUTTI_CHECK_OK(device.upload(memory + windows_at, std::as_bytes(std::span(addresses))));
  return AddressExchangeMemory{reinterpret_cast<const AddressExchange*>(memory), windows};
}

}  // namespace tutti
