#include "src/communicator/device/kernel_reports.h"

#include <utility>

#include "src/base/pages.h"
#include "src/communicator/peers/deferred_frees.h"

namespace tutti {
namespace {

// Unmaps the pages once no call is in flight. Keeps the pages alive until then, if their descriptor can be duplicated.
void unmap(const std::shared_ptr<Device>& device, const HostMemory& mapped, const Segment& segment) {
  Result<File> file = segment.duplicate();
  if (!file.ok()) return device->unmap_host(mapped);
  Result<Segment> own = Segment::adopt(std::move(file).value(), segment.size());
  if (!own.ok() || own.value().data() != mapped.host) return device->unmap_host(mapped);
  auto pages = std::make_shared<Segment>(std::move(own).value());  // Shared, because std::function must be copyable.
  free_when_idle([device, mapped, pages = std::move(pages)] { device->unmap_host(mapped); });
}

}  // namespace

Result<std::unique_ptr<KernelReports>> KernelReports::make(const std::shared_ptr<Device>& device, const Board& board,
                                                           Rank rank) {
  std::unique_ptr<KernelReports> made(new KernelReports(device, board, rank));
  const std::size_t board_bytes = round_up(Board::bytes_for_gpus(board.ranks_here()), mapped_page_bytes());
  made->board_memory_ = TUTTI_TRY(device->map_host(board.segment().data(), board_bytes));
  made->progress_ = TUTTI_TRY(device->allocate_host(sizeof(KernelProgress)));
  return made;
}

KernelReports::~KernelReports() {
  if (board_memory_.host != nullptr) unmap(device_, board_memory_, board_.segment());
  if (progress_.host == nullptr) return;
  free_when_idle([device = device_, progress = progress_] { device->free_host(progress); });
}

KernelWatch KernelReports::watch(std::uint64_t number, std::int64_t timeout_ms) const {
  KernelWatch watch;
  watch.failed = failed_on_device();
  watch.timeout_ns = timeout_ms <= 0 ? 0 : static_cast<std::uint64_t>(timeout_ms) * 1'000'000;
  watch.kernel_progress = progress_on_device();
  watch.number = number;
  return watch;
}

}  // namespace tutti
