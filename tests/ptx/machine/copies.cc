// Copies and fills: they access memory as one thread, at once.
#include <algorithm>
#include <cstring>

#include "tests/ptx/machine/scheduler.h"
#include "tests/ptx/machine/words.h"

namespace tutti::ptx {
namespace {

const char* kind_of(const CopyLaunch& copy) {
  if (copy.writes_word) return "a write of a word";
  return copy.from == nullptr && copy.staged == nullptr ? "a memset" : "a copy";
}

std::string describe(const CopyLaunch& copy) {
  return kind_of(copy) + (" of " + std::to_string(copy.bytes)) + " bytes on device " + std::to_string(copy.device);
}

std::uint64_t number_of(const std::byte* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

void GlobalMemory::record_bytes(Cell cell, std::uint64_t begin, std::uint64_t end, const View& view) {
  for (const CachedRange& range : ranges_) {
    const std::uint64_t last = std::min(end, range.end);
    for (std::uint64_t address = std::max(begin, range.begin), next = address; address < last; address = next) {
      if (cell.writes) next = shadow_.fill(address, last, cell);
      if (next != address) continue;
      next = std::min(address / 8 * 8 + 8, last);
      cell.bytes = byte_mask(address, static_cast<unsigned>(next - address));
      Granule& granule = shadow_.at(address);
      if (cell.writes) granule.written |= cell.bytes;
      const auto other = options_.detects_races ? record_access(granule, cell, view, clocks_) : std::nullopt;
      if (other) throw RaisedRace{*other, cell, address};
    }
  }
}

void GlobalMemory::execute(const CopyLaunch& copy, const Event& now, const ViewRef& view) {
  Cell cell;
  cell.block = now.block;
  cell.clock = now.clock;
  cell.scope = Scope::system;
  if (copy.from != nullptr && !copy.writes_word)
    record_bytes(cell, number_of(copy.from), number_of(copy.from) + copy.bytes, *view);
  cell.writes = true;
  cell.strong = copy.writes_word;
  cell.size = copy.writes_word ? 2 : 0;  // Words have 4 bytes.
  record_bytes(cell, number_of(copy.to), number_of(copy.to) + copy.bytes, *view);
  ++stores_;
  ++changes_;
  if (copy.writes_word) {
    const std::uint64_t address = number_of(copy.to);
    const ViewRef published = clocks_.with_self(view, now);
    released_ = clocks_.join(released_, published);
    shadow_.at(address).published = true;
    shadow_.publish(address) = {copy.word, published, Scope::system, now.block};
    store_word(address, sizeof copy.word, copy.word, std::memory_order_release);
  } else if (copy.staged != nullptr) {
    std::memcpy(copy.to, copy.staged->data(), copy.bytes);
  } else if (copy.from == nullptr) {
    View after = *clocks_.with_self(view, now);
    after.references = 0;
    after.floor = stores_;
    fills_.insert_or_assign(now.block, Fill{static_cast<std::byte>(copy.value), ViewRef(std::move(after))});
    if (fills_.size() > kMaxFills) fills_.erase(fills_.begin());
    std::memset(copy.to, copy.value, copy.bytes);
  } else {
    std::memmove(copy.to, copy.from, copy.bytes);
  }
}

void Machine::Thread::start(CopyLaunch copy, LaunchDone done) {
  if (copy.writes_word) copy.bytes = sizeof copy.word;
  {
    const std::lock_guard lock(mutex);
    incoming_copies.push_back({std::move(copy), std::move(done), ended.load(std::memory_order_acquire)});
    has_incoming = true;
  }
  wake.notify_one();
}

void Machine::Thread::execute(WaitingCopy& waiting) {
  const CopyLaunch& copy = waiting.copy;
  if (copy.claimed != nullptr && copy.claimed->exchange(true)) return;
  const auto operation = static_cast<std::uint32_t>(records.size());
  records.push_back({nullptr, nullptr, describe(copy)});
  const Event now = {clocks.add_block(record_of(copy.order, operation, copy.device)), 0, 1, 0};
  std::optional<Fault> fault;
  try {
    memory.execute(copy, now, knowledge_of(copy.order, waiting.ended_before));
  } catch (const RaisedRace& race) {
    fault = make_fault(race, "");
  }
  end_operation({now.block}, copy.order.has_value());
  waiting.done(fault);
}

void Machine::Thread::execute_copies() {
  for (; !copies.empty(); copies.pop_front()) execute(copies.front());
}

ViewRef Machine::Thread::knowledge_of(const std::optional<OperationOrder>& order, std::uint64_t ended_before) {
  View view;
  if (order) {
    view.operations = order->before;
  } else {
    view.ended = ended_before;
  }
  // The host may have started the operation after it saw what running kernels released.
  return clocks.join(ViewRef(std::move(view)), memory.released());
}

void Machine::Thread::end_operation(const std::vector<std::uint32_t>& numbers, bool has_order) {
  const std::uint64_t stamp = ended.load(std::memory_order_relaxed) + 1;
  for (const std::uint32_t number : numbers) clocks.end_block(number, stamp);
  if (!has_order) memory.end_launches(stamp);
  ended.store(stamp, std::memory_order_release);
}

}  // namespace tutti::ptx
