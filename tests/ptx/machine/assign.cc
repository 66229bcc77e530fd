// Liveness analysis and linear scan.
#include <algorithm>
#include <limits>
#include <queue>

#include "tests/ptx/machine/draft.h"

namespace tutti::ptx {
namespace {

constexpr std::uint32_t kSlotBytes[] = {4, 128, 256, 512};  // By Width.

struct BasicBlock {
  std::uint32_t begin = 0, end = 0;
  std::vector<std::uint32_t> next;
  std::vector<std::uint64_t> in, out, kill;  // Sets of registers that several blocks use.
};

struct Interval {
  std::uint32_t begin = std::numeric_limits<std::uint32_t>::max(), end = 0;
  void include(std::uint32_t position) {
    begin = std::min(begin, position);
    end = std::max(end, position);
  }
  bool used() const { return begin <= end; }
};

bool ends_block(const Draft& draft) {
  return draft.in.kind == Kind::branch || draft.in.kind == Kind::ret || draft.in.kind == Kind::exit ||
         draft.in.kind == Kind::trap;
}

template <typename F>
void each_use(const Draft& draft, F&& visit) {
  for (const DraftSlot& slot : draft.slots) {
    const bool kept = slot.use == DraftSlot::Use::result && draft.guard >= 0;  // Other threads keep the old value.
    if ((slot.use == DraftSlot::Use::source || kept) && slot.reg >= 0) visit(slot.reg);
  }
  if (draft.guard >= 0) visit(draft.guard);
}
template <typename F>
void each_result(const Draft& draft, F&& visit) {
  for (const DraftSlot& slot : draft.slots) {
    if (slot.use == DraftSlot::Use::result && slot.reg >= 0) visit(slot.reg);
  }
}

class Assignment {
 public:
  Assignment(const Function& function, std::vector<Draft>& drafts) : function_(function), drafts_(drafts) {}

  Status run(Frame& frame) {
    TUTTI_CHECK_OK(find_blocks());
    find_shared();
    find_live();
    find_intervals();
    scan(frame);
    insert_checks(frame);
    return {};
  }

 private:
  Status find_blocks();
  void find_shared();
  void find_live();
  void find_intervals();
  void scan(Frame& frame);
  void insert_checks(Frame& frame);
  std::vector<std::uint32_t> first_drafts() const;

  const Function& function_;
  std::vector<Draft>& drafts_;
  std::vector<BasicBlock> blocks_;
  std::vector<std::int32_t> shared_;      // Register -> bit, or -1.
  std::vector<std::uint32_t> registers_;  // Bit -> register.
  std::vector<Interval> intervals_;
};

// Statement -> its first draft.
std::vector<std::uint32_t> Assignment::first_drafts() const {
  std::vector<std::uint32_t> first(function_.statements.size() + 1, static_cast<std::uint32_t>(drafts_.size()));
  std::size_t next = first.size() - 1;
  for (std::size_t i = drafts_.size(); i-- > 0;) {
    while (next > drafts_[i].statement) --next, first[next] = first[next + 1];  // Statements without drafts.
    first[drafts_[i].statement] = static_cast<std::uint32_t>(i);
  }
  return first;
}

Status Assignment::find_blocks() {
  const std::vector<std::uint32_t> first = first_drafts();
  const auto count = static_cast<std::uint32_t>(drafts_.size());
  std::vector<std::uint32_t> block_at(count + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    Draft& draft = drafts_[i];
    if (ends_block(draft)) block_at[i + 1] = 1;
    if (draft.in.kind != Kind::branch) continue;
    const auto label = function_.labels.find(draft.label);
    if (label == function_.labels.end() || first[label->second] >= count)
      return invalid_argument("the label " + std::string(draft.label) + " is not in " + std::string(function_.name));
    draft.in.target = first[label->second];
    block_at[draft.in.target] = 1;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i == 0 || block_at[i] != 0) blocks_.push_back({i, i, {}, {}, {}, {}});
    blocks_.back().end = i + 1;
    block_at[i] = static_cast<std::uint32_t>(blocks_.size() - 1);
  }
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    const Draft& last = drafts_[blocks_[b].end - 1];
    if (last.in.kind == Kind::branch) blocks_[b].next.push_back(block_at[last.in.target]);
    const bool falls = !ends_block(last) || last.guard >= 0;
    if (falls && b + 1 < blocks_.size()) blocks_[b].next.push_back(b + 1);
  }
  return {};
}

// Registers that a block uses before it writes them. Others live within one block.
void Assignment::find_shared() {
  shared_.assign(function_.registers.size(), -1);
  std::vector<std::int32_t> written(function_.registers.size(), -1);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    for (std::uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
      each_use(drafts_[i], [&](std::int32_t reg) {
        const auto at = static_cast<std::size_t>(reg);
        if (written[at] == static_cast<std::int32_t>(b) || shared_[at] >= 0) return;
        shared_[at] = static_cast<std::int32_t>(registers_.size());
        registers_.push_back(static_cast<std::uint32_t>(reg));
      });
      each_result(drafts_[i],
                  [&](std::int32_t reg) { written[static_cast<std::size_t>(reg)] = static_cast<std::int32_t>(b); });
    }
  }
}

void Assignment::find_live() {
  const std::size_t words = (registers_.size() + 63) / 64;
  for (BasicBlock& block : blocks_) {
    block.in.assign(words, 0);
    block.out.assign(words, 0);
    block.kill.assign(words, 0);
    const auto bit = [&](std::vector<std::uint64_t>& set, std::int32_t reg, bool on) {
      const std::int32_t index = shared_[static_cast<std::size_t>(reg)];
      if (index < 0) return;
      const std::uint64_t mask = std::uint64_t{1} << (index % 64);
      std::uint64_t& word = set[static_cast<std::size_t>(index) / 64];
      word = on ? word | mask : word & ~mask;
    };
    for (std::uint32_t i = block.end; i-- > block.begin;) {
      each_result(drafts_[i], [&](std::int32_t reg) { bit(block.kill, reg, true), bit(block.in, reg, false); });
      each_use(drafts_[i], [&](std::int32_t reg) { bit(block.in, reg, true); });
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = blocks_.size(); b-- > 0;) {
      BasicBlock& block = blocks_[b];
      for (std::size_t w = 0; w < words; ++w) {
        std::uint64_t out = block.out[w];
        for (const std::uint32_t next : block.next) out |= blocks_[next].in[w];
        if (out == block.out[w]) continue;
        block.out[w] = out;
        block.in[w] |= out & ~block.kill[w];
        changed = true;
      }
    }
  }
}

void Assignment::find_intervals() {
  intervals_.assign(function_.registers.size(), {});
  for (const BasicBlock& block : blocks_) {
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      const auto include = [&](std::int32_t reg) { intervals_[static_cast<std::size_t>(reg)].include(i); };
      each_use(drafts_[i], include);
      each_result(drafts_[i], include);
    }
    for (std::size_t bit = 0; bit < registers_.size(); ++bit) {
      if ((block.in[bit / 64] >> (bit % 64) & 1) != 0) intervals_[registers_[bit]].include(block.begin);
      if ((block.out[bit / 64] >> (bit % 64) & 1) != 0) intervals_[registers_[bit]].include(block.end);
    }
  }
  if (blocks_.empty()) return;
  for (std::size_t bit = 0; bit < registers_.size(); ++bit) {  // Perhaps read before written: never share a slot.
    if ((blocks_[0].in[bit / 64] >> (bit % 64) & 1) != 0)
      intervals_[registers_[bit]] = {0, static_cast<std::uint32_t>(drafts_.size())};
  }
}

void Assignment::scan(Frame& frame) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t reg = 0; reg < intervals_.size(); ++reg) {
    if (intervals_[reg].used()) order.push_back(reg);
  }
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return intervals_[a].begin < intervals_[b].begin; });
  using Busy = std::pair<std::uint32_t, std::int32_t>;  // End of an interval, index of the slot.
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy[4];
  std::vector<std::int32_t> free[4];
  std::int32_t count[4] = {0, 1, 0, 0};  // The first slot of 32 bits is the return address.
  frame.slots.assign(intervals_.size(), -1);
  for (const std::uint32_t reg : order) {
    const auto w = static_cast<std::size_t>(function_.registers[reg]);
    while (!busy[w].empty() && busy[w].top().first < intervals_[reg].begin) {
      free[w].push_back(busy[w].top().second);
      busy[w].pop();
    }
    std::int32_t slot = count[w];
    if (free[w].empty()) {
      ++count[w];
    } else {
      slot = free[w].back();
      free[w].pop_back();
    }
    frame.slots[reg] = slot;
    busy[w].emplace(intervals_[reg].end, slot);
  }
  std::uint32_t base[4] = {};
  std::uint32_t bytes = 0;
  for (const std::size_t w : {3, 2, 1, 0}) {
    base[w] = bytes;
    bytes += static_cast<std::uint32_t>(count[w]) * kSlotBytes[w];
  }
  for (const std::uint32_t reg : order) {
    const auto w = static_cast<std::size_t>(function_.registers[reg]);
    frame.slots[reg] =
        static_cast<std::int32_t>(base[w] + static_cast<std::uint32_t>(frame.slots[reg]) * kSlotBytes[w]);
  }
  frame.return_address = static_cast<std::int32_t>(base[1]);
  frame.bytes = bytes;
  frame.registers = static_cast<std::uint32_t>(count[1] + 2 * count[2] + 4 * count[3]);
}

void Assignment::insert_checks(Frame& frame) {
  std::vector<std::int32_t> masks(function_.registers.size(), -1);  // Which threads wrote a register.
  std::vector<Draft> result;
  const auto add = [&](Kind kind, std::int32_t reg, const Draft& near) {
    Draft draft;
    draft.in.kind = kind;
    draft.in.r[1] = masks[static_cast<std::size_t>(reg)];
    draft.in.value = reg;
    draft.guard = kind == Kind::clear_written ? -1 : near.guard;
    draft.in.guard_negated = near.in.guard_negated;
    draft.statement = near.statement;
    result.push_back(draft);
  };
  if (blocks_.empty()) return;
  for (std::size_t bit = 0; bit < registers_.size(); ++bit) {
    if ((blocks_[0].in[bit / 64] >> (bit % 64) & 1) == 0) continue;
    masks[registers_[bit]] = static_cast<std::int32_t>(frame.bytes);
    frame.bytes += 4;
    add(Kind::clear_written, static_cast<std::int32_t>(registers_[bit]), drafts_[0]);
  }
  frame.bytes = (frame.bytes + 127) / 128 * 128;
  const auto tracked = [&](std::int32_t reg) { return reg >= 0 && masks[static_cast<std::size_t>(reg)] >= 0; };
  std::vector<std::uint32_t> moved(drafts_.size() + 1);
  for (std::size_t i = 0; i < drafts_.size(); ++i) {
    moved[i] = static_cast<std::uint32_t>(result.size());
    const Draft draft = drafts_[i];
    for (const DraftSlot& slot : draft.slots) {
      if (slot.use == DraftSlot::Use::source && tracked(slot.reg)) add(Kind::check_written, slot.reg, draft);
    }
    if (tracked(draft.guard)) {
      add(Kind::check_written, draft.guard, draft);
      result.back().guard = -1;
    }
    const bool marks_first = ends_block(draft);
    if (!marks_first) result.push_back(draft);
    each_result(draft, [&](std::int32_t reg) {
      if (tracked(reg)) add(Kind::mark_written, reg, draft);
    });
    if (marks_first) result.push_back(draft);
  }
  for (Draft& draft : result) {
    if (draft.in.kind == Kind::branch) draft.in.target = moved[draft.in.target];
  }
  drafts_ = std::move(result);
}

}  // namespace

Status assign_registers(const Function& function, std::vector<Draft>& drafts, Frame& frame) {
  return Assignment(function, drafts).run(frame);
}

}  // namespace tutti::ptx
