#include "tests/ptx/machine/clocks.h"

#include <algorithm>

namespace tutti::ptx {
namespace {

std::uint32_t epochs_of(const View& view, std::uint32_t block) {
  const auto found =
      std::lower_bound(view.blocks.begin(), view.blocks.end(), block,
                       [](const KnownBlock& known, std::uint32_t wanted) { return known.block < wanted; });
  return found != view.blocks.end() && found->block == block ? found->epochs : 0;
}

bool newer(const KnownThread& a, const KnownThread& b) {
  return a.epoch > b.epoch || (a.epoch == b.epoch && a.clock > b.clock);
}

template <typename T, typename Key, typename Better>
std::vector<T> merge(const std::vector<T>& a, const std::vector<T>& b, Key key, Better better) {
  std::vector<T> result;
  result.reserve(a.size() + b.size());
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && key(a[i]) < key(b[j]))) {
      result.push_back(a[i++]);
    } else if (i == a.size() || key(b[j]) < key(a[i])) {
      result.push_back(b[j++]);
    } else {
      result.push_back(better(a[i], b[j]) ? a[i] : b[j]);
      ++i, ++j;
    }
  }
  return result;
}

std::uint32_t block_of(const KnownThread& known) { return static_cast<std::uint32_t>(known.key >> 16); }

bool contains(const View& a, const View& b) {
  if (b.ended > a.ended || b.floor > a.floor || b.blocks.size() > a.blocks.size() ||
      b.threads.size() > a.threads.size() || !ptx::contains(a.operations, b.operations))
    return false;
  for (const KnownBlock& each : b.blocks) {
    if (epochs_of(a, each.block) < each.epochs) return false;
  }
  for (const KnownThread& each : b.threads) {
    const auto found = std::lower_bound(a.threads.begin(), a.threads.end(), each.key,
                                        [](const KnownThread& known, std::uint64_t key) { return known.key < key; });
    if (found == a.threads.end() || found->key != each.key || newer(each, *found)) return false;
  }
  return true;
}

}  // namespace

std::uint32_t Clocks::add_block(const BlockRecord& record) {
  records_.push_back(record);
  return static_cast<std::uint32_t>(records_.size() - 1);
}

bool Clocks::knows(const Event& event, const View& view) const {
  if (is_known(event.block, view) || epochs_of(view, event.block) > event.epoch) return true;
  const std::uint64_t key = KnownThread::key_of(event.block, event.thread);
  const auto found =
      std::lower_bound(view.threads.begin(), view.threads.end(), key,
                       [](const KnownThread& known, std::uint64_t wanted) { return known.key < wanted; });
  if (found == view.threads.end() || found->key != key) return false;
  return found->epoch > event.epoch || (found->epoch == event.epoch && found->clock >= event.clock);
}

ViewRef Clocks::join(const ViewRef& a, const ViewRef& b) const {
  if (!b || a == b) return a;
  if (!a) return b;
  if (contains(*a, *b)) return a;
  if (contains(*b, *a)) return b;
  View view;
  view.ended = std::max(a->ended, b->ended);
  view.floor = std::max(a->floor, b->floor);
  view.operations = ptx::join(a->operations, b->operations);
  view.blocks = merge(
      a->blocks, b->blocks, [](const KnownBlock& each) { return each.block; },
      [](const KnownBlock& x, const KnownBlock& y) { return x.epochs > y.epochs; });
  std::erase_if(view.blocks, [&](const KnownBlock& each) { return is_known(each.block, view); });
  view.threads = merge(
      a->threads, b->threads, [](const KnownThread& each) { return each.key; }, newer);
  std::erase_if(view.threads, [&](const KnownThread& each) {
    return is_known(block_of(each), view) || epochs_of(view, block_of(each)) > each.epoch;
  });
  return ViewRef(std::move(view));
}

ViewRef Clocks::with_self(const ViewRef& view, const Event& now) const {
  View self;
  if (now.epoch > 0) self.blocks.push_back({now.block, now.epoch});
  self.threads.push_back({KnownThread::key_of(now.block, now.thread), now.epoch, now.clock});
  return join(view, ViewRef(std::move(self)));
}

bool Clocks::in_scope(std::uint32_t block, Scope scope, std::uint32_t other_block, Scope other_scope) const {
  return scope_of(block, other_block) <= std::min(scope, other_scope);
}

}  // namespace tutti::ptx
