// Priority queue of events, ordered by time. Simultaneous events are ordered by Event::order, which the caller sets,
// then by subject, so that runs are repeatable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::simulator {

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

// A sorted ring buffer with the next events, followed by a heap with four children per node. The buffer shows the next
// events, so that the caller can prefetch their data. Four children need fewer levels than two, and share a cache line.
class EventQueue {
 public:
  static constexpr std::size_t kAhead = 16;  // Minimum events in the buffer after pop(), unless the queue has fewer.

  bool empty() const { return size_ == 0 && heap_.empty(); }
  // Returns the event `distance` after the next one, or null if it is not in the buffer.
  const Event* ahead(std::size_t distance) const { return distance < size_ ? &at(distance) : nullptr; }

  void push(const Event& event) {
    if (size_ == 0 || !(event < at(size_ - 1))) return push_to_heap(event);
    if (size_ == kRow) push_to_heap(at(--size_));
    std::size_t index = size_++;
    for (; index > 0 && event < at(index - 1); --index) at(index) = at(index - 1);
    at(index) = event;
  }

  Event pop() {
    if (size_ == 0) at(size_++) = pop_from_heap();
    const Event next = at(0);
    ++first_;
    --size_;
    while (size_ < kAhead && !heap_.empty()) at(size_++) = pop_from_heap();
    return next;
  }

 private:
  static constexpr std::size_t kRow = 32;  // A power of two.

  Event& at(std::size_t index) { return row_[(first_ + index) % kRow]; }
  const Event& at(std::size_t index) const { return row_[(first_ + index) % kRow]; }

  void push_to_heap(const Event& event) {
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

  Event pop_from_heap() {
    const Event first = heap_[0];
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

  void sink(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = 4 * at + 1;
      if (child >= size) break;
      std::size_t min = child;
      const std::size_t end = child + 4 < size ? child + 4 : size;
      for (std::size_t i = child + 1; i < end; ++i)
        if (heap_[i] < heap_[min]) min = i;
      if (!(heap_[min] < event)) break;
      heap_[at] = heap_[min];
      at = min;
    }
    heap_[at] = event;
  }

  std::array<Event, kRow> row_{};  // Ring buffer. No event of the heap is earlier than one of these.
  std::size_t first_ = 0, size_ = 0;
  std::vector<Event> heap_;
};

}  // namespace tutti::simulator
