#include <ATen/core/LegacyTypeDispatch.h>

#include "python/tutti/torch/native/message_work.h"
#include "python/tutti/torch/native/process_group.h"

namespace tutti_torch {
namespace {

constexpr int kAnyRank = TUTTI_ANY_RANK;

void check_peer(const char* operation, int peer, int ranks) {
  TORCH_CHECK(peer >= 0 && peer < ranks, operation, ": rank ", peer, " is out of range; ranks are 0..", ranks - 1);
}

}  // namespace

WorkPtr ProcessGroupTutti::start_message(Call call, const at::Tensor& tensor, int peer, int tag) {
  TORCH_CHECK(tag >= 0, call.title.of_tutti, ": tag ", tag, " is negative; tags are 0 and above");
  const CallDescription description = describe(std::move(call));
  const bool sends = description.type == c10d::OpType::SEND;
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
  // sourceRank() of the Work is the rank of the sender.
  return start_message(
      {c10d::OpType::RECVANYSOURCE, TUTTI_TITLE("recvAnySource"), c10d::kUnsetTimeout, true, tensors, {tensors}},
      tensor, kAnyRank, tag);
}

}  // namespace tutti_torch
