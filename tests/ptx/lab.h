// Runs PTX text on a machine and waits for the result.
#pragma once

#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/machine/machine.h"

namespace tutti::ptx {

class Lab {
 public:
  explicit Lab(MachineOptions options = {}, DeviceLimits limits = {});  // Two devices.
  ~Lab();

  // Memory of a device, filled with zeros.
  template <typename T>
  T* make(std::size_t count, int device = 0, bool tracks_uninitialised = false) {
    return reinterpret_cast<T*>(allocate(count * sizeof(T), device, tracks_uninitialised));
  }
  std::byte* allocate(std::size_t bytes, int device, bool tracks_uninitialised);

  std::shared_ptr<const Module> load(const std::string& text, int device = 0);

  // Starts the kernel `k` of the text. Parameters of 4 and 8 bytes lie as C passes them.
  template <typename... Parameters>
  int start(const std::shared_ptr<const Module>& module, Extent grid, Extent block, Parameters... parameters) {
    KernelLaunch launch;
    launch.module = module;
    launch.kernel = "k";
    launch.grid = grid;
    launch.block = block;
    launch.dynamic_shared_bytes = dynamic_shared_bytes;
    launch.cooperative = cooperative;
    launch.order = order;
    (append(launch.parameters, parameters), ...);
    return start(std::move(launch));
  }
  int start(KernelLaunch launch);
  int start(CopyLaunch copy);
  std::optional<Fault> wait(int number);

  template <typename... Parameters>
  std::optional<Fault> run(const std::string& text, Extent grid, Extent block, Parameters... parameters) {
    return wait(start(load(text), grid, block, parameters...));
  }

  AddressSpace space;
  std::unique_ptr<Machine> machine;
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  std::optional<OperationOrder> order;  // Order of launches.

 private:
  LaunchDone note(int number);
  template <typename T>
  static void append(std::vector<std::byte>& to, T value) {
    to.resize((to.size() + sizeof value - 1) / sizeof value * sizeof value);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
  }

  std::vector<std::unique_ptr<std::byte, void (*)(void*)>> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::optional<Fault>> done_;
  int started_ = 0;
};

// Text with a kernel `k` with these parameters and this body, and enough registers.
std::string kernel_text(const std::string& parameters, const std::string& body, const std::string& before = "");

}  // namespace tutti::ptx
