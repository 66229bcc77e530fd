#include "tests/ptx/lab.h"

#include <cstdlib>
#include <stdexcept>

namespace tutti::ptx {

Lab::Lab(MachineOptions options, DeviceLimits limits)
    : machine(std::make_unique<Machine>(space, std::vector<DeviceLimits>(2, limits), options)) {}

Lab::~Lab() { machine.reset(); }

std::byte* Lab::allocate(std::size_t bytes, int device, bool tracks_uninitialised) {
  constexpr std::size_t kAlignment = 256;
  const std::size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;  // Ranges do not touch.
  memory_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(kAlignment, room)), std::free);
  std::memset(memory_.back().get(), 0, room);
  MemoryRange range;
  range.begin = memory_.back().get();
  range.bytes = bytes;
  range.device = device;
  range.devices = kAllDevices;
  range.tracks_uninitialised = tracks_uninitialised;
  range.name = "the test's memory";
  if (!space.add(range).ok()) throw std::runtime_error("memory was not registered");
  return range.begin;
}

std::shared_ptr<const Module> Lab::load(const std::string& text, int device) {
  auto program = Program::parse(text, "test.ptx");
  if (!program.ok()) throw std::runtime_error(std::move(program).status().message());
  auto module = Module::load(program.value(), space, device);
  if (!module.ok()) throw std::runtime_error(std::move(module).status().message());
  return module.value();
}

LaunchDone Lab::note(int number) {
  return [this, number](const std::optional<Fault>& fault) {
    const std::lock_guard lock(mutex_);
    done_[number] = fault;
    changed_.notify_all();
  };
}

int Lab::start(KernelLaunch launch) {
  const int number = started_++;
  const Status status = machine->start(std::move(launch), note(number));
  if (!status.ok()) note(number)(Fault{FaultKind::launch, status.message()});
  return number;
}

int Lab::start(CopyLaunch copy) {
  const int number = started_++;
  machine->start(std::move(copy), note(number));
  return number;
}

std::optional<Fault> Lab::wait(int number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_.contains(number); });
  return done_[number];
}

std::string kernel_text(const std::string& parameters, const std::string& body, const std::string& before) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + before + "\n.visible .entry k(" + parameters +
         ")\n{\n.reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %r<64>;\n.reg .f32 %f<32>;\n.reg .b64 %d<64>;\n"
         ".reg .f64 %e<32>;\n.reg .b128 %q<8>;\n" +
         body + "\nret;\n}\n";
}

}  // namespace tutti::ptx
