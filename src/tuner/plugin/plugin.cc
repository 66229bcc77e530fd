#include "src/tuner/plugin/plugin.h"

#include <cstdarg>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/log.h"
#include "src/base/plugin_log.h"

namespace tutti {
namespace {

using namespace nccl_tuner;  // NOLINT(google-build-using-namespace): names of one header of ours.

void log_for_tuner_plugin(std::int32_t level, unsigned long, const char*, std::int32_t, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  log_for_plugin("tuner plugin", level, format, arguments);
  va_end(arguments);
}

std::string file_of(const std::string& name) {
  const bool file = name.find('/') != std::string::npos || name.find(".so") != std::string::npos;
  return file ? name : "libnccl-tuner-" + name + ".so";
}

// Returns an exported object; valid while the library is open.
template <typename Plugin>
const Plugin* find_plugin(const Library& library, const char* symbol) {
  const Plugin* object = nullptr;
  (void)library.find(symbol, object);
  return object;
}

std::string error_text(const char* function, std::int32_t error) {
  return std::string(function) + " failed with error " + std::to_string(error);
}

}  // namespace

Result<std::unique_ptr<TunerPlugin>> TunerPlugin::open(const std::string& name) {
  const std::string file = file_of(name);
  Result<Library> library = Library::open(file);
  if (!library.ok()) return std::move(library).status();
  std::unique_ptr<TunerPlugin> made(new TunerPlugin(std::move(library).value()));
  made->newer_ = find_plugin<PluginV5>(made->opened_, "ncclTunerPlugin_v5");
  if (made->newer_ == nullptr) made->older_ = find_plugin<PluginV4>(made->opened_, "ncclTunerPlugin_v4");
  if (made->newer_ == nullptr && made->older_ == nullptr)
    return unsupported(file + " has neither ncclTunerPlugin_v5 nor ncclTunerPlugin_v4, the supported versions");
  const bool newer = made->newer_ != nullptr;
  const bool whole = newer ? made->newer_->init != nullptr && made->newer_->advise != nullptr
                           : made->older_->init != nullptr && made->older_->advise != nullptr;
  if (!whole) return unsupported(file + " does not define init or getCollInfo");
  const char* own = newer ? made->newer_->name : made->older_->name;
  made->name_ = std::string(own == nullptr ? "unnamed" : own) + " (" + file + ", version " + (newer ? "5" : "4") + ")";
  return made;
}

// Never closed, because threads may outlive static objects.
const TunerPlugin* TunerPlugin::of_process(const std::string& name) {
  if (name.empty() || name == "none") return nullptr;
  static std::mutex& mutex = *new std::mutex;
  static auto& opened = *new std::map<std::string, std::unique_ptr<TunerPlugin>>;
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = opened.try_emplace(name);
  if (!fresh) return entry->second.get();
  Result<std::unique_ptr<TunerPlugin>> plugin = open(name);
  if (plugin.ok()) {
    entry->second = std::move(plugin).value();
    log(LogLevel::info, "tuner plugin %s", entry->second->name().c_str());
  } else {
    log(LogLevel::warn, "tuner plugin %s (TUTTI_TUNER_PLUGIN or NCCL_TUNER_PLUGIN) could not be loaded: %s",
        name.c_str(), std::move(plugin).status().message().c_str());
  }
  return entry->second.get();
}

std::unique_ptr<TunerAdviser> TunerAdviser::make(const TunerPlugin* plugin, const AdvisedRanks& ranks) {
  if (plugin == nullptr) return nullptr;
  void* context = nullptr;
  std::int32_t error = kSuccess;
  if (plugin->newer_ != nullptr) {
    NvlinkDomains domains = {static_cast<std::int32_t>(ranks.hosts), static_cast<std::int32_t>(ranks.min_per_host),
                             static_cast<std::int32_t>(ranks.max_per_host)};
    Constants constants = {};  // Ignored: they belong to NCCL's cost model.
    error = plugin->newer_->init(&context, ranks.communicator, ranks.ranks, ranks.hosts, log_for_tuner_plugin, &domains,
                                 &constants);
  } else {
    error = plugin->older_->init(ranks.ranks, ranks.hosts, log_for_tuner_plugin, &context);
  }
  if (error == kSuccess) return std::unique_ptr<TunerAdviser>(new TunerAdviser(*plugin, context));
  log(LogLevel::warn, "tuner plugin %s is not used: %s", plugin->name().c_str(), error_text("init", error).c_str());
  return nullptr;
}

TunerAdviser::~TunerAdviser() {
  const auto end = plugin_.newer_ != nullptr ? plugin_.newer_->finalize : plugin_.older_->destroy;
  const std::int32_t error = end == nullptr ? kSuccess : end(context_);
  if (error == kSuccess) return;
  const char* function = plugin_.newer_ != nullptr ? "finalize" : "destroy";
  log(LogLevel::warn, "tuner plugin %s: %s", plugin_.name().c_str(), error_text(function, error).c_str());
}

Result<PluginChoice> TunerAdviser::consult(const PluginCall& question, std::span<const Candidate> candidates) const {
  const std::optional<std::int32_t> collective = number_of(question.collective);
  const Projection ours = project(question.collective, candidates);
  if (!collective || !ours.any) return PluginChoice();
  Table table = ours.table;
  std::int32_t channels = 0;
  const Advise advise = plugin_.newer_ != nullptr ? plugin_.newer_->advise : plugin_.older_->advise;
  const std::int32_t error =
      advise(context_, *collective, bytes_of(question), 1, reinterpret_cast<float**>(table.data()), kRows, kColumns,
             question.registered ? 1 : 0, &channels);
  if (error != kSuccess) return Status(Code::unsupported, error_text("getCollInfo", error));
  if (const std::string unavailable = preferred_unavailable(ours, table); !unavailable.empty() && logs(LogLevel::info))
    log(LogLevel::info, "tuner plugin %s selects %s, which is not available for %s", plugin_.name().c_str(),
        unavailable.c_str(), tutti::name(question.collective));
  return judge(ours, table, question.thread_blocks == 0 ? 0 : channels);
}

PluginChoice TunerAdviser::ask(const PluginCall& question, std::span<const Candidate> candidates) {
  const std::lock_guard lock(asking_);
  Result<PluginChoice> advised = consult(question, candidates);
  if (advised.ok()) return advised.value();
  log(std::exchange(warned_, true) ? LogLevel::info : LogLevel::warn,
      "tuner plugin %s is ignored for %s of %llu bytes: %s", plugin_.name().c_str(), tutti::name(question.collective),
      static_cast<unsigned long long>(bytes_of(question)), std::move(advised).status().message().c_str());
  return {};
}

}  // namespace tutti
