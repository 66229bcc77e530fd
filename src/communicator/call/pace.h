// How a thread that waits for peers divides its time between spinning and sleeping. Each thread has one Pace, which all
// communicators that it drives share.
#pragma once

#include <cstdint>

namespace tutti {

struct Pace {
  bool in_stream = false;           // The thread runs calls of a stream, while other threads compute.
  std::uint32_t communicators = 1;  // Number of communicators that the thread drives at the same time.
  std::int64_t idle_since_ns = 0;   // Time since which no call of the thread has made progress. 0: not yet known.

  // Returns whether threads that do not wait, such as those of other programs, are assumed to use this thread's CPU.
  bool cpu_is_contended() const { return contended_; }
  // Starts the assumption for a limited time, which doubles if the previous one has just ended.
  void note_contention(std::int64_t now_ns);
  // Ends the assumption if its time is over.
  void end_contention(std::int64_t now_ns) {
    if (now_ns >= contended_until_ns_) contended_ = false;
  }
  // Returns whether other threads of the process are assumed to compute on this thread's CPU. They may be ranks.
  bool others_compute(std::int64_t now_ns) const { return now_ns < others_until_ns_; }
  // Starts the assumption for 100 ms if the thread was often preempted since the last call while other threads of the
  // process used much of a CPU. Takes three system calls.
  void look_for_others(std::int64_t now_ns);

 private:
  bool contended_ = false;
  std::int64_t contended_until_ns_ = 0;
  std::int64_t contended_ns_ = 0;  // Duration of the last assumption.
  std::int64_t others_until_ns_ = 0;
  struct Usage {
    std::int64_t at_ns = 0;
    std::int64_t preemptions = 0;  // Number of involuntary context switches of the thread.
    std::int64_t others_ns = 0;    // CPU time of all other threads of the process.
  } last_;
};

extern thread_local constinit Pace thread_pace;

}  // namespace tutti
