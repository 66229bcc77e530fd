// How a communicator comes to be, and how it ends.
#include <sched.h>

#include <algorithm>
#include <string>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/host_communicator.h"

namespace tutti {
namespace {

std::uint32_t usable_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

}  // namespace

HostCommunicator::HostCommunicator(Rank rank, Mesh mesh, Board board, CommunicatorOptions options)
    : options_(std::move(options)),
      rank_(rank),
      ranks_(board.ranks()),
      mesh_(std::move(mesh)),
      board_(std::move(board)),
      links_(mesh_, rank) {
  options_.force();
  crowded_ = ranks_ > usable_cpus();
}

HostCommunicator::~HostCommunicator() { mesh_.leave(); }

Result<std::vector<std::unique_ptr<Communicator>>> Communicator::create_all(Rank ranks, const CommunicatorOptions& options) {
  std::vector<Mesh> meshes = TUTTI_TRY(Mesh::within_process(ranks));
  const Board first = TUTTI_TRY(Board::create(ranks));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (Rank rank = 0; rank < ranks; ++rank) {
    File file = TUTTI_TRY(first.segment().duplicate());
    Board board = TUTTI_TRY(Board::adopt(std::move(file), ranks));
    communicators.push_back(std::make_unique<HostCommunicator>(rank, std::move(meshes[rank]), std::move(board), options));
  }
  return communicators;
}

// Ranks that leave early would look dead to those that still work: all say goodbye, then all go.
Status HostCommunicator::finalize() {
  TUTTI_CHECK_OK(await_ticket(tickets_.load()));
  if (board_.failed()) return board_.failure(rank_);
  store_release(&board_.entry(rank_).left, 1U);
  record_ = nullptr;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    Patience patience;
    while (load_acquire(&board_.entry(peer).left) == 0) TUTTI_CHECK_OK(wait_for(peer, patience));
  }
  return {};
}

void HostCommunicator::abort() { board_.fail(rank_, aborted_error("rank " + std::to_string(rank_) + " aborted the communicator")); }

Status HostCommunicator::failure() {
  if (board_.failed()) return board_.failure(rank_);
  return {};
}

Status HostCommunicator::await_ticket(std::uint64_t ticket) {
  Patience patience;
  while (served_.load(std::memory_order_acquire) != ticket) TUTTI_CHECK_OK(wait_for(rank_, patience));
  return {};
}

std::byte* HostCommunicator::scratch(std::uint64_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

std::byte* HostCommunicator::copy_of(const std::byte* input, std::uint64_t bytes) {
  if (input_copy_.size() < bytes) input_copy_.resize(bytes);
  std::copy_n(input, bytes, input_copy_.data());
  return input_copy_.data();
}

}  // namespace tutti
