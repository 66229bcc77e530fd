#include <ATen/core/LegacyTypeDispatch.h>

#include "python/tutti/torch/native/message_work.h"
#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

constexpr int kAnyRank = TUTTI_ANY_RANK;

void check_peer(const char* operation, int peer, int ranks) {
  TUTTI_CHECK_ARGUMENT(peer >= 0 && peer < ranks, operation, ": rank ", peer, " is out of range; ranks are 0..",
                       ranks - 1);
}

// Runs messages of a GPU together. Their tags are not sent: messages between two ranks match in order.
void make_messages(const std::vector<DeviceMessage>& messages, const CallContext& context) {
  std::vector<Dense> buffers;
  for (const DeviceMessage& message : messages) {
    buffers.push_back(message.sends ? Dense::for_reading(message.tensor) : Dense::for_writing(message.tensor));
  }
  CallGroup group;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Elements elements = elements_of(messages[i].tensor.scalar_type());
    const size_t count = buffers[i].count() * elements.per_element;
    check(messages[i].sends
              ? tutti_send(buffers[i].data(), count, elements.type, messages[i].peer, context.comm, context.stream)
              : tutti_recv(buffers[i].data(), count, elements.type, messages[i].peer, context.comm, context.stream));
  }
  group.end();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].sends) buffers[i].finish();
  }
}

}  // namespace

WorkPtr ProcessGroupTutti::start_message(Call call, const at::Tensor& tensor, int peer, int tag) {
  TUTTI_CHECK_ARGUMENT(tag >= 0, call.title.of_tutti, ": tag ", tag, " is negative; tags are 0 and above");
  const bool sends = call.type == c10d::OpType::SEND;
  call.is_message = true;
  if (!tensor.device().is_cpu()) return start_device_message(std::move(call), {tensor, peer, sends});
  const CallDescription description = describe(std::move(call));
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  auto message = std::make_shared<Message>(sends ? Dense::for_reading(tensor) : Dense::for_writing(tensor));
  message->communicator = communicator_;
  const Elements elements = elements_of(tensor.scalar_type());
  const size_t count = message->buffer.count() * elements.per_element;
  tutti_comm comm = communicator_->default_handle();
  const auto number = static_cast<uint64_t>(tag);
  check(sends ? tutti_isend(message->buffer.data(), count, elements.type, peer, number, comm, &message->request)
              : tutti_irecv(message->buffer.data(), count, elements.type, peer, number, comm, &message->request),
        rank_);
  auto work = c10::make_intrusive<MessageWork>(description, MessageWork::Owner{callbacks_, hooks_}, std::move(message));
  if (hooks_->watch_completion()) MessageWork::watch(work);
  add_to_section(work);
  return work;
}

WorkPtr ProcessGroupTutti::start_device_message(Call call, const DeviceMessage& message) {
  {
    const std::lock_guard<std::mutex> lock(coalescing_mutex_);
    if (coalescing_) {
      section_messages_.push_back(message);
      return nullptr;
    }
  }
  return start(std::move(call), [message](const CallContext& context) { make_messages({message}, context); });
}

void ProcessGroupTutti::make_messages_of_section() {
  std::vector<DeviceMessage> messages;
  {
    const std::lock_guard<std::mutex> lock(coalescing_mutex_);
    messages.swap(section_messages_);
  }
  if (messages.empty()) return;
  Call call{c10d::OpType::COALESCED, TUTTI_TITLE("batch_isend_irecv"), c10d::kUnsetTimeout, true, {}, {{}}};
  call.is_message = true;
  for (const DeviceMessage& message : messages) {
    (message.sends ? call.inputs : call.outputs[0]).push_back(message.tensor);
  }
  start(std::move(call), [messages](const CallContext& context) { make_messages(messages, context); });
}

WorkPtr ProcessGroupTutti::send(Tensors& tensors, int peer, int tag) {
  const at::Tensor& tensor = only_tensor("send", tensors);
  check_peer("send", peer, size_);
  return start_message({c10d::OpType::SEND, TUTTI_TITLE("send"), c10d::kUnsetTimeout, true, tensors, {}}, tensor, peer,
                       tag);
}

WorkPtr ProcessGroupTutti::recv(Tensors& tensors, int peer, int tag) {
  const at::Tensor& tensor = only_tensor("recv", tensors);
  check_peer("recv", peer, size_);
  return start_message({c10d::OpType::RECV, TUTTI_TITLE("recv"), c10d::kUnsetTimeout, true, tensors, {tensors}}, tensor,
                       peer, tag);
}

WorkPtr ProcessGroupTutti::recvAnysource(Tensors& tensors, int tag) {
  const at::Tensor& tensor = only_tensor("recv_anysource", tensors);
  TUTTI_CHECK_ARGUMENT(tensor.device().is_cpu(), "recv_anysource: the tensor is on ", tensor.device().str(),
                       "; pass the rank of the sender, or a CPU tensor");
  // sourceRank() of the Work is the rank of the sender.
  return start_message(
      {c10d::OpType::RECVANYSOURCE, TUTTI_TITLE("recvAnySource"), c10d::kUnsetTimeout, true, tensors, {tensors}},
      tensor, kAnyRank, tag);
}

}  // namespace tutti_torch
