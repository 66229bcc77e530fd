// Loads, stores and atomics of a warp: addresses, state spaces, shared, local and parameter memory.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/ptx/machine/executor.h"
#include "tests/ptx/machine/words.h"

namespace tutti::ptx {
namespace {

template <typename F>
void each_lane(std::uint32_t mask, F&& run) {
  if (mask == ~0U) {
    for (std::uint32_t lane = 0; lane < 32; ++lane) run(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) run(static_cast<std::uint32_t>(__builtin_ctz(mask)));
}

std::uint64_t ones(unsigned bytes) { return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1; }

}  // namespace

void Executor::find_addresses(Access& access, const Instruction& in) {
  std::uint64_t offset = static_cast<std::uint64_t>(in.value);
  if (in.target != 0)
    offset += reinterpret_cast<std::uint64_t>(block_->running->launch.module->addresses()[in.target - 1]);
  if ((in.wide >> 4 & 1) != 0) {
    const std::uint64_t* const base = lanes_.in<std::uint64_t>(in.r[4]);
    for (unsigned lane = 0; lane < 32; ++lane) access.addresses[lane] = base[lane] + offset;
  } else {
    const std::uint32_t* const base = lanes_.in<std::uint32_t>(in.r[4]);
    for (unsigned lane = 0; lane < 32; ++lane) access.addresses[lane] = base[lane] + offset;
  }
}

// Reads the operands of a store or an atomic.
void Executor::gather(Access& access, const Instruction& in) {
  if (in.kind == Kind::atomic) {
    each_lane(mask_, [&](std::uint32_t lane) {
      for (std::size_t i = 0; i < 2; ++i)
        access.data[lane][i] =
            in.bytes == 8 ? lanes_.in<std::uint64_t>(in.r[1 + i])[lane] : lanes_.in<std::uint32_t>(in.r[1 + i])[lane];
      const std::uint64_t keep = ones(in.bytes);
      access.data[lane][0] &= keep;
      access.data[lane][1] &= keep;
    });
    return;
  }
  if (in.bytes == 16) {
    const std::uint64_t* const from = lanes_.in<std::uint64_t>(in.r[0]);
    each_lane(mask_, [&](std::uint32_t lane) { access.data[lane] = {from[lane], from[32 + lane], 0, 0}; });
    return;
  }
  const std::uint64_t keep = ones(in.bytes);
  each_lane(mask_, [&](std::uint32_t lane) { access.data[lane] = {}; });
  for (unsigned e = 0; e < in.count; ++e) {
    const unsigned word = e * in.bytes / 8, shift = e * in.bytes % 8 * 8;
    if ((in.wide >> e & 1) != 0) {
      const std::uint64_t* const from = lanes_.in<std::uint64_t>(in.r[e]);
      each_lane(mask_, [&](std::uint32_t lane) { access.data[lane][word] |= (from[lane] & keep) << shift; });
    } else {
      const std::uint32_t* const from = lanes_.in<std::uint32_t>(in.r[e]);
      each_lane(mask_, [&](std::uint32_t lane) { access.data[lane][word] |= (from[lane] & keep) << shift; });
    }
  }
}

// Writes the result of a load or an atomic.
void Executor::scatter(const Access& access, const Instruction& in) {
  if (in.bytes == 16) {
    std::uint64_t* const to = lanes_.out<std::uint64_t>(in.r[0]);
    each_lane(mask_, [&](std::uint32_t lane) {
      to[lane] = access.data[lane][0];
      to[32 + lane] = access.data[lane][1];
    });
    return;
  }
  const unsigned unused = 64 - 8 * in.bytes;
  for (unsigned e = 0; e < in.count; ++e) {
    if (in.r[e] < 0) continue;
    const unsigned word = e * in.bytes / 8, shift = e * in.bytes % 8 * 8;
    const auto value = [&](std::uint32_t lane) {
      const std::uint64_t bits = access.data[lane][word] >> shift << unused;
      return in.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> unused) : bits >> unused;
    };
    if ((in.wide >> e & 1) != 0) {
      std::uint64_t* const to = lanes_.out<std::uint64_t>(in.r[e]);
      each_lane(mask_, [&](std::uint32_t lane) { to[lane] = value(lane); });
    } else {
      std::uint32_t* const to = lanes_.out<std::uint32_t>(in.r[e]);
      each_lane(mask_, [&](std::uint32_t lane) { to[lane] = static_cast<std::uint32_t>(value(lane)); });
    }
  }
}

// Threads that load the same address get the same value: two threads stand for all. Not so in local memory, and not if
// a thread's own store may be pending.
bool Executor::is_uniform(const Access& access, Space space) const {
  if (access.in.kind != Kind::load || is_strong(access.in.order) || space == Space::local) return false;
  const std::uint64_t address = access.addresses[static_cast<std::size_t>(__builtin_ctz(access.mask))];
  std::uint64_t differs = 0;
  each_lane(access.mask, [&](std::uint32_t lane) { differs |= access.addresses[lane] ^ address; });
  if (differs != 0) return false;
  const auto& filter = block_->buffer.filter;
  return space == Space::shared || space == Space::parameter ||
         (filter[StoreBuffer::hash(address)] == 0 && access.in.bytes * access.in.count <= 8);
}

void Executor::access_lanes(Access& access, Space space) {
  if (space == Space::global && !options_.counts.empty()) count(access);
  const std::uint32_t mask = access.mask, rest = mask & (mask - 1) & ((mask & (mask - 1)) - 1);
  if (rest == 0 || !is_uniform(access, space)) return access_space(access, space);
  access.mask = mask & ~rest;
  access_space(access, space);
  const auto data = access.data[static_cast<std::size_t>(__builtin_ctz(mask))];
  each_lane(rest, [&](std::uint32_t lane) { access.data[lane] = data; });
}

// ld.local, st.local and parameters of functions at a constant address.
bool Executor::access_local_slot(const Instruction& in) {
  const auto address = static_cast<std::uint64_t>(in.value);
  if (in.space != Space::local || in.r[4] != -1 || in.count != 1 || in.bytes > 8 || in.kind == Kind::atomic)
    return false;
  if (address + in.bytes > code_->local_bytes || address % in.bytes != 0) return false;
  std::uint64_t* const words = warp_->local + address / 8 * 32;
  const unsigned shift = address % 8 * 8, unused = 64 - 8 * in.bytes;
  const bool wide = in.wide % 2 != 0;
  const std::uint64_t keep = ones(in.bytes) << shift;
  each_lane(mask_, [&](std::uint32_t lane) {
    if (in.kind == Kind::store) {
      const std::uint64_t value =
          wide ? lanes_.in<std::uint64_t>(in.r[0])[lane] : lanes_.in<std::uint32_t>(in.r[0])[lane];
      words[lane] = (words[lane] & ~keep) | (value << shift & keep);
      return;
    }
    const std::uint64_t bits = words[lane] >> shift << unused;
    const std::uint64_t value =
        in.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> unused) : bits >> unused;
    if (wide) {
      lanes_.out<std::uint64_t>(in.r[0])[lane] = value;
    } else {
      lanes_.out<std::uint32_t>(in.r[0])[lane] = static_cast<std::uint32_t>(value);
    }
  });
  return true;
}

void Executor::access(const Instruction& in) {
  if (mask_ == 0 || access_local_slot(in)) return;
  Access access(*block_, *warp_, in);
  access.warp_index = warp_index_;
  access.pc = pc_;
  access.mask = mask_;
  find_addresses(access, in);
  if (in.kind != Kind::load) gather(access, in);
  constexpr Space kSpaces[] = {Space::global, Space::shared, Space::local, Space::parameter};
  if (in.space != Space::generic) {
    access_lanes(access, in.space);
  } else {
    std::uint32_t masks[4] = {};
    each_lane(mask_, [&](std::uint32_t lane) {
      const std::uint64_t window = access.addresses[lane] >> kWindowShift;
      masks[window < 4 ? window : 0] |= 1U << lane;
      if (window != 0 && window < 4) access.addresses[lane] &= (std::uint64_t{1} << kWindowShift) - 1;
    });
    for (std::size_t i = 0; i < 4; ++i) {
      access.mask = masks[i];
      if (access.mask != 0) access_lanes(access, kSpaces[i]);
    }
  }
  if (in.kind == Kind::load || in.has_predicate) scatter(access, in);
}

void Executor::access_space(Access& access, Space space) {
  switch (space) {
    case Space::shared: return access_shared(access);
    case Space::local: return access_local(access);
    case Space::parameter: return access_parameters(access);
    default: break;
  }
  each_lane(access.mask, [&](std::uint32_t lane) {
    const std::uint64_t window = access.addresses[lane] >> kWindowShift;
    if (window >= 1 && window <= 3)
      throw Raised{FaultKind::state_space,
                   std::string("accesses global memory at a generic address of ") +
                       (window == 1   ? "shared"
                        : window == 2 ? "local"
                                      : "parameter") +
                       " memory",
                   lane};
  });
  if (access.in.multimem != Multimem::none) return access_multicast(access);
  if (access.in.kind == Kind::load) return memory_.load(access);
  if (access.in.kind == Kind::store) return memory_.store(access);
  memory_.check_ranges(access, true);
  each_lane(access.mask, [&](std::uint32_t lane) { memory_.atomic(access, lane); });
}

void Executor::access_shared(Access& access) {
  const Instruction& in = access.in;
  const unsigned bytes = in.bytes * in.count;
  auto* const memory = reinterpret_cast<std::byte*>(block_->shared.data());
  each_lane(access.mask, [&](std::uint32_t lane) {
    const std::uint64_t address = access.addresses[lane];
    if (address >> kWindowShift != 0)
      throw Raised{FaultKind::state_space, "accesses shared memory at a generic address", lane};
    if (address + bytes > block_->shared_bytes)
      throw Raised{FaultKind::bounds,
                   "accesses " + std::to_string(bytes) + " bytes at " + std::to_string(address) + " of " +
                       std::to_string(block_->shared_bytes) + " bytes of shared memory",
                   lane};
    if (address % bytes != 0)
      throw Raised{FaultKind::alignment,
                   "shared address " + std::to_string(address) + " is not a multiple of " + std::to_string(bytes),
                   lane};
    if (options_.detects_races) memory_.check_race(access, block_->shared_shadow, lane, in.kind != Kind::load);
    for (unsigned done = 0; done < bytes; done += 8) {
      Granule& granule = block_->shared_shadow.at(address + done);
      const std::uint8_t mask = byte_mask(address + done, bytes - done);
      if (in.kind == Kind::store) granule.written |= mask;
      if (in.kind != Kind::store && (granule.written & mask) != mask)
        throw Raised{FaultKind::uninitialised,
                     "reads shared memory at " + std::to_string(address + done) + " that was never written", lane};
    }
    if (in.kind == Kind::atomic) return atomic_shared(access, lane);
    if (in.kind == Kind::load) {
      std::memcpy(access.data[lane].data(), memory + address, bytes);
      if (is_strong(in.order)) memory_.acquire(access, block_->shared_shadow, lane);
      return;
    }
    std::memcpy(memory + address, access.data[lane].data(), bytes);
    if (is_strong(in.order)) publish_shared(access, lane);
  });
}

void Executor::publish_shared(const Access& access, std::uint32_t lane) {
  const unsigned bytes = access.in.bytes * access.in.count, size = element_bytes(access.in);
  Scope scope = access.in.scope;
  const ViewRef view = memory_.published_by(access, lane, scope);
  for (unsigned done = 0; done < bytes; done += size) {
    const Element element = element_at(access.addresses[lane], access.data[lane], done, size);
    block_->shared_shadow.at(element.address).published = true;
    block_->shared_shadow.publish(element.address) = {element.value, view, scope, block_->number};
  }
}

void Executor::atomic_shared(Access& access, std::uint32_t lane) {
  const Instruction& in = access.in;
  const std::uint64_t address = access.addresses[lane], operand = access.data[lane][0], other = access.data[lane][1];
  Scope scope = in.scope;
  const ViewRef view = memory_.published_by(access, lane, scope);
  const auto real = reinterpret_cast<std::uint64_t>(block_->shared.data()) + address;
  const std::uint64_t old = change_word(in, real, operand, other);
  access.data[lane][0] = old;
  Shadow& shadow = block_->shared_shadow;
  const Publication* const found = shadow.at(address).published ? shadow.find_publication(address) : nullptr;
  const ViewRef earlier = found != nullptr && found->value == old ? found->view : ViewRef();
  memory_.acquire(access, shadow, lane);
  shadow.at(address).published = true;
  shadow.publish(address) = {result_of(in, old, operand, other), memory_.clocks().join(earlier, view), scope,
                             block_->number};
}

// Local memory is interleaved: a thread's words lie 32 words apart.
void Executor::access_local(Access& access) {
  const unsigned bytes = access.in.bytes * access.in.count;
  each_lane(access.mask, [&](std::uint32_t lane) {
    const std::uint64_t address = access.addresses[lane];
    if (address + bytes > code_->local_bytes || address + bytes < address)
      throw Raised{FaultKind::bounds,
                   "accesses " + std::to_string(bytes) + " bytes at " + std::to_string(address) + " of " +
                       std::to_string(code_->local_bytes) + " bytes of local memory",
                   lane};
    if (address % access.in.bytes != 0)
      throw Raised{
          FaultKind::alignment,
          "local address " + std::to_string(address) + " is not a multiple of " + std::to_string(access.in.bytes),
          lane};
    if (access.in.kind == Kind::atomic)
      throw Raised{FaultKind::state_space, "executes an atomic on local memory", lane};
    for (unsigned done = 0; done < bytes;) {
      const std::uint64_t at = address + done;
      const unsigned part = static_cast<unsigned>(std::min<std::uint64_t>(bytes - done, 8 - at % 8));
      auto* const word = reinterpret_cast<std::byte*>(warp_->local + at / 8 * 32 + lane) + at % 8;
      std::byte* const data = reinterpret_cast<std::byte*>(access.data[lane].data()) + done;
      std::memcpy(access.in.kind == Kind::load ? data : word, access.in.kind == Kind::load ? word : data, part);
      done += part;
    }
  });
}

void Executor::access_parameters(Access& access) {
  const unsigned bytes = access.in.bytes * access.in.count;
  const std::vector<std::byte>& parameters = block_->running->launch.parameters;
  each_lane(access.mask, [&](std::uint32_t lane) {
    const std::uint64_t address = access.addresses[lane];
    if (access.in.kind != Kind::load) throw Raised{FaultKind::state_space, "writes kernel parameters", lane};
    if (address + bytes > parameters.size() || address + bytes < address)
      throw Raised{FaultKind::bounds,
                   "reads " + std::to_string(bytes) + " bytes at " + std::to_string(address) + " of " +
                       std::to_string(parameters.size()) + " bytes of parameters",
                   lane};
    if (address % access.in.bytes != 0)
      throw Raised{
          FaultKind::alignment,
          "parameter address " + std::to_string(address) + " is not a multiple of " + std::to_string(access.in.bytes),
          lane};
    std::memcpy(access.data[lane].data(), parameters.data() + address, bytes);
  });
}

// A warp polls from a strong load until it repeats it, if it makes no other access but strong loads in between.
void Executor::count_polling(const Access& access) {
  if (access.in.kind != Kind::load || !is_strong(access.in.order)) return warp_->polls.clear();
  const std::uint64_t now = warp_->instructions + warp_instructions_ - run_begin_;
  const auto lane = static_cast<std::size_t>(__builtin_ctz(access.mask));
  for (Poll& poll : warp_->polls) {
    if (poll.pc != access.pc || poll.addresses[lane] != access.addresses[lane]) continue;
    block_->running->counters.polling_instructions += now - std::max(poll.at, warp_->polled_until);
    poll.at = warp_->polled_until = now;
    return;
  }
  warp_->polls.push_back({access.pc, access.addresses, now});
}

// Counts before threads with equal addresses are left out.
void Executor::count(const Access& access) {
  constexpr std::uint64_t kSectorBytes = 32;
  const Instruction& in = access.in;
  const unsigned bytes = in.bytes * in.count;
  std::array<std::uint64_t, 64> sectors;
  std::size_t touched = 0;
  each_lane(access.mask, [&](std::uint32_t lane) {
    sectors[touched++] = access.addresses[lane] / kSectorBytes;
    sectors[touched++] = (access.addresses[lane] + bytes - 1) / kSectorBytes;
  });
  std::sort(sectors.begin(), sectors.begin() + touched);
  const auto different =
      static_cast<std::uint64_t>(std::unique(sectors.begin(), sectors.begin() + touched) - sectors.begin());
  LaunchCounters& counters = block_->running->counters;
  (in.kind == Kind::load ? counters.load_sectors : counters.store_sectors) += different;
  (in.kind == Kind::load ? counters.loaded_bytes : counters.stored_bytes) += touched / 2 * bytes;
  const bool releases = in.order == Order::release || in.order == Order::acquire_release;
  if (releases && in.scope == Scope::system) ++counters.fences;
  count_polling(access);
}

void Executor::fence(const Instruction& in) {
  if (mask_ != 0 && in.scope == Scope::system) ++block_->running->counters.fences;
  if (mask_ != 0) memory_.fence(*block_, warp_index_, mask_, in);
}

}  // namespace tutti::ptx
