// Launches and thread blocks: validation, placement on multiprocessors, end.
#include <algorithm>

#include "tests/ptx/machine/report.h"
#include "tests/ptx/machine/scheduler.h"

namespace tutti::ptx {
namespace {

std::uint32_t align(std::uint32_t value, std::uint32_t unit) { return (value + unit - 1) / unit * unit; }

bool fits(const BlockDemand& demand, const DeviceLimits& limits, const BlockDemand& used, std::uint32_t blocks) {
  return blocks < limits.blocks_per_multiprocessor &&
         used.threads + demand.threads <= limits.threads_per_multiprocessor &&
         used.registers + demand.registers <= limits.registers_per_multiprocessor &&
         used.shared_bytes + demand.shared_bytes <= limits.shared_bytes_per_multiprocessor;
}

BlockDemand demand_of_launch(const Running& running, const DeviceLimits& limits) {
  return demand_of(*running.code->info, limits, static_cast<std::uint32_t>(count_of(running.launch.block)),
                   running.launch.dynamic_shared_bytes);
}

}  // namespace

BlockDemand demand_of(const KernelInfo& kernel, const DeviceLimits& limits, std::uint32_t threads,
                      std::uint32_t dynamic_shared_bytes) {
  const std::uint32_t warps = (threads + 31) / 32;
  return {warps * 32, warps * align(kernel.registers * 32, 256),
          align(kernel.shared_bytes + dynamic_shared_bytes + limits.reserved_shared_bytes, 128)};
}

std::uint32_t blocks_that_fit(const BlockDemand& demand, const DeviceLimits& limits) {
  std::uint32_t count = limits.blocks_per_multiprocessor;
  count = std::min(count, limits.threads_per_multiprocessor / std::max(demand.threads, 1U));
  count = std::min(count, limits.registers_per_multiprocessor / std::max(demand.registers, 1U));
  return std::min(count, limits.shared_bytes_per_multiprocessor / std::max(demand.shared_bytes, 1U));
}

Status Machine::Thread::check(const KernelLaunch& launch, const Code*& code) const {
  if (launch.module == nullptr) return invalid_argument("the launch has no module");
  code = launch.module->program()->find_code(launch.kernel);
  if (code == nullptr) return invalid_argument("the module has no kernel " + launch.kernel);
  const auto device = static_cast<std::size_t>(launch.module->device());
  if (device >= limits.size())
    return invalid_argument("the module's device " + std::to_string(device) + " does not exist");
  const std::uint64_t threads = count_of(launch.block), blocks_count = count_of(launch.grid);
  if (blocks_count == 0 || threads == 0 || threads > std::min(1024U, code->info->threads_per_block_max))
    return invalid_argument("a launch of " + std::to_string(blocks_count) + " blocks of " + std::to_string(threads) +
                            " threads; the kernel allows 1 to " + std::to_string(code->info->threads_per_block_max) +
                            " threads");
  if (launch.parameters.size() != code->info->parameter_bytes)
    return invalid_argument("the kernel has " + std::to_string(code->info->parameter_bytes) +
                            " bytes of parameters, not " + std::to_string(launch.parameters.size()));
  if (code->dynamic_shared + launch.dynamic_shared_bytes > limits[device].shared_bytes_per_block)
    return invalid_argument("a thread block with " + std::to_string(launch.dynamic_shared_bytes) +
                            " bytes of dynamic shared memory; the device has " +
                            std::to_string(limits[device].shared_bytes_per_block) + " per block");
  const BlockDemand demand =
      demand_of(*code->info, limits[device], static_cast<std::uint32_t>(threads), launch.dynamic_shared_bytes);
  const std::uint64_t room = std::uint64_t{blocks_that_fit(demand, limits[device])} * limits[device].multiprocessors;
  if (room == 0 || (launch.cooperative && blocks_count > room))
    return invalid_argument("a launch of " + std::to_string(blocks_count) + " blocks; " + std::to_string(room) +
                            " fit on the device at the same time");
  return {};
}

Status Machine::Thread::start(KernelLaunch launch, LaunchDone done) {
  auto running = std::make_unique<Running>();
  TUTTI_CHECK_OK(check(launch, running->code));
  running->blocks_total = count_of(launch.grid);
  running->ended_before = ended.load(std::memory_order_acquire);
  const auto device = static_cast<std::size_t>(launch.module->device());
  running->launch = std::move(launch);
  running->done = std::move(done);
  {
    const std::lock_guard lock(mutex);
    ++busy[device];
    ++counters.launches;
    incoming.push_back(std::move(running));
    has_incoming = true;
  }
  wake.notify_one();
  return {};
}

std::uint64_t Machine::Thread::room_for(int device, const BlockDemand& demand) const {
  const DeviceLimits& limit = limits[static_cast<std::size_t>(device)];
  std::uint64_t room = 0;
  for (Usage usage : devices[static_cast<std::size_t>(device)].multiprocessors) {
    for (; fits(demand, limit, usage.used, usage.blocks); ++usage.blocks, ++room) {
      usage.used.threads += demand.threads;
      usage.used.registers += demand.registers;
      usage.used.shared_bytes += demand.shared_bytes;
    }
  }
  return room;
}

bool Machine::Thread::place_block(Running& launch, const BlockDemand& demand) {
  const auto device = static_cast<std::size_t>(launch.launch.module->device());
  auto& all = devices[device].multiprocessors;
  const std::uint32_t first = random.below(static_cast<std::uint32_t>(all.size()));
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const auto m = static_cast<std::uint32_t>((first + i) % all.size());
    Usage& usage = all[m];
    if (!fits(demand, limits[device], usage.used, usage.blocks)) continue;
    ++usage.blocks;
    usage.used.threads += demand.threads;
    usage.used.registers += demand.registers;
    usage.used.shared_bytes += demand.shared_bytes;
    make_block(launch, m);
    return true;
  }
  return false;
}

void Machine::Thread::place_blocks() {
  for (std::size_t d = 0; d < devices.size(); ++d) {
    auto& waiting = devices[d].waiting;
    while (!waiting.empty()) {
      Running& launch = *waiting.front();
      const BlockDemand demand = demand_of_launch(launch, limits[d]);
      const std::uint64_t left = launch.blocks_total - launch.blocks_placed;
      if (launch.launch.cooperative && room_for(static_cast<int>(d), demand) < left) break;
      while (launch.blocks_placed < launch.blocks_total && place_block(launch, demand)) {
      }
      if (launch.blocks_placed < launch.blocks_total) break;
      waiting.pop_front();
    }
  }
}

void Machine::Thread::make_block(Running& launch, std::uint32_t multiprocessor) {
  auto block = std::make_unique<Block>();
  const Code& code = *launch.code;
  const Extent& grid = launch.launch.grid;
  const std::uint64_t n = launch.blocks_placed++;
  block->running = &launch;
  block->number = clocks.add_block(record_of(launch.launch.order, launch.number, launch.launch.module->device()));
  launch.numbers.push_back(block->number);
  block->index = {static_cast<std::uint32_t>(n % grid.x), static_cast<std::uint32_t>(n / grid.x % grid.y),
                  static_cast<std::uint32_t>(n / grid.x / grid.y)};
  block->multiprocessor = multiprocessor;
  block->threads = block->live = static_cast<std::uint32_t>(count_of(launch.launch.block));
  block->shared_bytes = code.dynamic_shared + launch.launch.dynamic_shared_bytes;
  block->shared.assign((block->shared_bytes + 7) / 8, 0);
  block->buffer.capacity = random.one_in(4) ? 1 : 1 + random.below(32);
  const std::uint32_t warps = (block->threads + 31) / 32;
  const std::size_t warp_bytes = align(code.arena_bytes, 128) + std::size_t{align(code.local_bytes, 16)} * 32;
  const std::size_t bytes = std::max<std::size_t>(warps * warp_bytes, 128);
  if (const auto found = spare.find(bytes); found != spare.end()) {
    block->memory = std::move(found->second);
    spare.erase(found);
  } else {
    block->memory.reset(static_cast<std::byte*>(std::aligned_alloc(128, bytes)));
  }
  block->warps.resize(warps);
  for (std::uint32_t w = 0; w < warps; ++w) {
    Warp& warp = block->warps[w];
    warp.arena = block->memory.get() + w * warp_bytes;
    warp.local = reinterpret_cast<std::uint64_t*>(warp.arena + align(code.arena_bytes, 128));
    const std::uint32_t threads = std::min(32U, block->threads - w * 32);
    warp.started = warp.live = threads == 32 ? ~0U : (1U << threads) - 1;
    warp.groups.push_back({warp.live, code.entry, Group::State::ready, 0, 0});
    for (ThreadClocks& thread_clocks : warp.threads) thread_clocks.view = launch.known;
  }
  block->memory_bytes = bytes;
  blocks.push_back(std::move(block));
  phase_slices = 0;
}

void Machine::Thread::end_block(Block& block) {
  Running& launch = *block.running;
  memory.drain_all(block);
  const auto device = static_cast<std::size_t>(launch.launch.module->device());
  const BlockDemand demand = demand_of_launch(launch, limits[device]);
  Usage& usage = devices[device].multiprocessors[block.multiprocessor];
  --usage.blocks;
  usage.used.threads -= demand.threads;
  usage.used.registers -= demand.registers;
  usage.used.shared_bytes -= demand.shared_bytes;
  if (spare.size() < 64) spare.emplace(block.memory_bytes, std::move(block.memory));
  std::erase_if(blocks, [&](const auto& each) { return each.get() == &block; });
  ++launch.blocks_done;
  if (launch.blocks_done == launch.blocks_total) {
    end_launch(launch);
  } else {
    place_blocks();
  }
}

void Machine::Thread::end_launch(Running& launch) {
  const auto device = static_cast<std::size_t>(launch.launch.module->device());
  end_operation(launch.numbers, launch.launch.order.has_value());
  std::erase(devices[device].waiting, &launch);
  const auto found =
      std::find_if(launches.begin(), launches.end(), [&](const auto& each) { return each.get() == &launch; });
  const std::unique_ptr<Running> kept = std::move(*found);
  launches.erase(found);
  {
    const std::lock_guard lock(mutex);
    --busy[device];
  }
  kept->counters.blocks = kept->blocks_done;
  if (!options.counts.empty()) append_counters(options.counts, *kept);
  kept->done(kept->fault);
  place_blocks();
}

void Machine::Thread::stop_launch(Running& launch, Fault fault) {
  launch.fault = std::move(fault);
  std::vector<Block*> own;
  for (const auto& block : blocks) {
    if (block->running == &launch) own.push_back(block.get());
  }
  launch.blocks_total = launch.blocks_done + own.size() + 1;  // end_block() must not end the launch.
  launch.blocks_placed = launch.blocks_total;
  for (Block* const block : own) {
    block->buffer.stores.clear();
    end_block(*block);
  }
  end_launch(launch);
}

void Machine::Thread::stop_all(const Fault& fault) {
  while (!launches.empty()) stop_launch(*launches.front(), fault);
}

}  // namespace tutti::ptx
