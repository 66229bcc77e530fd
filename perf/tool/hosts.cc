#include "perf/tool/hosts.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "perf/tool/fail.h"

namespace perf {
namespace {

constexpr std::uint32_t kMaxProcesses = 1024;

bool parse(const std::string& text, std::uint32_t& number) {
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && last == end;
}

[[noreturn]] void refuse(const std::string& word, const char* why) {
  fail("--hosts: \"%s\" %s: pass a list of host:processes, such as node1:2,node2:2", word.c_str(), why);
}

// Rejects names that begin with "-", which ssh would parse as an option.
Host parse_host(const std::string& word) {
  Host host;
  std::string number;
  const std::size_t bracket = word.find(']');
  const std::size_t colon = word.find(':', bracket == std::string::npos ? 0 : bracket);
  host.name = word.substr(0, colon);
  if (colon != std::string::npos) {
    number = word.substr(colon + 1);
    if (number.find(':') != std::string::npos) refuse(word, "has several colons and needs brackets: [fd00::1]:2");
    if (!parse(number, host.processes) || host.processes == 0 || host.processes > kMaxProcesses)
      refuse(word, "has no number of processes from 1 to 1024 after its colon");
  }
  const std::size_t user = host.name.rfind('@') + 1;  // 0: no user is given.
  if (host.name.size() > user + 2 && host.name[user] == '[' && host.name.ends_with(']')) {
    host.name.pop_back();
    host.name.erase(user, 1);
  }
  if (host.name.size() == user || host.name.starts_with('-')) refuse(word, "is not a host name");
  const auto strange = [](unsigned char c) { return std::isalnum(c) == 0 && std::strchr("._-:@%", c) == nullptr; };
  if (std::any_of(host.name.begin(), host.name.end(), strange))
    refuse(word, "has characters that are invalid in host names");
  return host;
}

}  // namespace

std::vector<Host> parse_hosts(const std::string& list) {
  std::vector<Host> hosts;
  std::size_t begin = 0, end = 0;
  for (; end != std::string::npos; begin = end + 1) {
    end = list.find(',', begin);
    hosts.push_back(parse_host(list.substr(begin, end == std::string::npos ? end : end - begin)));
  }
  return hosts;
}

std::string text_of(const HostPart& part) {
  return std::to_string(part.first) + ":" + std::to_string(part.processes) + ":" + std::to_string(part.of);
}

HostPart parse_part(const std::string& text) {
  HostPart part;
  const std::size_t one = text.find(':'), two = text.find(':', one + 1);
  const bool right = one != std::string::npos && two != std::string::npos && parse(text.substr(0, one), part.first) &&
                     parse(text.substr(one + 1, two - one - 1), part.processes) &&
                     parse(text.substr(two + 1), part.of) && part.processes > 0 && part.processes <= kMaxProcesses &&
                     part.first + part.processes <= part.of;
  if (!right) fail("--host-part %s is invalid: only --hosts passes this option", text.c_str());
  return part;
}

}  // namespace perf
