// Cache of the calls that a rank has prepared, by shape: a call of a known shape is not prepared again. While
// autotuning tries the candidates of a call, the cache has prepared state for each candidate that calls have used.
// Common to host memory and devices, whose preparers differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "src/base/status.h"
#include "src/communicator/planning/planning.h"

namespace tutti {

// Calls with equal keys share their prepared state.
struct CallKey {
  std::uint64_t count = 0;
  std::uint64_t shape = 0;           // See own_shape_of().
  std::uint32_t agreement_hash = 0;  // See CommunicatorOptions.
  bool in_place = false;
  bool in_windows = false;       // On devices: both buffers lie in windows.
  bool by_switches = false;      // On devices: in_windows, and switches access all windows.
  bool by_copy_engines = false;  // On devices: copy engines run the call.
  bool operator==(const CallKey&) const = default;
};

// A Preparer has these types and functions:
//   Prepared  prepared state of calls with one key
//   Trial     candidate of a class that autotuning tries; ordered
//   Class     class of autotuned calls, with bool settled() and Trial next()
//   Result<Class*> class_of(call, options)                      returns null if the call is not autotuned
//   Result<std::unique_ptr<Prepared>> prepare(call, options)    prepares as predicted by the tuner
//   Result<std::unique_ptr<Prepared>> prepare_trial(call, options, const Class&, const Trial&)
//   void retire(std::unique_ptr<Prepared>)                      gets state that leaves the cache
// Not thread-safe. No function waits.
template <typename Preparer>
class CallCache {
 public:
  using Prepared = typename Preparer::Prepared;
  using Class = typename Preparer::Class;
  using Trial = typename Preparer::Trial;

  // State of calls whose class is being tuned.
  struct Tuned {
    Class* tuned;
    std::map<Trial, std::unique_ptr<Prepared>> tried = {};
  };
  struct Slot {
    CallKey key;
    std::variant<std::monostate, std::unique_ptr<Prepared>, Tuned> state;
    // Returns the class that is being tuned; null: none, and the slot has prepared().
    Class* tuned() const {
      const Tuned* found = std::get_if<Tuned>(&state);
      return found == nullptr ? nullptr : found->tuned;
    }
    Prepared* prepared() const { return std::get<std::unique_ptr<Prepared>>(state).get(); }
  };

  // `preparer` must outlive this object.
  explicit CallCache(Preparer& preparer) : preparer_(preparer) {}

  // Returns the slot of calls with this key; null: the cache has no state for them. Slots do not move.
  Slot* find(const CallKey& key) {
    Slot& slot = slot_of(key);
    return slot.state.index() != 0 && slot.key == key ? &slot : nullptr;
  }
  // Prepares a call whose key find() does not find, or looks up its class. Replaces another key's state.
  Result<Slot*> fill(const CallKey& key, const Call& call, const CommunicatorOptions& options) {
    Class* const tuned = TUTTI_TRY(preparer_.class_of(call, options));
    Slot fresh = {key, {}};
    if (tuned == nullptr) fresh.state = TUTTI_TRY(preparer_.prepare(call, options));
    else if (tuned->settled()) fresh.state = TUTTI_TRY(preparer_.prepare_trial(call, options, *tuned, tuned->next()));
    else fresh.state = Tuned{tuned};
    Slot& slot = slot_of(key);
    clear(slot);
    slot = std::move(fresh);
    return &slot;
  }

  // Returns the state of a call for a candidate of its class. If the slot has the result of tuning already, this
  // replaces it: earlier calls of the class may still be made.
  Result<Prepared*> try_candidate(Slot& slot, const Call& call, const CommunicatorOptions& options, Class& tuned,
                                  const Trial& trial) {
    if (slot.tuned() == nullptr) {
      clear(slot);
      slot.state = Tuned{&tuned};
    }
    std::unique_ptr<Prepared>& prepared = std::get<Tuned>(slot.state).tried[trial];
    if (prepared == nullptr) prepared = TUTTI_TRY(preparer_.prepare_trial(call, options, tuned, trial));
    return prepared.get();
  }
  // Ends tuning of a slot: keeps the state of the best candidate, as for calls without autotuning.
  void settle(Slot& slot, const Trial& best) {
    std::unique_ptr<Prepared> result = std::move(std::get<Tuned>(slot.state).tried[best]);
    clear(slot);
    slot.state = std::move(result);
  }
  // Drops the state of a slot; find() no longer finds it.
  void clear(Slot& slot) {
    if (auto* prepared = std::get_if<std::unique_ptr<Prepared>>(&slot.state)) preparer_.retire(std::move(*prepared));
    if (auto* tuned = std::get_if<Tuned>(&slot.state)) {
      for (auto& [trial, prepared] : tuned->tried)
        if (prepared != nullptr) preparer_.retire(std::move(prepared));
    }
    slot.state = std::monostate();
  }

 private:
  Slot& slot_of(const CallKey& key) {
    const std::uint64_t flags = (key.in_place ? 1 : 0) + (key.in_windows ? 2 : 0);
    return slots_[mix(key.count * 31 + key.shape * 7 + flags + key.agreement_hash) % slots_.size()];
  }

  Preparer& preparer_;
  std::array<Slot, 256> slots_;
};

}  // namespace tutti
