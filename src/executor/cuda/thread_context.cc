#include "src/executor/cuda/thread_context.h"

#include <array>
#include <atomic>

namespace tutti {
namespace {

constexpr int kMaxDevices = 64;

// Primary contexts by device, retained once and never released, because the driver may be unloaded before the last
// thread ends.
constinit std::array<std::atomic<CUcontext>, kMaxDevices> retained = {};

CUcontext retain(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (!driver.find_device(&device, ordinal).ok()) return nullptr;
  if (!driver.retain_context(&context, device).ok()) return nullptr;
  retained[static_cast<std::size_t>(ordinal)].store(context, std::memory_order_release);
  return context;
}

// Driver and runtime number the devices identically.
bool is_on(const Driver& driver, int ordinal) {
  CUdevice device = -1, wanted = -1;
  return driver.get_device(&device).ok() && driver.find_device(&wanted, ordinal).ok() && device == wanted;
}

}  // namespace

ThreadContext::ThreadContext(const Driver& driver, int ordinal) : driver_(driver) {
  if (!driver.pushes_contexts() || ordinal < 0 || ordinal >= kMaxDevices) return;
  CUcontext current = nullptr;
  if (!driver.get_context(&current).ok()) return;
  CUcontext primary = retained[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire);
  holds_ = current != nullptr && (current == primary || is_on(driver, ordinal));
  if (holds_) return;
  if (primary == nullptr) primary = retain(driver, ordinal);
  pushed_ = holds_ = primary != nullptr && driver.push_context(primary).ok();
}

ThreadContext::~ThreadContext() {
  CUcontext popped = nullptr;
  if (pushed_) (void)driver_.pop_context(&popped);
}

}  // namespace tutti
