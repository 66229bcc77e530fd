// Order of operations of devices, such as launches and copies, by vector clocks. Operations of a chain happen one after
// the other. The CUDA runtime's rules determine chains and clocks; the machine only compares them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::ptx {

// The first clock[c] operations of each chain c. Null: none.
using OperationClock = std::shared_ptr<const std::vector<std::uint32_t>>;

bool contains(const OperationClock& clock, const OperationClock& other);
bool contains(const OperationClock& clock, std::uint32_t chain, std::uint32_t number);
OperationClock join(const OperationClock& a, const OperationClock& b);

struct OperationOrder {
  OperationClock before;     // Operations that happen before this one.
  std::uint32_t chain = 0;   // This operation's chain.
  std::uint32_t number = 0;  // Position in the chain, from 1.
};

// `order.before`, and the operation itself.
OperationClock clock_after(const OperationOrder& order);

// Operations whose end the host knows. Thread-safe.
class HostClock {
 public:
  void add(const OperationClock& clock);
  OperationClock get() const;

 private:
  mutable std::mutex mutex_;
  OperationClock clock_;
};

}  // namespace tutti::ptx
