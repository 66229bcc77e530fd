#include "src/communicator/control/board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <cstring>

#include "src/base/atomic.h"
#include "src/base/own_cpus.h"

namespace tutti {
namespace {

constexpr std::uint32_t kVersion = 10;  // Version of the board's layout.

bool names(const std::string& text, Rank rank) {
  const std::string name = "rank " + std::to_string(rank);
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end == text.size() || std::isdigit(static_cast<unsigned char>(text[end])) == 0) return true;
  }
  return false;
}

using CallWords = std::array<std::uint64_t, sizeof(CallRecord) / 8>;  // Word 0: the number of the call.

}  // namespace

// Header, failed words, access words, entries, autotuners.
Board::Board(Segment memory, Rank ranks, Rank ranks_here) : memory_(std::move(memory)), access_words_(ranks) {
  auto* first = reinterpret_cast<BoardEntry*>(memory_.data() + bytes_for_gpus(ranks_here));
  for (Rank rank = 0; rank < ranks; ++rank) entries_.push_back(first + rank);
  autotuners_ = reinterpret_cast<AutotunerHeader*>(first + ranks);
  if (ranks == ranks_here) find_access_words({});
}

std::size_t Board::bytes(Rank ranks, Rank ranks_here) {
  return bytes_for_gpus(ranks_here) + ranks * sizeof(BoardEntry) + sizeof(AutotunerHeader) +
         ranks * kMaxAutotunerCells * sizeof(AutotunerEntry);
}

// Only ranks of this host have some: a board of many hosts would be several times as large otherwise.
void Board::find_access_words(const std::vector<Rank>& remote_ranks) {
  auto* next = reinterpret_cast<AccessWords*>(memory_.data() + bytes_for_gpus(0));
  std::vector<bool> here(access_words_.size(), true);
  for (const Rank rank : remote_ranks) here[rank] = false;
  for (Rank rank = 0; rank < access_words_.size(); ++rank) access_words_[rank] = here[rank] ? next++ : nullptr;
}

void Board::set_remote_ranks(const std::vector<Rank>& remote_ranks) {
  for (const Rank rank : remote_ranks) {
    remote_entries_.push_back(std::make_unique<BoardEntry>());
    entries_[rank] = remote_entries_.back().get();
  }
  find_access_words(remote_ranks);
}

bool Board::is_remote(Rank rank) const {
  return std::any_of(remote_entries_.begin(), remote_entries_.end(),
                     [&](const auto& entry) { return entry.get() == entries_[rank]; });
}

Result<Board> Board::create(Rank ranks, Rank ranks_here) {
  Segment memory = TUTTI_TRY(Segment::create("tutti-board", bytes(ranks, ranks_here)));
  Board board(std::move(memory), ranks, ranks_here);
  board.header().version = kVersion;
  board.header().ranks = ranks;
  return board;
}

Result<Board> Board::adopt(File file, Rank ranks, Rank ranks_here) {
  Segment memory = TUTTI_TRY(Segment::adopt(std::move(file), bytes(ranks, ranks_here)));
  Board board(std::move(memory), ranks, ranks_here);
  if (board.header().version != kVersion || board.header().ranks != ranks) {
    return invalid_usage("a peer runs another version of tutti: its board has version " +
                         std::to_string(board.header().version) + ", this library's is " + std::to_string(kVersion));
  }
  return board;
}

void Board::fail(Rank finder, const Status& status, FailureReason reason) const {
  BoardHeader& head = header();
  if (!compare_exchange(&head.claimed, 0U, 1U)) return;
  head.code = static_cast<std::uint32_t>(status.code());
  head.rank = finder;
  head.reason = static_cast<std::uint32_t>(reason);
  const std::size_t length = std::min(status.message().size(), sizeof head.message - 1);
  std::memcpy(head.message, status.message().data(), length);
  store_release(&head.failed, 1U);
  stop_thread_blocks();
  full_fence();
  wake_all();
}

void Board::stop_thread_blocks() const {
  for (Rank set = 0; set < kFailedSets; ++set) failed_words(set).set();
}

void Board::wake_all() const {
  for (BoardEntry* entry : entries_) wake_if_asleep(&entry->asleep);
}

// Clears the word first. A rank that watches afterwards polls after this rank's change of the board.
void Board::wake_all_watchers() const {
  if (!compare_exchange(&header().watched, 1U, 0U)) return;
  wake_all();
}

Deadline Board::remote_access_deadline(const Deadline& wanted) const {
  std::int64_t& until_ns = header().remote_access_deadline_ns;
  compare_exchange(&until_ns, std::int64_t{0}, wanted.at_ns);
  return {std::min(load_acquire(&until_ns), wanted.at_ns)};
}

Status Board::failure(Rank self) const {
  const BoardHeader& head = header();
  const std::string text(head.message, ::strnlen(head.message, sizeof head.message));
  const auto code = static_cast<Code>(head.code);
  if (head.rank != self && head.reason == static_cast<std::uint32_t>(FailureReason::called_off))
    return remote_error("rank " + std::to_string(head.rank) + " cancels its group: " + text);
  if (head.reason == static_cast<std::uint32_t>(FailureReason::called_off))
    return {code, "a group of this rank failed: " + text};
  if (head.rank == self || names(text, head.rank)) return {code, text};
  return {code, text + " (found by rank " + std::to_string(head.rank) + ")"};
}

namespace {

// Header of failure_record(), before the text.
struct FailureHead {
  std::uint32_t code = 0, rank = 0, reason = 0, reserved = 0;
};

}  // namespace

std::vector<std::byte> Board::failure_record() const {
  const BoardHeader& header = this->header();
  const FailureHead head = {header.code, header.rank, header.reason, 0};
  const std::size_t length = ::strnlen(header.message, sizeof header.message);
  std::vector<std::byte> record(sizeof head + length);
  std::memcpy(record.data(), &head, sizeof head);
  std::memcpy(record.data() + sizeof head, header.message, length);
  return record;
}

void Board::publish(std::span<const std::byte> failure) const {
  FailureHead head;
  if (failure.size() < sizeof head) return;
  std::memcpy(&head, failure.data(), sizeof head);
  const bool known = head.code != 0 && head.code <= static_cast<std::uint32_t>(Code::internal) && head.rank < ranks() &&
                     head.reason <= static_cast<std::uint32_t>(FailureReason::called_off);
  if (!known) return;
  const auto* text = reinterpret_cast<const char*>(failure.data() + sizeof head);
  fail(head.rank, Status(static_cast<Code>(head.code), std::string(text, failure.size() - sizeof head)),
       static_cast<FailureReason>(head.reason));
}

// Clears the number first and writes it last, so that a reader never accepts an incomplete record.
void Board::announce(Rank self, const CallRecord& record) const {
  std::uint64_t* shared = reinterpret_cast<std::uint64_t*>(&entry(self).calls[record.sequence % kCallHistory]);
  store_relaxed(&shared[0], std::uint64_t{0});
  std::atomic_thread_fence(std::memory_order_release);
#pragma GCC unroll 8
  for (std::size_t i = 1; i < sizeof record / 8; ++i) {
    std::uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&record) + i * 8, 8);
    store_relaxed(&shared[i], word);
  }
  store_release(&shared[0], record.sequence);
  wake_watchers();
}

std::optional<CallRecord> Board::call(Rank rank, std::uint64_t sequence) const {
  const auto* shared = reinterpret_cast<const std::uint64_t*>(&entry(rank).calls[sequence % kCallHistory]);
  if (load_acquire(&shared[0]) != sequence) return std::nullopt;
  CallWords words = {sequence};
  for (std::size_t i = 1; i < words.size(); ++i) words[i] = load_relaxed(&shared[i]);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (load_relaxed(&shared[0]) != sequence) return std::nullopt;
  return std::bit_cast<CallRecord>(words);
}

void Board::show_cpus(Rank self) const {
  BoardEntry& own = entry(self);
  if (load_relaxed(&own.cpus_shown) != 0) return;
  for (const std::uint32_t cpu : own_cpus()) own.cpus[cpu % kMaxCpus / 64] |= std::uint64_t{1} << cpu % 64;
  store_release(&own.cpus_shown, 1U);
}

std::optional<std::uint32_t> Board::cpus() const {
  std::array<std::uint64_t, kMaxCpus / 64> all = {};
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (is_remote(rank)) continue;
    if (load_acquire(&entry(rank).cpus_shown) == 0) return std::nullopt;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= entry(rank).cpus[i];
  }
  std::uint32_t count = 0;
  for (const std::uint64_t word : all) count += static_cast<std::uint32_t>(std::popcount(word));
  return count;
}

std::uint64_t Board::last(Rank rank) const {
  std::uint64_t last = 0;
  for (const CallRecord& slot : entry(rank).calls) last = std::max(last, load_acquire(&slot.sequence));
  return last;
}

// A rank of another host announces only some calls, but every rejection, and the first call after one.
std::string Board::describe_rejection(Rank rank) const {
  const auto rejection = read_rejection(entry(rank).rejection);
  if (!rejection || rejection->collectives < last(rank)) return "";
  return "; a call of rank " + std::to_string(rank) + " was rejected: " + rejection->text;
}

AutotunerEntry& Board::autotuner_entry(std::uint32_t cell, Rank rank) const {
  return reinterpret_cast<AutotunerEntry*>(&autotuners() + 1)[cell * entries_.size() + rank];
}

std::string describe(const CallRecord& record) {
  const auto collective = static_cast<Collective>(record.collective);
  const char* type = name(static_cast<DataType>(record.type));
  if (record.collective == kSplitCollective) return "split";
  if (record.collective == kUnequalCollective)
    return std::string("all_to_all_v(") + (type != nullptr ? type : "unknown") + ")";
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
