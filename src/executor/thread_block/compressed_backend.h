// A thread block's Backend for calls with compression. Messages use Simple, and never peers' memory.
#pragma once

#include "src/executor/thread_block/backend.h"
#include "src/executor/thread_block/compressed_fold.h"

namespace tutti {

template <typename ThreadBlock>
class CompressedBackend : public ThreadBlockBackend<ThreadBlock> {
 public:
  TUTTI_HOST_DEVICE CompressedBackend(ThreadBlock thread_block, const KernelMemory& memory, const Image& image,
                                      const KernelCall& call)
      : ThreadBlockBackend<ThreadBlock>(thread_block, memory, image, call),
        rounded_stores_(image.launch.rounded_stores),
        rounding_(reinterpret_cast<KernelRounding*>(memory.marks)),
        sources_(reinterpret_cast<CompressedOperand*>(memory.marks + sizeof(KernelRounding))),
        targets_(sources_ + image.widest + 1) {
    if (thread_block.thread() == 0) find_rounding(call.rounding, image.launch);
  }

  // The call is complete on this channel.
  TUTTI_HOST_DEVICE void end() {
    if (this->threads().index == 0 && rounding_->runs != nullptr) ++*rounding_->runs;
  }

  TUTTI_HOST_DEVICE static constexpr bool plain() { return false; }

  // No LL messages exist here; see DevicePlanChooser::protocol_of().
  TUTTI_HOST_DEVICE static Progress receive_ll_message(const LaneState&, Signature, std::uint64_t, const MessagePart&,
                                                       std::byte*&, Blocked&) {
    return Progress::mismatch;
  }
  TUTTI_HOST_DEVICE static void send_ll_message(const LaneState&, Signature, const std::byte*, std::uint64_t,
                                                const MessagePart&) {}

  // Operand in a lane.
  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer) {
    ThreadBlockBackend<ThreadBlock>::source(index, pointer);
    sources_[index] = CompressedOperand::message;
  }
  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    ThreadBlockBackend<ThreadBlock>::source(index, pointer, operand);
    sources_[index] = kind_of(operand);
  }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer) {
    ThreadBlockBackend<ThreadBlock>::target(index, pointer);
    targets_[index] = CompressedOperand::message;
  }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    ThreadBlockBackend<ThreadBlock>::target(index, pointer);
    targets_[index] = kind_of(operand);
  }

  // Compressed steps have one fold.
  TUTTI_HOST_DEVICE void fold(std::uint32_t sources, std::uint32_t targets, std::uint64_t count, Fold kind,
                              std::uint32_t = 1) {
    const FoldOperands operands = this->operands(sources, targets, count, kind);
    const CompressedMarks marks = {sources_, targets_};
    if (rounding_->is_requested())
      return compressed_thread_block_fold(this->task(), rounded_stores_, operands, marks, this->threads(), *rounding_);
    compressed_thread_block_fold(this->task(), rounded_stores_, operands, marks, this->threads());
  }

 private:
  // Other threads see the result after the agreement on the first step.
  TUTTI_HOST_DEVICE void find_rounding(const KernelRounding* requested, const Launch& launch) {
    *rounding_ = requested == nullptr ? KernelRounding{} : *requested;
    rounding_->begins[0] = launch.self.input;
    rounding_->begins[1] = launch.self.output;
    rounding_->begins[2] = launch.self.scratch;
    if (rounding_->runs == nullptr) return;
    rounding_->runs += launch.channel;
    rounding_->key = key_of_run(rounding_->key, *rounding_->runs);
  }

  TUTTI_HOST_DEVICE static CompressedOperand kind_of(const Operand& operand) {
    if (!operand.is_memory()) return CompressedOperand::message;
    if (operand.space == Space::input) return CompressedOperand::own_input;
    return operand.space == Space::output ? CompressedOperand::output : CompressedOperand::scratch;
  }

  RoundedStores rounded_stores_;
  KernelRounding* rounding_;    // Shared by the thread block.
  CompressedOperand* sources_;  // Operands of the next fold.
  CompressedOperand* targets_;
};

}  // namespace tutti
