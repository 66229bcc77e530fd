#pragma once
// The Tutti backend of torch.distributed, on the C API of Tutti.
//   process_group.cc: creation, splitting, shrinking and end, and the start of calls
//   reconfigure.cc:   a new membership of a group
//   collectives.cc:   broadcast and reductions
//   exchanges.cc:     gathers, scatters and all-to-all
//   messages.cc:      send and recv
//   device_calls.h:   calls on CUDA tensors
//   barriers.cc:      barrier and monitored barrier

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "python/tutti/torch/native/cuda_in_python.h"
#include "python/tutti/torch/native/group_ending.h"
#include "python/tutti/torch/native/joining.h"
#include "python/tutti/torch/native/message_work.h"

namespace tutti_torch {

// The name of an operation in profiles. Profiles of a group in place of Gloo have Gloo's names.
struct Title {
  const char* of_tutti = nullptr;
  const char* of_gloo = nullptr;
};
#define TUTTI_TITLE(operation) \
  tutti_torch::Title { "tutti:" operation, "gloo:" operation }

// A send or receive in device memory.
struct DeviceMessage {
  at::Tensor tensor;
  int peer;
  bool sends;
};

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

class ProcessGroupTutti : public c10d::Backend {
 public:
  // Blocks until all ranks have joined, at most options->timeout. `store` carries the communicator's id. With
  // options->joins_later, the group has no communicator before reconfigure().
  ProcessGroupTutti(const StorePtr& store, int rank, int size, OptionsPtr options);
  // Waits for this rank's calls, unless shutdown() has done so.
  ~ProcessGroupTutti() override;

  const std::string getBackendName() const override { return "tutti"; }
  bool supportsSplitting() const override { return true; }
  // Whether a batch of messages is a coalesced section, which GPUs need: PyTorch otherwise starts its messages one by
  // one.
  bool supportsCoalescing() const override { return cuda_is_initialized(); }
  // Creates the communicator for CUDA tensors, which the first call on them otherwise does. All ranks call it.
  void eagerConnectSingleDevice(at::Device device) override;
  c10::intrusive_ptr<Backend::Options> getBackendOptions() { return options_; }
  void setTimeout(Milliseconds timeout) { options_->timeout = timeout; }
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {}
  // Opens a section. A section that an exception left open ends; its calls continue.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  void abort();
  void shutdown();

  // Error feedback of compressed sums; see tutti_residual_attach. Wait for earlier calls. tutti/torch/_residuals.py
  // checks the tensors.
  void attach_residual(const at::Tensor& buffer, const at::Tensor& residual);
  void detach_residual(const at::Tensor& buffer);

  c10::intrusive_ptr<Backend> split(const StorePtr& store, const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Backend::Options>& options);
  c10::intrusive_ptr<Backend> merge(const StorePtr& store, const c10::intrusive_ptr<Backend::Options>& options,
                                    const int& rank, const int& size);
  bool supportsShrinking() const { return true; }
  // After a failure this group is as before. Otherwise its later calls are refused.
  c10::intrusive_ptr<Backend> shrink(const std::vector<int64_t>& excluded, int flags,
                                     const c10::intrusive_ptr<Backend::Options>& options);

#ifdef C10D_BACKEND_HAS_RECONFIGURE
  bool supportsReconfigure() const override { return true; }
  // Returns the address of a store of this process, which exists from the first call until the end of the group.
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  // Replaces the members. Calls of the old group that are not complete fail. Blocks until all new ranks have joined;
  // after a failure the group has no communicator, and another reconfigure() may follow. Malformed handles leave the
  // group as before. No other thread uses the group.
  WorkPtr reconfigure(const c10d::ReconfigureOptions& given) override;
#endif

#if TUTTI_TORCH_VERSION >= 21500
  bool supportsCompletionHooks() const override { return true; }
  void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override { hooks_->completion.add(id, hook); }
  void unregisterCompletionHook(int64_t id) override { hooks_->completion.remove(id); }
  bool supportsAbortHooks() const override { return true; }
  void registerAbortHook(int64_t id, c10d::AbortHook hook) override { hooks_->abort.add(id, hook); }
  void unregisterAbortHook(int64_t id) override { hooks_->abort.remove(id); }
#endif

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;

  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_rows,
                        std::vector<int64_t>& input_rows, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;

  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  struct Call {
    c10d::OpType type;
    Title title;
    Milliseconds timeout;
    bool is_async;
    Tensors inputs;
    TensorLists outputs;
    bool writes = true;       // Whether this rank writes to its outputs.
    bool is_message = false;  // Whether it is a message or a batch of messages, which have no numbers.
  };
  template <typename CallOptions>
  static Call call_of(c10d::OpType type, const Title& title, const CallOptions& options) {
    return {type, title, options.timeout, options.asyncOp, {}, {}};
  }

  ProcessGroupTutti(int rank, int size, OptionsPtr options, Joined joined);
  // Makes later calls use `joined`.
  void use(Joined joined);
  // Returns the device of the call's tensors; the CPU if it has none. Throws if they are on several.
  static c10::Device device_of(const Call& call);
  WorkPtr start(Call call, CallWork::Body body);
  WorkPtr start_on(c10::Device device, Call call, const CallWork::Body& body);
  void join_on(c10::Device device);
  WorkPtr start_message(Call call, const at::Tensor& tensor, int peer, int tag);
  // Returns null in a coalesced section.
  WorkPtr start_device_message(Call call, const DeviceMessage& message);
  // Makes the messages of the open section that are in device memory, together.
  void make_messages_of_section();
  CallDescription describe(Call call);
  // Adds the work to the open coalesced section. Returns false if there is none.
  bool add_to_section(const WorkPtr& work);
  void release_completed();
  Milliseconds timeout_or_default(Milliseconds timeout) const;
  void check_root(const char* operation, int64_t root) const;

  OptionsPtr options_;
  StorePtr store_;  // See Joined.
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<CallQueue> queue_;
  std::shared_ptr<DeviceCalls> device_calls_;
  std::shared_ptr<CallbackThread> callbacks_;
  std::shared_ptr<Hooks> hooks_ = std::make_shared<Hooks>();
  std::shared_ptr<GroupEnding> ending_;
  std::atomic<uint64_t> sequence_{0};            // Number of collectives so far.
  std::atomic<uint64_t> monitored_barriers_{0};  // Number of the next one; on ranks but 0, of the first not joined.
  std::mutex coalescing_mutex_;
  std::atomic<bool> coalescing_{false};
  std::vector<WorkPtr> coalesced_;               // Calls of the open section.
  std::vector<DeviceMessage> section_messages_;  // Its messages in device memory, which have not been made.
  size_t coalesced_limit_ = 0;                   // Number of calls at which those that have succeeded are released.
  mutable std::mutex hosting_mutex_;
  mutable c10::intrusive_ptr<c10d::TCPStore> hosted_;  // See get_reconfigure_handle(). Guarded by hosting_mutex_.
};

}  // namespace tutti_torch
