#include "tools/tutti/doctor_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "src/base/config.h"
#include "src/base/counted.h"
#include "src/base/status.h"
#include "src/communicator/joining/settings.h"
#include "src/communicator/planning/machine_name.h"
#include "src/tuner/plugin/plugin.h"
#include "src/tuner/tune_cache.h"
#include "tools/tutti/doctor_settings.h"

namespace tutti::tool {
namespace {

// Of a file that is replaced as a whole.
Status check_writable(const std::string& path) {
  const std::string folder = path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/') + 1);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return system_error("write into " + folder);
  struct stat there = {};
  if (::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return invalid_usage(path + " is a folder");
  return {};
}

// The same of one that is locked before, where links lead to.
Status check_tune_file(const std::string& path) {
  TUTTI_CHECK_OK(read_tune_cache(path).status());
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) == nullptr) return check_writable(path);
  if (::access(real, W_OK) != 0) return system_error("write to " + std::string(real));
  return check_writable(real);
}

// Whether what calls come to can be read there, and kept.
std::string useless_tune_file() {
  const std::string& path = config().tune_file;
  if (path.empty()) return "";
  const Status found = check_tune_file(path);
  if (found.ok()) return "";
  const std::string why = "TUTTI_TUNE_FILE is of no use: " + found.message();
  if (idle_tuning(config()).empty()) return why;
  warn(why + "; nothing is learnt now, so nobody will see it");
  return "";
}

std::string useless_plugin() {
  if (!config().has_plugin()) return "";
  const Status opened = TunerPlugin::open(config().tuner_plugin).status();
  return opened.ok() ? "" : "TUTTI_TUNER_PLUGIN is of no use: " + opened.message();
}

std::string useless_dump() {
  if (config().topo_dump_file.empty()) return "";
  const Status writable = check_writable(config().topo_dump_file);
  return writable.ok() ? "" : "TUTTI_TOPO_DUMP_FILE is of no use: " + writable.message();
}

}  // namespace

void print_kept_choices() {
  const std::string& path = config().tune_file;
  Result<TuneCache> kept = path.empty() ? TuneCache() : read_tune_cache(path);
  if (!kept.ok() || kept.value().machines.empty()) return;
  std::printf("choices kept in %s\n", path.c_str());
  for (const TuneCache::Machine& machine : kept.value().machines) {
    const std::string classes = counted(machine.classes.size(), "class of calls", "classes of calls");
    const bool found = parse_machine_name(machine.name).has_value();
    std::printf("  %s: %s\n", machine.name.c_str(),
                found ? classes.c_str() : "not looked for any more, since names say more now");
  }
}

std::string useless_files() {
  const std::string idle = idle_tuning(config());
  if (!idle.empty()) warn(idle);
  std::string all;
  for (const std::string& useless : {useless_tune_file(), useless_plugin(), useless_dump()})
    if (!useless.empty()) all += (all.empty() ? "" : "; ") + useless;
  return all;
}

}  // namespace tutti::tool
