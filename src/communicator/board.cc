#include "src/communicator/board.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "src/base/atomic.h"

namespace tutti {

Board::Board(Segment memory)
    : memory_(std::move(memory)), entries_(reinterpret_cast<BoardEntry*>(memory_.data() + sizeof(BoardHeader))) {}

Result<Board> Board::create(Rank ranks) {
  Segment memory = TUTTI_TRY(Segment::create("tutti-board", bytes(ranks)));
  Board board(std::move(memory));
  board.header().version = 1;
  board.header().ranks = ranks;
  return board;
}

Result<Board> Board::adopt(File file, Rank ranks) {
  Segment memory = TUTTI_TRY(Segment::adopt(std::move(file), bytes(ranks)));
  Board board(std::move(memory));
  if (board.header().version != 1 || board.header().ranks != ranks) {
    return invalid_usage("a peer runs another version of tutti: its board has version " +
                         std::to_string(board.header().version) + ", this library's is 1");
  }
  return board;
}

bool Board::failed() const { return load_acquire(&header().failed) != 0; }

void Board::fail(Rank finder, const Status& status) const {
  BoardHeader& head = header();
  if (!compare_exchange(&head.claimed, 0U, 1U)) return;
  head.code = static_cast<std::uint32_t>(status.code());
  head.rank = finder;
  const std::size_t length = std::min(status.message().size(), sizeof head.message - 1);
  std::memcpy(head.message, status.message().data(), length);
  store_release(&head.failed, 1U);
}

Status Board::failure(Rank self) const {
  const BoardHeader& head = header();
  const std::string text(head.message, ::strnlen(head.message, sizeof head.message));
  const auto code = static_cast<Code>(head.code);
  if (head.rank == self) return {code, text};
  return {code, text + " (found by rank " + std::to_string(head.rank) + ")"};
}

void Board::announce(Rank self, const CallRecord& record) const {
  CallRecord& slot = entries_[self].calls[record.sequence % kCallHistory];
  store_relaxed(&slot.sequence, std::uint64_t{0});
  std::atomic_thread_fence(std::memory_order_release);
  store_relaxed(&slot.count, record.count);
  store_relaxed(&slot.signature, record.signature);
  store_relaxed(&slot.root, record.root);
  store_relaxed(&slot.collective, record.collective);
  store_relaxed(&slot.type, record.type);
  store_relaxed(&slot.reduction, record.reduction);
  store_relaxed(&slot.input.region, record.input.region);
  store_relaxed(&slot.input.offset, record.input.offset);
  store_relaxed(&slot.output.region, record.output.region);
  store_relaxed(&slot.output.offset, record.output.offset);
  store_release(&slot.sequence, record.sequence);
}

std::optional<CallRecord> Board::call(Rank rank, std::uint64_t sequence) const {
  const CallRecord& slot = entries_[rank].calls[sequence % kCallHistory];
  if (load_acquire(&slot.sequence) != sequence) return std::nullopt;
  CallRecord copy;
  copy.sequence = sequence;
  copy.count = load_relaxed(&slot.count);
  copy.signature = load_relaxed(&slot.signature);
  copy.root = load_relaxed(&slot.root);
  copy.collective = load_relaxed(&slot.collective);
  copy.type = load_relaxed(&slot.type);
  copy.reduction = load_relaxed(&slot.reduction);
  copy.input = {load_relaxed(&slot.input.region), load_relaxed(&slot.input.offset)};
  copy.output = {load_relaxed(&slot.output.region), load_relaxed(&slot.output.offset)};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (load_relaxed(&slot.sequence) != sequence) return std::nullopt;
  return copy;
}

std::uint64_t Board::last(Rank rank) const {
  std::uint64_t last = 0;
  for (const CallRecord& slot : entries_[rank].calls) last = std::max(last, load_acquire(&slot.sequence));
  return last;
}

std::string describe(const CallRecord& record) {
  const auto collective = static_cast<Collective>(record.collective);
  const char* type = name(static_cast<DataType>(record.type));
  std::string text = record.collective < kCollectives ? name(collective) : "unknown";
  text += "(" + std::to_string(record.count) + " " + (type != nullptr ? type : "unknown");
  if (reduces(collective)) {
    const char* reduction = name(static_cast<Reduction>(record.reduction));
    text += std::string(", ") + (reduction != nullptr ? reduction : "unknown");
  }
  if (has_root(collective)) text += ", root " + std::to_string(record.root);
  return text + ")";
}

}  // namespace tutti
