#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "include/tutti/tutti.h"
#include "src/base/config.h"
#include "src/base/file.h"
#include "src/base/own_cpus.h"
#include "src/bootstrap/address.h"
#include "src/communicator/call/carriers.h"
#include "src/communicator/device/listing.h"
#include "src/communicator/joining/network_choice.h"
#include "src/communicator/joining/own_host.h"
#include "src/topology/discover/discover.h"
#include "tools/tutti/command_line.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/doctor_files.h"
#include "tools/tutti/doctor_report.h"
#include "tools/tutti/doctor_settings.h"
#include "tools/tutti/options.h"

namespace tutti::tool {

namespace {

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
  return std::to_string(mine.size()) + " of " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) +
         " usable by this process";
}

std::string shared_memory() {
  struct statvfs files = {};
  if (::statvfs("/dev/shm", &files) != 0) return system_error("statvfs /dev/shm").message();
  return megabytes(files.f_blocks * files.f_frsize) + ", " + megabytes(files.f_bavail * files.f_frsize) +
         " free (Tutti needs none of it)";
}

DoctorSection machine() {
  utsname system = {};
  ::uname(&system);
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  return {"machine",
          {{"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
           {"processors", cores()},
           {"vector units", cpu_features()},
           {"memory", megabytes(pages * ::sysconf(_SC_PAGESIZE))},
           {"locked memory limit", limit(RLIMIT_MEMLOCK, " bytes")},
           {"open files limit", limit(RLIMIT_NOFILE, "")},
           {"/dev/shm", shared_memory()}}};
}

// Ranks connect to their own addresses through the loopback interface. Returns why that fails; empty if it works.
std::string loopback_fault() {
  const auto connects = []() -> Status {
    const Socket listener = TUTTI_TRY(listen_at({loopback_address(), "", SOCK_STREAM}));
    return connect_to({TUTTI_TRY(local_address(listener)), "", SOCK_STREAM}).status();
  };
  return connects().message();
}

DoctorSection transports() {
  DoctorSection section{"transports"};
  const File memory{::memfd_create("tutti doctor", MFD_CLOEXEC)};
  section.lines.emplace_back("shm", memory ? "works" : "off: " + system_error("memfd_create").message());
  Result<Address> address = own_address(config().socket_ifname);
  if (address.ok()) {
    const std::string shown = describe(address.value());
    section.lines.emplace_back("tcp", shown.substr(0, shown.rfind(':')) + " (" + interface_of(address.value()) + ")");
  } else {
    section.lines.emplace_back("tcp", "off: " + std::move(address).status().message());
  }
  for (const std::string& idle : unmatched_entries(config().socket_ifname))
    section.lines.emplace_back("tcp", "without " + idle);
  for (auto& [name, found] : describe_carriers())
    section.lines.emplace_back(name, found.ok() ? found.value() : "off: " + std::move(found).status().message());
  section.lines.emplace_back("between hosts", describe_between_hosts());
  return section;
}

// Describes the NUMA domain of this process that ranks on host memory report to each other.
std::string own_numa_domain() {
  Result<Location> location = own_location("");
  if (!location.ok()) return "unknown: " + std::move(location).status().message();
  if (location.value().domain != kNoDomain) return "in NUMA domain " + std::to_string(location.value().domain);
  return "in no single NUMA domain (not bound to one, or unknown)";
}

DoctorSection topology() {
  DoctorSection section{"topology", {{"this process", own_numa_domain()}}};
  Result<Discovery> found = discover();
  if (!found.ok()) {
    section.lines.emplace_back("discovery", "off: " + std::move(found).status().message());
    return section;
  }
  for (const SourceReport& source : found.value().sources)
    section.lines.emplace_back(source.source, (source.found ? "" : "off: ") + source.words);
  return section;
}

DoctorSection devices() {
  DoctorSection section{"GPUs"};
  Result<std::vector<std::string>> found = list_devices();
  if (!found.ok()) {
    section.lines.emplace_back("cuda", "off: " + std::move(found).status().message());
    return section;
  }
  for (const std::string& device : found.value()) section.lines.emplace_back("cuda", device);
  for (const std::string& way : list_gpudirect()) section.lines.emplace_back("gpudirect", way);
  return section;
}

}  // namespace

Status version_command(int, char**) {
  std::printf("tutti %d.%d.%d\n", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH);
  return {};
}

Status doctor_command(int argc, char** argv) {
  const GivenOptions given = TUTTI_TRY(parse_options(describe_doctor(), argc, argv, [](int key, const std::string&) {
    return key == kJson ? Status() : not_implemented();
  }));
  DoctorReport report{.sections = {machine(), transports(), devices(), topology()}};
  add_saved_results(report);
  for (std::string& note : read_config(environment()).notes) report.warnings.push_back(std::move(note));
  const std::string refused = refused_here(report.warnings);
  const std::string useless = useless_files(report.warnings);
  const std::string unreachable = loopback_fault();
  const auto add_error = [&](const std::string& error) {
    if (!error.empty()) report.error += (report.error.empty() ? "" : "\n") + error;
  };
  if (!refused.empty()) add_error("no communicator can be created:" + refused);
  if (!unreachable.empty()) add_error("no rank can join: " + unreachable);
  add_error(refused_by_clients_here());
  add_error(useless);
  std::fputs((given.has(kJson) ? doctor_json(report) : doctor_text(report)).c_str(), stdout);
  return report.error.empty() ? Status() : invalid_usage(report.error);
}

}  // namespace tutti::tool
