#include "tools/tutti/doctor_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <utility>

#include "src/base/config.h"
#include "src/base/counted.h"
#include "src/base/log.h"
#include "src/base/status.h"
#include "src/communicator/autotuning/machine_name.h"
#include "src/communicator/joining/settings.h"
#include "src/tuner/plugin/plugin.h"
#include "src/tuner/tune_cache.h"
#include "tools/tutti/write_file.h"

namespace tutti::tool {
namespace {

// Checks whether a new file can replace `path`.
Status check_writable(const std::string& path) {
  const std::string folder = path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/') + 1);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return system_error("write into " + folder);
  struct stat there = {};
  if (::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return invalid_usage(path + " is a directory");
  return {};
}

// Checks whether a tune file can be read, locked and replaced. Follows symbolic links.
Status check_tune_file(const std::string& path) {
  TUTTI_CHECK_OK(read_tune_cache(path).status());
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) == nullptr) return check_writable(path);
  if (::access(real, W_OK) != 0) return system_error("write to " + std::string(real));
  return check_writable(real);
}

std::string useless_tune_file(std::vector<std::string>& warnings) {
  const std::string& path = config().tune_file;
  if (path.empty()) return "";
  const Status found = check_tune_file(path);
  if (found.ok()) return "";
  const std::string why = "TUTTI_TUNE_FILE is not usable: " + found.message();
  if (ineffective_tuning(config()).empty()) return why;
  warnings.push_back(why + "; autotuning is off, so it is not needed now");
  return "";
}

std::string useless_plugin() {
  if (!config().has_plugin()) return "";
  const Status opened = TunerPlugin::open(config().tuner_plugin).status();
  return opened.ok() ? "" : "TUTTI_TUNER_PLUGIN is not usable: " + opened.message();
}

std::string useless_dump() {
  if (config().topo_dump_file.empty()) return "";
  const Status writable = check_writable(config().topo_dump_file);
  return writable.ok() ? "" : "TUTTI_TOPO_DUMP_FILE is not usable: " + writable.message();
}

std::string useless_log() {
  if (config().log_file.empty()) return "";
  const Status writable = check_can_write(expand_log_file(config().log_file));
  return writable.ok() ? "" : "TUTTI_LOG_FILE is not usable: " + writable.message();
}

}  // namespace

void add_saved_results(DoctorReport& report) {
  const std::string& path = config().tune_file;
  Result<TuneCache> saved = path.empty() ? TuneCache() : read_tune_cache(path);
  if (!saved.ok() || saved.value().machines.empty()) return;
  DoctorSection section{"autotuning results in " + path};
  for (const TuneCache::Machine& machine : saved.value().machines) {
    const bool found = parse_machine_name(machine.name).has_value();
    const std::string state = found ? counted(machine.classes.size(), "class of calls", "classes of calls")
                                    : "not used: written by an earlier version";
    section.lines.emplace_back("machine", machine.name + ": " + state);
  }
  report.sections.push_back(std::move(section));
}

std::string useless_files(std::vector<std::string>& warnings) {
  const std::string idle = ineffective_tuning(config());
  if (!idle.empty()) warnings.push_back(idle);
  std::string all;
  for (const std::string& useless : {useless_tune_file(warnings), useless_plugin(), useless_dump(), useless_log()})
    if (!useless.empty()) all += (all.empty() ? "" : "; ") + useless;
  return all;
}

}  // namespace tutti::tool
