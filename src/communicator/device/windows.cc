#include "src/communicator/device/windows.h"

#include <algorithm>
#include <atomic>

#include "src/base/log.h"
#include "src/communicator/neighbours/gather.h"

namespace tutti {
namespace {

// Handles of several communicators are told apart.
WindowHandle next_handle() {
  static std::atomic<WindowHandle> last = 0;
  return ++last;
}

// No failure: calls go on without the window.
void tell(const Status& why) { log(LogLevel::info, "a buffer becomes no window: %s", why.message().c_str()); }

}  // namespace

// A rank's part of a window, as the others need to know it.
struct DeviceWindows::Card {
  std::uint64_t address = 0;  // For ranks of its process,
  DeviceShare share;          // and of others.
  std::uint64_t bytes = 0;
  std::uint32_t promises = 0;
  std::uint32_t shown = 0;  // 0: others cannot reach it.
};

DeviceWindows::Card DeviceWindows::card_of(const WindowBuffer& own) const {
  static_assert(sizeof(Card) == 96);
  Card card;
  card.address = reinterpret_cast<std::uint64_t>(own.memory);
  card.bytes = own.bytes;
  card.promises = own.promise == WindowPromise::symmetric ? 1 : 0;
  card.shown = 1;
  if (neighbours_.on_one_device()) return card;
  auto share = neighbours_.home().device().share_of(own.memory, own.bytes);
  card.shown = share.ok() ? 1 : 0;
  if (share.ok()) card.share = share.value();
  if (!share.ok()) tell(std::move(share).status());
  return card;
}

Result<WindowHandle> DeviceWindows::show(const WindowBuffer& own) {
  const auto all = TUTTI_TRY(gather<Card>({&control_}, {{card_of(own)}}));
  const std::vector<Card>& cards = all.front();
  // Whoever goes through host memory reaches no record of the other's, let alone its buffers.
  const bool possible = !neighbours_.through_host() && std::all_of(cards.begin(), cards.end(), [](const Card& card) {
    return card.promises != 0 && card.shown != 0;
  });
  const std::uint32_t number = free_number();
  if (!possible || number == 0) return WindowHandle{0};
  const Status opened = open(cards, number);
  if (!opened.ok()) tell(opened);
  auto answers = gather<std::uint32_t>({&control_}, {{opened.ok() ? 1U : 0U}});
  if (!answers.ok()) {
    close(number);
    return std::move(answers).status();
  }
  const std::vector<std::uint32_t>& everywhere = answers.value().front();
  if (std::find(everywhere.begin(), everywhere.end(), 0U) != everywhere.end()) {
    close(number);
    TUTTI_CHECK_OK(await_all());  // Nobody may free what another still has open.
    return WindowHandle{0};
  }
  Window& window = windows_[number];
  window.handle = next_handle();
  window.memory = own.memory;
  window.bytes = own.bytes;
  ++count_;
  return window.handle;
}

Status DeviceWindows::open(const std::vector<Card>& cards, std::uint32_t number) {
  Device& device = neighbours_.home().device();
  std::vector<WindowPart> parts;
  for (Rank rank = 0; rank < cards.size(); ++rank) {
    if (neighbours_.is_here(rank)) {
      parts.push_back({cards[rank].address, cards[rank].bytes});
      continue;
    }
    std::byte* memory = TUTTI_TRY(device.open(cards[rank].share.handle));
    windows_[number].opened.push_back(memory);
    parts.push_back({reinterpret_cast<std::uint64_t>(memory) + cards[rank].share.offset, cards[rank].bytes});
  }
  WindowPart* row = parts_ + std::size_t{number} * cards.size();
  return device.upload(reinterpret_cast<std::byte*>(row), std::as_bytes(std::span(parts)));
}

Status DeviceWindows::withdraw(WindowHandle handle) {
  const std::uint32_t number = number_of(handle);
  const std::vector<WindowPart> none(control_.ranks());
  auto* row = reinterpret_cast<std::byte*>(parts_ + std::size_t{number} * none.size());
  TUTTI_CHECK_OK(neighbours_.home().device().upload(row, std::as_bytes(std::span(none))));
  close(number);
  --count_;
  // Ranks of one process may be driven by one thread, which withdraws one after the other.
  if (!neighbours_.each_in_its_own_process()) return {};
  return await_all();
}

Status DeviceWindows::await_all() { return PeerSet::await_all({&control_}); }

void DeviceWindows::close(std::uint32_t number) {
  for (std::byte* memory : windows_[number].opened) neighbours_.home().device().close(memory);
  windows_[number] = {};
}

void DeviceWindows::let_go() {
  for (std::uint32_t number = 1; number < windows_.size(); ++number) close(number);
  count_ = 0;
}

std::uint32_t DeviceWindows::number_of(WindowHandle handle) const {
  for (std::uint32_t number = 1; number < windows_.size() && handle != 0; ++number) {
    if (windows_[number].handle == handle) return number;
  }
  return 0;
}

std::uint32_t DeviceWindows::free_number() {
  for (std::uint32_t number = 1; number < windows_.size(); ++number) {
    if (windows_[number].handle == 0) return number;
  }
  if (windows_.size() == kMostWindows) return 0;
  windows_.emplace_back();
  return static_cast<std::uint32_t>(windows_.size() - 1);
}

std::uint32_t DeviceWindows::find(const std::byte* memory, std::size_t bytes) const {
  for (std::uint32_t number = 1; number < windows_.size(); ++number) {
    const Window& window = windows_[number];
    const bool begins_in = window.handle != 0 && memory >= window.memory;
    if (begins_in && memory + bytes <= window.memory + window.bytes) return number;
  }
  return 0;
}

}  // namespace tutti
