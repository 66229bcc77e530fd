#include "src/communicator/device/windows.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <span>

#include "src/base/log.h"
#include "src/base/pages.h"
#include "src/communicator/peers/gather.h"
#include "src/communicator/peers/multicast.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Unique across communicators.
WindowHandle next_handle() {
  static std::atomic<WindowHandle> last = 0;
  return ++last;
}

// Not a failure: calls run without the window.
void log_not_shared(const Status& why) {
  log(LogLevel::info, "a buffer cannot become a window: %s", why.message().c_str());
}

}  // namespace

// Window 0 is all memory if all ranks are on one device; the other windows are empty.
Result<const AddressExchange*> DeviceWindows::make_exchange(const KernelReports& reports) {
  static_assert(AccessWords::kCount == kMaxChannels);
  RankDeviceMemory& own = peers_.own_memory();
  const Rank ranks = peers_.ranks();
  std::vector<AddressRecord*> records;
  std::vector<std::byte*> rings(ranks + 1);
  rings[ranks] = peers_.multicast_ring();
  for (Rank rank = 0; rank < ranks; ++rank) {
    records.push_back(TUTTI_TRY(peers_.records(rank)));
    if (peers_.ring().channels > 0) rings[rank] = TUTTI_TRY(peers_.ring(rank));
  }
  const std::size_t records_at = round_up(sizeof(AddressExchange), 16);
  const std::size_t counts_at = records_at + round_up(records.size() * sizeof(AddressRecord*), 16);
  const std::size_t rings_at = counts_at + kMaxChannels * sizeof(std::uint64_t);
  const std::size_t multicast_at = rings_at + round_up(rings.size() * sizeof(std::byte*), 16);
  const std::size_t windows_at = multicast_at + kMaxWindows * sizeof(std::byte*);
  std::byte* memory = TUTTI_TRY(own.allocate(windows_at + std::size_t{kMaxWindows} * ranks * sizeof(WindowPart)));
  parts_ = reinterpret_cast<WindowPart*>(memory + windows_at);
  multicast_ = reinterpret_cast<std::byte**>(memory + multicast_at);
  const AddressExchange exchange = {.records = reinterpret_cast<AddressRecord* const*>(memory + records_at),
                                    .counts = reinterpret_cast<std::uint64_t*>(memory + counts_at),
                                    .windows = parts_,
                                    .remote_accesses = reports.remote_accesses_on_device(),
                                    .failed = reports.failed_on_device(),
                                    .scratch = reinterpret_cast<std::byte* const*>(memory + rings_at),
                                    .multicast = multicast_};
  TUTTI_CHECK_OK(own.device().upload(memory, std::as_bytes(std::span(&exchange, 1))));
  TUTTI_CHECK_OK(own.device().upload(memory + records_at, std::as_bytes(std::span(records))));
  TUTTI_CHECK_OK(own.device().upload(memory + rings_at, std::as_bytes(std::span(rings))));
  const std::vector<WindowPart> addresses(peers_.on_one_device() ? ranks : 0, kWholeMemory);
  TUTTI_CHECK_OK(own.device().upload(memory + windows_at, std::as_bytes(std::span(addresses))));
  return reinterpret_cast<const AddressExchange*>(memory);
}

// A rank's buffer of a window, as published to the other ranks.
struct DeviceWindows::WindowInfo {
  std::uint64_t address = 0;  // For ranks of the same process.
  DeviceShare share;          // For ranks of other processes.
  std::uint64_t bytes = 0;
  std::uint32_t guaranteed = 0;
  std::uint32_t shared = 0;    // 1: other ranks can access it.
  std::int32_t own_file = -1;  // Descriptor of the share's file, for ranks of the same process; open until all answer.
  std::uint32_t reserved = 0;
};

// Other devices can access memory that has a file or a handle, also those of this process.
DeviceWindows::WindowInfo DeviceWindows::info_of(const WindowBuffer& own, File& file) const {
  static_assert(sizeof(WindowInfo) == 120);
  WindowInfo info;
  info.address = reinterpret_cast<std::uint64_t>(own.memory);
  info.bytes = own.bytes;
  info.guaranteed = own.guarantee == WindowGuarantee::symmetric ? 1 : 0;
  info.shared = 1;
  if (peers_.on_one_device()) return info;
  auto share = peers_.own_memory().device().share_of(own.memory, own.bytes, file);
  info.shared = share.ok() ? 1 : 0;
  if (share.ok()) info.share = share.value();
  if (file) info.own_file = file.get();
  if (!share.ok()) log_not_shared(std::move(share).status());
  return info;
}

// Takes the files of all peers also after a failure: the next registration would take one that is left.
Status DeviceWindows::exchange_files(const std::vector<WindowInfo>& infos, const File& own, std::vector<File>& files) {
  files.resize(infos.size());
  Status status;
  const auto note = [&](Status added) {
    if (status.ok()) status = std::move(added);
  };
  for (Rank peer = 0; own && peer < infos.size(); ++peer) {
    if (!peers_.is_here(peer)) note(control_.pass(peer, own.get()));
  }
  for (Rank peer = 0; peer < infos.size(); ++peer) {
    if (peers_.is_here(peer) || !infos[peer].share.by_file()) continue;
    Result<File> taken = control_.take_passed(peer);
    if (taken.ok()) files[peer] = std::move(taken).value();
    else note(std::move(taken).status());
  }
  return status;
}

Result<WindowHandle> DeviceWindows::register_buffer(const WindowBuffer& own) {
  File file;
  const auto all = TUTTI_TRY(gather<WindowInfo>({&control_}, {{info_of(own, file)}}));
  const std::vector<WindowInfo>& infos = all.front();
  // A rank that communicates through host memory cannot access the other's records or buffers. Ranks of other hosts in
  // an NVLink domain could, but a failed rank could not await that they end their accesses.
  const bool possible = !peers_.through_host() && !peers_.spans_hosts() &&
                        std::all_of(infos.begin(), infos.end(),
                                    [](const WindowInfo& info) { return info.guaranteed != 0 && info.shared != 0; });
  const std::uint32_t number = free_number();
  if (!possible || number == 0) return WindowHandle{0};
  std::vector<File> files;
  Status opened = exchange_files(infos, file, files);
  if (opened.ok()) opened = open(infos, files, number);
  if (!opened.ok()) log_not_shared(opened);
  Window& window = windows_[number];
  auto answers = gather<Answer>({&control_}, {{opened.ok() ? window.answer : Answer::not_opened}});
  if (!answers.ok()) {
    close(number);
    return std::move(answers).status();
  }
  const std::vector<Answer>& everywhere = answers.value().front();
  window.answer = *std::min_element(everywhere.begin(), everywhere.end());
  if (window.answer == Answer::not_opened) {
    close(number);
    TUTTI_CHECK_OK(await_all());  // Memory must not be freed while a peer has it open.
    return WindowHandle{0};
  }
  Status bound = bind_multicast(own, infos, number);
  if (!bound.ok()) {
    close(number);
    return bound;
  }
  window.handle = next_handle();
  window.memory = own.memory;
  window.bytes = own.bytes;
  ++count_;
  multicast_count_ += window.multicast != nullptr ? 1 : 0;
  return window.handle;
}

Status DeviceWindows::open(const std::vector<WindowInfo>& infos, const std::vector<File>& files, std::uint32_t number) {
  Device& device = peers_.own_memory().device();
  std::vector<WindowPart> parts;
  for (Rank rank = 0; rank < infos.size(); ++rank) {
    if (peers_.is_here(rank)) {
      parts.push_back({infos[rank].address, infos[rank].bytes});
      continue;
    }
    std::byte* memory = TUTTI_TRY(device.open(infos[rank].share, files[rank]));
    windows_[number].opened.push_back(memory);
    parts.push_back({reinterpret_cast<std::uint64_t>(memory) + infos[rank].share.offset, infos[rank].bytes});
  }
  WindowPart* row = parts_ + std::size_t{number} * infos.size();
  TUTTI_CHECK_OK(device.upload(reinterpret_cast<std::byte*>(row), std::as_bytes(std::span(parts))));
  windows_[number].answer = open_for_copies(infos, std::move(parts), number);
  return {};
}

// A mapping from a file keeps the memory, so pending copies do not access freed memory after a failure. Ranks that
// share a process map each other's memory only if the communicator requests copy engines: granting access may wait for
// kernels of the device.
DeviceWindows::Answer DeviceWindows::open_for_copies(const std::vector<WindowInfo>& infos,
                                                     std::vector<WindowPart> parts, std::uint32_t number) {
  if (peers_.shares_device() || peers_.time_sliced()) return Answer::shared_device;
  Device& device = peers_.own_memory().device();
  for (Rank peer = 0; peer < infos.size(); ++peer) {
    const DeviceShare& share = infos[peer].share;
    if (!share.by_file()) return Answer::no_file;
    if (peer == control_.rank() || !peers_.is_here(peer)) continue;
    if (control_.options().algorithm != kCopyEngines) return Answer::not_requested;
    const auto memory = device.open(share, File(::fcntl(infos[peer].own_file, F_DUPFD_CLOEXEC, 0)));
    if (!memory.ok()) return Answer::not_mapped;
    windows_[number].opened.push_back(memory.value());
    parts[peer].base = reinterpret_cast<std::uint64_t>(memory.value()) + share.offset;
  }
  windows_[number].copied_from = std::move(parts);
  return Answer::copyable;
}

std::string_view DeviceWindows::against_copies() const {
  Answer min_answer = Answer::copyable;
  for (const Window& window : windows_)
    if (window.handle != 0) min_answer = std::min(min_answer, window.answer);
  switch (min_answer) {
    case Answer::no_file:
      return "some window is not in memory of tutti_mem_alloc_cuda or ncclMemAlloc that files share";
    case Answer::shared_device: return "some ranks share a GPU";
    case Answer::not_requested:
      return "ranks share a process: request them in the options of the communicator, not of calls";
    case Answer::not_mapped: return "some rank could not map a window of a rank of its process";
    case Answer::not_opened:  // Not in a window with a handle.
    case Answer::copyable: break;
  }
  return "";
}

// All ranks bind the whole allocation, so that a place in the window has the same offset on all.
Status DeviceWindows::bind_multicast(const WindowBuffer& own, const std::vector<WindowInfo>& infos,
                                     std::uint32_t number) {
  if (peers_.multicast_ring() == nullptr || peers_.network()) return {};
  const DeviceShare& first = infos.front().share;
  const bool alike = std::all_of(infos.begin(), infos.end(), [&](const WindowInfo& info) {
    return info.share.by_file() && info.share.allocated_bytes == first.allocated_bytes &&
           info.share.offset == first.offset;
  });
  if (!alike) {
    if (control_.rank() == 0)
      log(LogLevel::info,
          "sums in a window do not use the switches between the GPUs: its memory is not at the same "
          "place of equal allocations of tutti_mem_alloc_cuda on all ranks");
    return {};
  }
  Device& device = peers_.own_memory().device();
  std::vector<BoundMulticast> bound =
      TUTTI_TRY(bind_to_multicast({{&control_, &device, own.memory, &peers_.hosts()}}, "sums in a window"));
  if (bound.front().object == nullptr) return {};
  windows_[number].multicast = std::move(bound.front().object);
  return upload_multicast(bound.front().address, number);
}

Status DeviceWindows::upload_multicast(std::byte* address, std::uint32_t number) {
  auto* entry = reinterpret_cast<std::byte*>(multicast_ + number);
  return peers_.own_memory().device().upload(entry, std::as_bytes(std::span(&address, 1)));
}

Status DeviceWindows::deregister(WindowHandle handle) {
  const std::uint32_t number = number_of(handle);
  const std::vector<WindowPart> none(control_.ranks());
  auto* row = reinterpret_cast<std::byte*>(parts_ + std::size_t{number} * none.size());
  TUTTI_CHECK_OK(peers_.own_memory().device().upload(row, std::as_bytes(std::span(none))));
  if (windows_[number].multicast != nullptr) {
    TUTTI_CHECK_OK(upload_multicast(nullptr, number));
    --multicast_count_;
  }
  close(number);
  --count_;
  // Ranks of one process may be driven by one thread, which deregisters them one after the other.
  if (!peers_.each_in_its_own_process()) return {};
  return await_all();
}

Status DeviceWindows::await_all() { return PeerSet::await_all({&control_}); }

void DeviceWindows::close(std::uint32_t number) {
  Window& window = windows_[number];
  for (std::byte* memory : window.opened) peers_.own_memory().device().close(memory);
  if (window.multicast != nullptr) destroy_when_idle(std::move(window.multicast));
  window = {};
}

void DeviceWindows::release_all() {
  for (std::uint32_t number = 1; number < windows_.size(); ++number) close(number);
  count_ = multicast_count_ = 0;
}

std::vector<std::unique_ptr<DeviceMulticast>> DeviceWindows::release_multicast() {
  std::vector<std::unique_ptr<DeviceMulticast>> objects;
  for (Window& window : windows_) {
    if (window.multicast != nullptr) objects.push_back(std::move(window.multicast));
  }
  return objects;
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
  if (windows_.size() == kMaxWindows) return 0;
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

CallWindows DeviceWindows::windows_of(const Call& call) const {
  if (count_ == 0 || peers_.on_one_device() || call.kind != Kind::collective) return {};
  if (has_root(call.collective) || call.count == 0) return {};
  const Problem problem = problem_of(call, control_.ranks());
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  return {find(call.input, input_blocks(problem, control_.rank()) * block_bytes),
          find(call.output, output_blocks(problem, control_.rank()) * block_bytes)};
}

void DeviceWindows::add_to(CallRecord& record, const Call& call) const {
  const CallWindows windows = windows_of(call);
  record.input.region = record.output.region = kHiddenBuffer;
  if (!windows.both()) return;
  record.input.region = windows.input;
  record.output.region = windows.output;
  if (record.by_copy_engines == 0) return;
  const InputPlaces places = inputs_of(call);
  record.input = {places.window, places.offset};
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  record.signature = mix(((record.signature + places.window) * kOdd + places.offset) * kOdd + places.stride);
}

// All blocks of an output lie in one window, which may not be the first one that contains the input.
InputPlaces DeviceWindows::inputs_of(const Call& call) const {
  const CallWindows windows = windows_of(call);
  const bool in_place = call.output - call.input == in_place_distance(call, control_.ranks(), control_.rank());
  if (!in_place) return {windows.input, static_cast<std::uint64_t>(call.input - windows_[windows.input].memory)};
  const std::uint64_t stride = call.collective == Collective::all_gather ? call.count * size_of(call.type) : 0;
  return {windows.output, static_cast<std::uint64_t>(call.output - windows_[windows.output].memory), stride};
}

const std::byte* DeviceWindows::input_of(Rank peer, const InputPlaces& places, std::uint64_t bytes) const {
  const WindowPart& part = windows_[places.window].copied_from[peer];
  const std::uint64_t begin = places.offset + peer * places.stride;
  if (begin > part.bytes || bytes > part.bytes - begin) return nullptr;
  return reinterpret_cast<const std::byte*>(part.base + begin);
}

Status DeviceWindows::check(const CallRecord& ours) const {
  if (count_ == 0) return {};
  for (Rank peer = 0; peer < control_.ranks(); ++peer) {
    const auto theirs = control_.board().call(peer, ours.sequence);
    if (theirs && theirs->signature == ours.signature) TUTTI_CHECK_OK(compare(ours, peer, *theirs));
  }
  return {};
}

Status DeviceWindows::compare(const CallRecord& ours, Rank peer, const CallRecord& theirs) const {
  const bool own_in_windows = ours.input.region != kHiddenBuffer;
  if (own_in_windows == (theirs.input.region != kHiddenBuffer)) return {};
  const Rank outside = own_in_windows ? peer : control_.rank();
  const Rank inside = own_in_windows ? control_.rank() : peer;
  const std::string& name = control_.options().name;
  const std::string on = name.empty() ? "" : " on " + name;
  return invalid_usage(
      "in " + describe(ours) + " #" + std::to_string(ours.sequence) + on + " rank " + std::to_string(outside) +
      " passed buffers outside of symmetric windows, and rank " + std::to_string(inside) +
      " in them: pass them alike on all ranks, or register the windows without TUTTI_WINDOW_SYMMETRIC");
}

}  // namespace tutti
