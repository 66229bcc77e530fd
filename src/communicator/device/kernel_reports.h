// Host memory that a rank shares with its thread blocks: the board of the communicator, mapped into the device, and a
// KernelProgress, in which thread blocks report calls that begin and calls that fail.
#pragma once

#include <cstdint>
#include <memory>

#include "src/communicator/control/board.h"
#include "src/executor/thread_block/batch.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

class KernelReports {
 public:
  // Maps the board and allocates the progress. `board` must outlive the result.
  static Result<std::unique_ptr<KernelReports>> make(const std::shared_ptr<Device>& device, const Board& board,
                                                     Rank rank);
  // No thread block may use the memory any more. Unmaps the board once no call of the process is in flight.
  ~KernelReports();
  KernelReports(const KernelReports&) = delete;
  KernelReports& operator=(const KernelReports&) = delete;

  const KernelProgress& progress() const { return *reinterpret_cast<const KernelProgress*>(progress_.host); }
  KernelProgress* progress_on_device() const { return reinterpret_cast<KernelProgress*>(progress_.device); }
  // Device addresses of words on the board, by channel: the failure of the communicator, and the rank's remote
  // accesses.
  const FailedWords* failed_on_device() const { return on_device(&board_.failed_words(rank_)); }
  AccessWords* remote_accesses_on_device() const { return on_device(board_.access_words(rank_)); }
  // Returns the stop conditions of call `number`. `timeout_ms`: 0 or less: no timeout.
  KernelWatch watch(std::uint64_t number, std::int64_t timeout_ms) const;

 private:
  KernelReports(std::shared_ptr<Device> device, const Board& board, Rank rank)
      : device_(std::move(device)), board_(board), rank_(rank) {}
  template <typename T>
  T* on_device(T* on_board) const {
    const std::ptrdiff_t at = reinterpret_cast<const std::byte*>(on_board) - board_memory_.host;
    return reinterpret_cast<T*>(board_memory_.device + at);
  }

  const std::shared_ptr<Device> device_;
  const Board& board_;
  const Rank rank_;
  HostMemory board_memory_, progress_;  // Null: not mapped, or not allocated.
};

}  // namespace tutti
