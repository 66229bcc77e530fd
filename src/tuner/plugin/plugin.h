// A tuner plugin for NCCL, opened at run time, and what it says to the calls of one communicator. It sees our
// candidates as far as NCCL has a name for them (table.h).
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
  // "example": libnccl-tuner-example.so, as the loader finds it; with a slash or ".so" in it: that file.
  static Result<std::unique_ptr<TunerPlugin>> open(const std::string& name);
  // Opens it once for the process, and keeps it. Null for "" and "none", and where it cannot be opened, which the first
  // call logs as a warning. Any thread.
  static const TunerPlugin* of_process(const std::string& name);

  // With the file and the version: "Example (libnccl-tuner-example.so, version 5)".
  const std::string& name() const { return name_; }

 private:
  friend class TunerAdviser;
  explicit TunerPlugin(Library library) : opened_(std::move(library)) {}

  Library opened_;
  std::string name_;
  const nccl_tuner::PluginV5* newer_ = nullptr;  // One of both.
  const nccl_tuner::PluginV4* older_ = nullptr;
};

// What plugins are told of a communicator.
struct AdvisedRanks {
  std::uint64_t communicator = 0;  // The same on all its ranks.
  std::size_t ranks = 1;
  std::size_t hosts = 1;
  std::size_t fewest_per_host = 1;
  std::size_t max_per_host = 1;
};

// Of one rank of one communicator. Any thread.
class TunerAdviser {
 public:
  // Null where the plugin is, or if it does not start, which is a warning.
  static std::unique_ptr<TunerAdviser> make(const TunerPlugin* plugin, const AdvisedRanks& ranks);
  ~TunerAdviser();
  TunerAdviser(const TunerAdviser&) = delete;
  TunerAdviser& operator=(const TunerAdviser&) = delete;

  // Which of the candidates (the best first) the plugin wants. Its failures and answers that make no sense are logged,
  // the first as a warning, and leave the choice as it is.
  PluginChoice ask(const Question& question, std::span<const Candidate> candidates);

 private:
  TunerAdviser(const TunerPlugin& plugin, void* context) : plugin_(plugin), context_(context) {}
  Result<PluginChoice> consult(const Question& question, std::span<const Candidate> candidates) const;

  const TunerPlugin& plugin_;
  void* context_;
  std::mutex asking_;  // Plugins expect a thread at a time.
  bool warned_ = false;
};

}  // namespace tutti
