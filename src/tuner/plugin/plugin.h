// An NCCL tuner plugin loaded at run time, and its advice for the calls of one communicator. The plugin sees those of
// our candidates that have an NCCL name (table.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "src/base/library.h"
#include "src/tuner/plugin/abi.h"
#include "src/tuner/plugin/table.h"

namespace tutti {

class TunerPlugin {
 public:
  // Loads a plugin. "example" means libnccl-tuner-example.so in the loader's search path; a name with a slash or ".so"
  // is a file name.
  static Result<std::unique_ptr<TunerPlugin>> open(const std::string& name);
  // Loads the plugin once per process and keeps it. Returns null for "" and "none", and if loading fails, which the
  // first call logs as a warning. Thread-safe.
  static const TunerPlugin* of_process(const std::string& name);

  // With file and version: "Example (libnccl-tuner-example.so, version 5)".
  const std::string& name() const { return name_; }

 private:
  friend class TunerAdviser;
  explicit TunerPlugin(Library library) : opened_(std::move(library)) {}

  Library opened_;
  std::string name_;
  const nccl_tuner::PluginV5* newer_ = nullptr;  // Exactly one of the two is set.
  const nccl_tuner::PluginV4* older_ = nullptr;
};

// Properties of a communicator passed to plugins.
struct AdvisedRanks {
  std::uint64_t communicator = 0;  // Identifier; the same on all its ranks.
  std::size_t ranks = 1;
  std::size_t hosts = 1;
  std::size_t min_per_host = 1;
  std::size_t max_per_host = 1;
};

// One rank of one communicator. Thread-safe.
class TunerAdviser {
 public:
  // Returns null if `plugin` is null, or if the plugin fails to initialise, which is logged as a warning.
  static std::unique_ptr<TunerAdviser> make(const TunerPlugin* plugin, const AdvisedRanks& ranks);
  ~TunerAdviser();
  TunerAdviser(const TunerAdviser&) = delete;
  TunerAdviser& operator=(const TunerAdviser&) = delete;

  // Returns the candidate that the plugin prefers; candidates are fastest first. Failures and invalid answers are
  // logged, the first one as a warning, and do not affect the choice.
  PluginChoice ask(const PluginCall& question, std::span<const Candidate> candidates);

 private:
  TunerAdviser(const TunerPlugin& plugin, void* context) : plugin_(plugin), context_(context) {}
  Result<PluginChoice> consult(const PluginCall& question, std::span<const Candidate> candidates) const;

  const TunerPlugin& plugin_;
  void* context_;
  std::mutex asking_;  // Plugins are called by one thread at a time.
  bool warned_ = false;
};

}  // namespace tutti
