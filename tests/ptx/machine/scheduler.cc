#include "tests/ptx/machine/scheduler.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "tests/ptx/machine/report.h"

namespace tutti::ptx {
namespace {

std::uint64_t real_now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

constexpr std::uint32_t kSlicesPerPhase = 48;
constexpr std::uint32_t kPhasesOfDeadlock = 256;
constexpr std::uint32_t kIdlePhases = 32;  // Without progress, before the thread yields the processor.

}  // namespace

Machine::Thread::Thread(AddressSpace& space, std::vector<DeviceLimits> device_limits, MachineOptions machine_options)
    : limits(std::move(device_limits)),
      options(machine_options),
      busy(limits.size()),
      random(options.seed),
      memory(space, clocks, options, random),
      executor(memory, random, options),
      devices(limits.size()) {
  for (std::size_t d = 0; d < limits.size(); ++d) devices[d].multiprocessors.resize(limits[d].multiprocessors);
  records.emplace_back();
  timespec real = {};
  clock_gettime(CLOCK_REALTIME, &real);
  now_ns = static_cast<std::uint64_t>(real.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(real.tv_nsec);
  executor.set_clock(now_ns);
  thread = std::thread([this] { run(); });
}

Machine::Thread::~Thread() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    has_incoming = true;
  }
  wake.notify_all();
  thread.join();
}

void Machine::Thread::take_launches(std::unique_lock<std::mutex>& lock) {
  const auto idle = [&] {
    return blocks.empty() &&
           std::all_of(devices.begin(), devices.end(), [](const Device& d) { return d.waiting.empty(); });
  };
  if (idle()) {
    wake.wait(lock, [&] { return stopping || !incoming.empty() || !incoming_copies.empty(); });
    last_progress_ns = real_now_ns();
  }
  for (auto& launch : incoming) {
    launch->number = static_cast<std::uint32_t>(records.size());
    const auto& module = launch->launch.module;
    records.push_back({module->program(), launch->code, ""});
    launch->known = knowledge_of(launch->launch.order, launch->ended_before);
    devices[static_cast<std::size_t>(module->device())].waiting.push_back(launch.get());
    launches.push_back(std::move(launch));
  }
  incoming.clear();
  copies.swap(incoming_copies);
  has_incoming = false;
}

void Machine::Thread::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      take_launches(lock);
      if (stopping) break;
    }
    memory.refresh();
    execute_copies();
    place_blocks();
    run_phase();
  }
  const Fault fault = {FaultKind::launch, "the machine was destroyed while the operation ran or waited"};
  for (const WaitingCopy& waiting : copies) {
    const auto& claimed = waiting.copy.claimed;
    if (claimed == nullptr || !claimed->exchange(true)) waiting.done(fault);
  }
  stop_all(fault);
}

void Machine::Thread::run_phase() {
  const std::uint64_t before = progress(), begin_ns = real_now_ns();
  for (std::uint32_t slice = 0; slice < kSlicesPerPhase && !blocks.empty(); ++slice) {
    if (has_incoming.load(std::memory_order_relaxed)) break;
    run_slice(choose_block());
    if (!blocks.empty() && random.one_in(4))
      memory.drain_some(*blocks[random.below(static_cast<std::uint32_t>(blocks.size()))]);
  }
  advance_clock(progress() != before, real_now_ns() - begin_ns);
}

// The clock follows the instructions, or real time while kernels only wait: timeouts of kernels and of the host agree.
void Machine::Thread::advance_clock(bool progress_made, std::uint64_t real_ns) {
  const std::uint64_t now = real_now_ns();
  std::uint64_t clock = executor.clock();
  if (progress_made) {
    idle_phases = 0;
    last_progress_ns = now;
  } else if (!blocks.empty()) {
    ++idle_phases;
    clock += real_ns;
    if (idle_phases > kIdlePhases) {
      const timespec pause = {0, idle_phases > 4 * kIdlePhases ? 300'000 : 30'000};
      nanosleep(&pause, nullptr);
      clock += real_now_ns() - now;
    }
    const auto limit_ns = static_cast<std::uint64_t>(options.deadlock_ms) * 1'000'000;
    // On a busy machine, threads of the host may have had no processor for a while. Phases then take longer, too.
    const bool tried = idle_phases > std::max(kPhasesOfDeadlock, static_cast<std::uint32_t>(options.deadlock_ms));
    if (options.deadlock_ms > 0 && tried && now - last_progress_ns > limit_ns) report_deadlock();
  }
  executor.set_clock(clock);
  now_ns.store(clock, std::memory_order_relaxed);
  const std::lock_guard lock(mutex);
  counters.instructions = executor.instructions();
  counters.warp_instructions = executor.warp_instructions();
  counters.stale_loads = memory.stale_loads();
  counters.late_stores = memory.late_stores();
}

// For a while, some blocks run often and some not at all.
Block& Machine::Thread::choose_block() {
  if (phase_slices == 0) {
    phase_slices = 8 + random.below(256);
    constexpr std::uint32_t kWeights[] = {0, 1, 1, 8};
    for (const auto& block : blocks) block->weight = kWeights[random.below(4)];
  }
  --phase_slices;
  std::uint32_t total = 0;
  for (const auto& block : blocks) total += block->weight;
  if (total == 0) return *blocks[random.below(static_cast<std::uint32_t>(blocks.size()))];
  std::uint32_t at = random.below(total);
  for (const auto& block : blocks) {
    if (at < block->weight) return *block;
    at -= block->weight;
  }
  return *blocks.front();
}

void Machine::Thread::run_slice(Block& block) {
  const auto count = static_cast<std::uint32_t>(block.warps.size());
  const std::uint32_t quantum = random.one_in(4) ? 1 + random.below(8) : 32 + random.below(256);
  if (block.live == 0) {  // Its stores become visible while other blocks run.
    memory.drain_some(block);
    if (block.buffer.stores.empty()) end_block(block);
    return;
  }
  try {
    const std::uint32_t first = random.below(count);
    bool ran = false;
    for (std::uint32_t i = 0; i < count && !ran; ++i) ran = executor.run(block, (first + i) % count, quantum);
    if (!ran) executor.check_stuck(block);
    if (random.one_in(2)) memory.drain_some(block);
  } catch (const Raised& raised) {
    stop_launch(*block.running, make_fault(block, raised));
  } catch (const RaisedRace& race) {
    stop_launch(*block.running, make_fault(race, describe_thread(block, race.later.thread)));
  }
}

std::string Machine::Thread::seed_text() const { return " [seed " + std::to_string(options.seed) + "]"; }

Fault Machine::Thread::make_fault(const Block& block, const Raised& raised) const {
  const Code& code = *block.running->code;
  return {raised.kind, std::string(name(raised.kind)) + ": " +
                           describe_thread(block, executor.warp() * 32 + raised.lane) + " of " + describe_kernel(code) +
                           " " + raised.what + ", at " + describe_place(code, executor.pc()) + seed_text()};
}

std::string Machine::Thread::describe_access(const Cell& cell, const std::string& actor) const {
  const Record& record = records[clocks.record(cell.block).operation];
  return (record.code == nullptr ? record.copy : actor + " of " + describe_kernel(*record.code)) +
         (cell.strong ? " strongly " : " weakly ") + (cell.writes ? "writes" : "reads");
}

// The size of an element, which decides whether strong accesses race. Texts of copies have their sizes.
std::string Machine::Thread::describe_size(const Cell& cell) const {
  const bool is_copy = records[clocks.record(cell.block).operation].code == nullptr;
  return is_copy ? "" : " (" + std::to_string(1U << cell.size) + " bytes)";
}

Fault Machine::Thread::make_fault(const RaisedRace& race, const std::string& later) const {
  char address[32];
  const int shared_byte = __builtin_ctz(race.earlier.bytes & race.later.bytes);
  const std::uint64_t first = race.address / 8 * 8 + static_cast<unsigned>(shared_byte);
  std::snprintf(address, sizeof address, " 0x%llx", static_cast<unsigned long long>(first));
  const auto place = [&](const Cell& cell) {
    const Code* const code = records[clocks.record(cell.block).operation].code;
    return code == nullptr ? "" : " at " + describe_place(*code, cell.site);
  };
  const std::string earlier = "thread " + std::to_string(race.earlier.thread) + " of " +
                              (race.earlier.block == race.later.block ? "the same block" : "another block");
  return {FaultKind::race, std::string(name(FaultKind::race)) + ": " + describe_access(race.later, later) + address +
                               describe_size(race.later) + place(race.later) +
                               ", and nothing orders this after: " + describe_access(race.earlier, earlier) + " it" +
                               describe_size(race.earlier) + place(race.earlier) + seed_text()};
}

void Machine::Thread::report_deadlock() {
  std::string text = "deadlock: all kernels only wait, for " + std::to_string(options.deadlock_ms) + " ms:";
  std::size_t shown = 0;
  for (const auto& block : blocks) {
    if (++shown > 16) break;
    text += "\n " + describe_kernel(*block->running->code) + " on device " +
            std::to_string(block->running->launch.module->device()) + ":" + describe_waits(*block);
  }
  std::size_t waiting = 0;
  for (const Device& device : devices) waiting += device.waiting.size();
  if (waiting > 0) text += "\n " + std::to_string(waiting) + " launches wait for room on their device";
  stop_all({FaultKind::deadlock, text + seed_text()});
}

}  // namespace tutti::ptx
