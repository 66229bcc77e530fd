// Windows of ranks on devices of the stand-in, and calls in them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/ptx/switch_calls.h"

namespace tutti::test {

inline constexpr std::size_t kWindowBytes = 1 << 20;
inline constexpr std::size_t kOutputAt = kWindowBytes / 2;  // For calls that are not in place.

// Memory of a rank, registered as a window from `begin` on.
class WindowMemory {
 public:
  explicit WindowMemory(const Member& member, std::size_t begin = 0, std::size_t bytes = kWindowBytes)
      : WindowMemory(member, member.own.backend(0), begin, bytes) {}
  // In another communicator of the same ranks.
  WindowMemory(const Member& member, DeviceBackend& backend, std::size_t begin = 0, std::size_t bytes = kWindowBytes)
      : own_(member.own),
        backend_(backend),
        bytes_(bytes),
        allocation_(own_.rig().device().allocate_shared(begin + bytes).value()) {
    memory_ = allocation_ + begin;
    window_ = backend_.register_window({memory_, bytes, WindowGuarantee::symmetric}).value();
  }
  ~WindowMemory() { own_.rig().device().free(allocation_); }
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  std::byte* at(std::size_t byte) const { return memory_ + byte; }
  std::size_t bytes() const { return bytes_; }
  std::string withdraw() {
    const Status status = backend_.deregister_window(window_);
    return status.ok() && window_ != 0 ? "right" : "no window: " + status.message();
  }
  void write(const std::vector<std::byte>& bytes, std::size_t byte) const {
    EXPECT_TRUE(own_.rig().device().upload(at(byte), bytes).ok());
  }
  std::vector<std::byte> read(std::size_t byte, std::size_t bytes) const {
    auto* copied = own_.take<std::byte>(bytes);
    EXPECT_TRUE(own_.rig().device().copy(copied, at(byte), bytes, own_.stream(0)).ok());
    own_.synchronize();
    return {copied, copied + bytes};
  }

 private:
  DeviceRanks& own_;
  DeviceBackend& backend_;
  const std::size_t bytes_;
  std::byte* const allocation_;
  std::byte* memory_ = nullptr;
  WindowHandle window_ = 0;
};

// Where the buffers of a call begin in the window.
struct Places {
  std::size_t input = 0, output = kOutputAt;
};

inline constexpr std::byte kOther{0xa5};  // Content of memory beside outputs.

// Runs a call in a window. Returns "right", or an error.
inline std::string run_in(const WindowMemory& window, const Member& member, const SwitchCall& shape,
                          const Places& places, const char* algorithm = "switch_mapped") {
  const CallData data(shape, member.rank, member.ranks);
  window.write(std::vector<std::byte>(window.bytes(), kOther), 0);
  window.write(data.input, places.input);
  member.meet.arrive_and_wait();
  Call call = call_of(shape.collective, shape.type, shape.count, window.at(places.input), window.at(places.output));
  call.reduction = shape.reduction;
  const Status status = run_as_requested(member.own, call, shape, algorithm);
  if (!status.ok()) return status.message();
  std::vector<std::byte> wanted(window.bytes(), kOther);
  std::copy(data.input.begin(), data.input.end(), wanted.begin() + static_cast<std::ptrdiff_t>(places.input));
  std::copy(data.output.begin(), data.output.end(), wanted.begin() + static_cast<std::ptrdiff_t>(places.output));
  const std::vector<std::byte> found = window.read(0, window.bytes());
  const auto differs = std::mismatch(found.begin(), found.end(), wanted.begin()).first - found.begin();
  if (differs != static_cast<std::ptrdiff_t>(window.bytes()))
    return std::string("wrong ") + name(shape.type) + " of " + name(shape.collective) + ", " +
           std::to_string(shape.count) + " from " + std::to_string(places.input) + " to " +
           std::to_string(places.output) + ": byte " + std::to_string(differs);
  const std::string ran = member.own[0].last_run().algorithm;
  return *algorithm == 0 || ran == algorithm ? "right" : "ran " + ran;
}

inline bool adds(DeviceRanks& own) { return own.backend(0).windows().all_multicast(); }

// Enqueues a sum in place at the begin of the window.
inline Status enqueue_sum(const Member& member, const WindowMemory& window) {
  DeviceCall call =
      member.own.call(0, call_of(Collective::all_reduce, DataType::float32, 1000, window.at(0), window.at(0)));
  call.options.algorithm = "switch_mapped";
  call.options.timeout_ms = 500'000;
  call.options.update_agreement_hash();
  return enqueue({&call, 1});
}

}  // namespace tutti::test
