#include "tools/tutti/doctor_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "src/base/config.h"
#include "src/base/status.h"
#include "src/tuner/plugin/plugin.h"
#include "src/tuner/tune_cache.h"
#include "tools/tutti/doctor_settings.h"

namespace tutti {
namespace {

bool has_plugin() { return !config().tuner_plugin.empty() && config().tuner_plugin != "none"; }

// Why nothing is learnt, whatever TUTTI_TUNE says; empty: it is as that says.
std::string keeps_from_learning() {
  if (config().deterministic) return "TUTTI_DETERMINISTIC is 1";
  if (has_plugin()) return "TUTTI_TUNER_PLUGIN names who chooses";
  const Config& from = config();
  if (!from.algorithm.empty())
    return std::string(from.nccls_algorithm ? "NCCL_ALGO" : "TUTTI_ALGORITHM") + " forces " + from.algorithm;
  const bool only_on_gpus = from.nccls_protocol && from.protocol == "rows";
  if (from.protocol.empty() || only_on_gpus) return "";
  return std::string(from.nccls_protocol ? "NCCL_PROTO" : "TUTTI_PROTOCOL") + " forces " + from.protocol;
}

// Of a file that is replaced as a whole.
Status check_writable(const std::string& path) {
  const std::string folder = path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/') + 1);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return system_error("write into " + folder);
  struct stat there = {};
  if (::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return invalid_usage(path + " is a folder");
  return {};
}

// Whether what calls come to can be read there, and kept.
std::string useless_tune_file() {
  const std::string& path = config().tune_file;
  if (path.empty()) return "";
  Status found = read_tune_cache(path).status();
  if (found.ok()) found = check_writable(path);
  if (found.ok()) return "";
  const std::string why = "TUTTI_TUNE_FILE is of no use: " + found.message();
  if (config().tune != Tune::off && keeps_from_learning().empty()) return why;
  warn(why + "; nothing is learnt now, so nobody will see it");
  return "";
}

std::string useless_plugin() {
  if (!has_plugin()) return "";
  const Status opened = TunerPlugin::open(config().tuner_plugin).status();
  return opened.ok() ? "" : "TUTTI_TUNER_PLUGIN is of no use: " + opened.message();
}

std::string useless_dump() {
  if (config().topo_dump_file.empty()) return "";
  const Status writable = check_writable(config().topo_dump_file);
  return writable.ok() ? "" : "TUTTI_TOPO_DUMP_FILE is of no use: " + writable.message();
}

}  // namespace

std::string useless_files() {
  if (config().tune != Tune::off && !keeps_from_learning().empty())
    warn("TUTTI_TUNE has no effect, since " + keeps_from_learning());
  std::string all;
  for (const std::string& useless : {useless_tune_file(), useless_plugin(), useless_dump()})
    if (!useless.empty()) all += (all.empty() ? "" : "; ") + useless;
  return all;
}

}  // namespace tutti
