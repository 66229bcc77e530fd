// What happens next: a heap of times. Whoever pushes says what goes first of what is at the same time, so that a run
// can be repeated, and does not depend on who else is simulated.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tutti {

struct Event {
  double time = 0;
  std::uint32_t order = 0;
  std::uint32_t subject = 0;

  bool operator<(const Event& other) const {
    if (time != other.time) return time < other.time;
    return order != other.order ? order < other.order : subject < other.subject;
  }
};
static_assert(sizeof(Event) == 16);

// Four children each: fewer levels, and they share a cache line.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_[0]; }

  void push(const Event& event) {
    std::size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0) {
      const std::size_t above = (at - 1) / 4;
      if (!(event < heap_[above])) break;
      heap_[at] = heap_[above];
      at = above;
    }
    heap_[at] = event;
  }

  Event pop() {
    const Event first = heap_[0];
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  void sink(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = 4 * at + 1;
      if (child >= size) break;
      std::size_t least = child;
      const std::size_t end = child + 4 < size ? child + 4 : size;
      for (std::size_t i = child + 1; i < end; ++i)
        if (heap_[i] < heap_[least]) least = i;
      if (!(heap_[least] < event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
};

}  // namespace tutti
