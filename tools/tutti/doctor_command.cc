#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "include/tutti/tutti.h"
#include "src/base/config.h"
#include "src/base/own_cpus.h"
#include "src/base/owned.h"
#include "src/bootstrap/address.h"
#include "src/communicator/carriers.h"
#include "src/communicator/device/listing.h"
#include "src/communicator/joining/between_hosts.h"
#include "src/communicator/joining/own_host.h"
#include "src/topology/discover/discover.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/doctor_files.h"
#include "tools/tutti/doctor_settings.h"

namespace tutti::tool {

namespace {

using File = Owned<int, ::close, -1>;

void print_line(const char* what, const std::string& value) { std::printf("  %-24s %s\n", what, value.c_str()); }

std::string megabytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string limit(int resource, const char* unit) {
  rlimit limits = {};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limits) != 0) return system_error("getrlimit").message();
  if (limits.rlim_cur == RLIM_INFINITY) return "unlimited";
  return std::to_string(limits.rlim_cur) + unit;
}

std::string cpu_features() {
  std::string features;
  if (__builtin_cpu_supports("avx2")) features += " avx2";
  if (__builtin_cpu_supports("f16c")) features += " f16c";
  if (__builtin_cpu_supports("avx512f")) features += " avx512f";
  if (__builtin_cpu_supports("avx512bw")) features += " avx512bw";
  if (__builtin_cpu_supports("avx512vl")) features += " avx512vl";
  if (__builtin_cpu_supports("avx512dq")) features += " avx512dq";
  return features.empty() ? "baseline only" : features.substr(1);
}

std::string cores() {
  const std::vector<std::uint32_t> mine = own_cpus();
  if (mine.empty()) return system_error("sched_getaffinity").message();
  return std::to_string(mine.size()) + " for this process, of " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
}

std::string shared_memory() {
  struct statvfs files = {};
  if (::statvfs("/dev/shm", &files) != 0) return system_error("statvfs /dev/shm").message();
  return megabytes(files.f_blocks * files.f_frsize) + ", " + megabytes(files.f_bavail * files.f_frsize) +
         " free (not needed: lanes are anonymous)";
}

void print_machine() {
  utsname system = {};
  ::uname(&system);
  std::printf("machine\n");
  print_line("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
  print_line("processors", cores());
  print_line("vector units", cpu_features());
  print_line("memory", megabytes(static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)));
  print_line("locked memory", limit(RLIMIT_MEMLOCK, " bytes"));
  print_line("open files", limit(RLIMIT_NOFILE, ""));
  print_line("/dev/shm", shared_memory());
}

void print_transports() {
  const File memory{::memfd_create("tutti doctor", MFD_CLOEXEC)};
  std::printf("transports\n");
  print_line("shm", memory ? "works" : "off: " + system_error("memfd_create").message());
  Result<Address> address = own_address(config().socket_ifname);
  if (address.ok()) {
    const std::string shown = describe(address.value());
    print_line("tcp", shown.substr(0, shown.rfind(':')) + " (" + interface_of(address.value()) + ")");
  } else {
    print_line("tcp", "off: " + std::move(address).status().message());
  }
  for (const std::string& idle : idle_entries(config().socket_ifname)) print_line("tcp", "without " + idle);
  for (auto& [name, found] : describe_carriers())
    print_line(name.c_str(), found.ok() ? found.value() : "off: " + std::move(found).status().message());
  print_line("between hosts", describe_between_hosts());
}

// As ranks on host memory would tell it to each other.
std::string own_place() {
  Result<Location> place = own_location("");
  if (!place.ok()) return "unknown: " + std::move(place).status().message();
  if (place.value().domain != kNoDomain) return "in NUMA domain " + std::to_string(place.value().domain);
  return "in no single NUMA domain: bound to none, or none is known";
}

void print_topology() {
  std::printf("topology\n");
  print_line("this process", own_place());
  Result<Discovery> found = discover();
  if (!found.ok()) return print_line("", "off: " + std::move(found).status().message());
  for (const SourceReport& source : found.value().sources)
    print_line(source.source.c_str(), (source.found ? "" : "off: ") + source.words);
}

void print_devices() {
  Result<std::vector<std::string>> devices = list_devices();
  std::printf("GPUs\n");
  if (!devices.ok()) return print_line("cuda", "off: " + std::move(devices).status().message());
  for (const std::string& device : devices.value()) print_line("cuda", device);
  for (const std::string& way : list_gpudirect()) print_line("gpudirect", way);
}

void print_settings() {
  std::printf("settings\n");
  for (const Setting& setting : settings()) {
    const std::string value = setting.value.empty() ? "(none)" : setting.value;
    std::printf("  %-24s %-12s %-20s %s\n", setting.variable->name, value.c_str(), ("from " + setting.source).c_str(),
                setting.variable->description);
  }
}

}  // namespace

Status version_command() {
  std::printf("tutti %d.%d.%d\n", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH);
  return {};
}

Status doctor_command() {
  TUTTI_CHECK_OK(version_command());
  print_machine();
  print_transports();
  print_topology();
  print_devices();
  print_settings();
  print_kept_choices();
  const std::string text = refused_here();
  const std::string useless = useless_files();
  if (text.empty()) return useless.empty() ? Status() : invalid_usage(useless);
  return invalid_usage("no communicator can be made: " + text + (useless.empty() ? "" : "; " + useless));
}

}  // namespace tutti::tool
