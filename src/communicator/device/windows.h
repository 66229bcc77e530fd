// Windows: memory that all ranks of a communicator have registered, so that thread blocks of peers access it in place,
// also from other processes and devices. All ranks register and deregister windows in the same order, so window numbers
// agree. Finds the windows of a call's buffers, and detects ranks that disagree about them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/communicator/control/board.h"
#include "src/communicator/device/kernel_reports.h"
#include "src/communicator/peers/peer_set.h"
#include "src/executor/thread_block/call.h"

namespace tutti {

// Guarantee of the program. symmetric: each collective has its buffers in windows registered with this promise on all
// ranks or on none.
enum class WindowGuarantee : std::uint8_t { none, symmetric };

struct WindowBuffer {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  WindowGuarantee guarantee = WindowGuarantee::none;
};

// Identifies a window of this rank within the process; 0: none.
using WindowHandle = std::uint64_t;

// Numbers of the windows that contain a call's buffers; 0: none.
struct CallWindows {
  std::uint32_t input = 0, output = 0;
  bool both() const { return input != 0 && output != 0; }
};

// Where the inputs of all ranks of a call are, if they are alike: that of rank r is at offset + r * stride of the
// window. In place, those of an all-gather are the blocks of the output.
struct InputPlaces {
  std::uint32_t window = 0;
  std::uint64_t offset = 0, stride = 0;
};

// Not thread-safe.
class DeviceWindows {
 public:
  // Both arguments must outlive this object.
  DeviceWindows(Communicator& control, const PeerSet& peers) : control_(control), peers_(peers), windows_(1) {}

  // Allocates the device memory in which thread blocks of different ranks exchange addresses, for plans that access
  // peers' memory, with the tables of staging rings and windows. Called once, before the first window. The memory lives
  // as long as the rank's device memory.
  Result<const AddressExchange*> make_exchange(const KernelReports& reports);

  // Collective: registers `own` as this rank's buffer of a new window. Returns 0 on all ranks if any rank cannot share
  // its buffer, does not give the guarantee, or cannot access a peer's buffer. If switches access the staging rings,
  // and all buffers are at the same place of such allocations, they access the window, too.
  Result<WindowHandle> register_buffer(const WindowBuffer& own);
  bool contains(WindowHandle handle) const { return number_of(handle) != 0; }
  // Closes the peers' buffers of the window, which no later call of this rank may use. If each rank has its own
  // process, blocks until all ranks have done so; the memory may then be freed.
  Status deregister(WindowHandle handle);
  // Closes all windows. No call may follow.
  void release_all();
  // Returns the multicast objects of all windows, for an owner that keeps them while calls may use them.
  std::vector<std::unique_ptr<DeviceMulticast>> release_multicast();

  // True if switches add and multicast in all windows, so that it does not matter which windows other ranks use. The
  // same on all ranks.
  bool all_multicast() const { return count_ > 0 && multicast_count_ == count_; }

  // Returns why copy engines cannot read the inputs of peers in some window, at any time until the windows are closed:
  // also after a failure, when a peer may have freed its memory. "": they can. The same on all ranks.
  std::string_view against_copies() const;
  // Returns the places of the inputs of a call in windows, as those of this rank's buffers suggest.
  InputPlaces inputs_of(const Call& call) const;
  // Returns the address of a peer's input for copies, given that against_copies() is empty. Null unless the peer's part
  // of the window contains all bytes.
  const std::byte* input_of(Rank peer, const InputPlaces& places, std::uint64_t bytes) const;

  // Returns the windows of a call's buffers. Returns no windows for calls with a root, because other ranks do not know
  // which buffers the root passes.
  CallWindows windows_of(const Call& call) const;
  // Adds the call's windows to its record, for the peers and for error messages. With copy engines, also the places of
  // the inputs, which the signature includes.
  void add_to(CallRecord& record, const Call& call) const;
  // Fails if this rank passed buffers in windows and a peer did not, or the reverse: some ranks would use lanes while
  // others wait in windows. The rank that calls last detects it, unless others are many calls ahead; then the timeout
  // reports it. compare() compares with one peer.
  Status check(const CallRecord& ours) const;
  Status compare(const CallRecord& ours, Rank peer, const CallRecord& theirs) const;

 private:
  // How a rank answers about a new window: not opened, why its copy engines cannot read it, or that they can.
  enum class Answer : std::uint32_t { not_opened, no_file, shared_device, not_requested, not_mapped, copyable };
  struct WindowInfo;
  struct Window {
    WindowHandle handle = 0;  // 0: the number is free.
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::vector<std::byte*> opened;              // Buffers of other ranks that this rank has open.
    Answer answer = Answer::not_opened;          // The minimum of all ranks.
    std::vector<WindowPart> copied_from;         // By rank: parts for copies. Valid only if `answer` is copyable.
    std::unique_ptr<DeviceMulticast> multicast;  // Null: switches do not access the window.
  };
  // Stores in `file` the file by which other processes open the buffer, if it has one.
  WindowInfo info_of(const WindowBuffer& own, File& file) const;
  // Collective: sends `own` to the ranks of other processes, and receives their files.
  Status exchange_files(const std::vector<WindowInfo>& infos, const File& own, std::vector<File>& files);
  std::uint32_t number_of(WindowHandle handle) const;
  std::uint32_t free_number();  // 0: there is none.
  // Opens the buffers of all ranks and uploads their addresses.
  Status open(const std::vector<WindowInfo>& infos, const std::vector<File>& files, std::uint32_t number);
  // Maps the parts of ranks in this process once more. Sets the parts for copies, unless this rank's copy engines
  // cannot read them, or may read memory that a peer has freed. Returns the answer.
  Answer open_for_copies(const std::vector<WindowInfo>& infos, std::vector<WindowPart> parts, std::uint32_t number);
  void close(std::uint32_t number);
  // Collective: binds the buffers of all ranks to a multicast object, if that is possible.
  Status bind_multicast(const WindowBuffer& own, const std::vector<WindowInfo>& infos, std::uint32_t number);
  Status upload_multicast(std::byte* address, std::uint32_t number);
  Status await_all();
  // Returns the number of a window that contains the whole range; 0: there is none.
  std::uint32_t find(const std::byte* memory, std::size_t bytes) const;

  Communicator& control_;
  const PeerSet& peers_;
  WindowPart* parts_ = nullptr;      // In device memory: for each window number, one entry per rank.
  std::byte** multicast_ = nullptr;  // In device memory: for each window number, the multicast address or null.
  std::vector<Window> windows_;      // By number; number 0 is unused.
  std::uint32_t count_ = 0, multicast_count_ = 0;
};

}  // namespace tutti
