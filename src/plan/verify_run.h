// The symbolic run: each rank executes its steps until it blocks. Lanes have one slot, and get one more only if no rank
// can proceed. The result does not depend on the schedule, so one schedule decides for all.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/loop.h"
#include "src/plan/verify_store.h"

namespace tutti {

class Run {
 public:
  Run(const CellProgram& program, const Loop& loop, const Span& span);

  Status execute();
  double rounded() const { return store_.rounded(); }
  std::uint32_t slots() const { return slots_; }  // Minimum slots per lane with which the run completes.

 private:
  // State of a rank. A segment is the pass of one chunk through one stage.
  struct Process {
    Moment now;
    std::uint32_t segment = 0;
    std::uint32_t end = 0;  // The step after the last one of the segment.
    bool inside = false;    // Whether the rank is within a segment.
    bool finished = false;  // Whether the rank has finished this operation.
    bool lacks_slot = false;
    std::uint32_t lacks_message = ~0u;  // The fifo whose message it awaits.
  };
  struct Message {
    std::uint32_t first = 0, count = 0;  // Range in pool_.
    std::uint32_t classes = 0;           // Index in CellProgram::cells of cells with the same lengths.
    std::uint32_t snapshot = 0;
    std::uint32_t next = 0;
  };
  // The messages in a fifo.
  struct Queue {
    std::uint32_t waiting = 0;  // Sent and not yet received.
    std::uint32_t first = 0, last = 0;
  };

  Status enter(Rank rank);
  Status finish(Process& process);
  Status advance(Process& process);
  bool begin_segment(Process& process);
  bool can_fire(Process& process, const Step& step, const Access* access);
  Status fire(const Moment& now, const Step& step, const Access* access);
  Status gather(const Moment& now, const Step& step, const Access* access);
  Status check_lengths(const Moment& now, const Message& message);
  Status combine(const Moment& now, const Step& step, bool first);
  void round(const Step& step);
  Status deliver(const Moment& now, std::span<const Operand> targets, const Access* access);
  Message pop(const Moment& now, std::uint32_t queue);
  void push(std::uint32_t queue, Message message);
  bool add_slot();
  Status blocked() const;

  const CellProgram& program_;
  const Loop loop_;
  const Span span_;
  Store store_;
  std::uint32_t slots_ = 1;
  std::vector<Process> processes_;  // By rank.
  std::vector<Queue> queues_;       // By fifo.
  std::vector<Rank> ready_;
  std::vector<Message> messages_ = std::vector<Message>(1);
  std::vector<Value> pool_;
  std::vector<Value> result_, operand_;  // Values of the step that runs.
  std::vector<Value> sent_;              // Values that the step sends, if messages are rounded.
  std::vector<Message> taken_;
  std::uint32_t classes_ = 0, cells_ = 0;
  bool has_classes_ = false;
};

}  // namespace tutti
