// Hosts of a run, as in --hosts "node1:2,user@node2:2,[fd00::3]:1": each with its number of processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perf {

struct Host {
  std::string name;  // Argument for ssh, without the number and without brackets.
  std::uint32_t processes = 1;
};

// Fails with a message if `list` is malformed.
std::vector<Host> parse_hosts(const std::string& list);

// The processes of one host, as passed to the program there: "2:4:8" is processes 2 to 5 of 8.
struct HostPart {
  std::uint32_t first = 0;
  std::uint32_t processes = 0;  // 0: not started by --hosts.
  std::uint32_t of = 0;
};
std::string text_of(const HostPart& part);
HostPart parse_part(const std::string& text);

}  // namespace perf
