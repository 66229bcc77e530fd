#include "perf/tool/host_part.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "perf/tool/children.h"
#include "perf/tool/fail.h"
#include "perf/tool/process.h"

namespace perf {
namespace {

constexpr const char* kMark = "tutti unique id ";
constexpr const char* kDigits = "0123456789abcdef";

[[noreturn]] void run_child(const Collective& collective, const Options& options, const Process& process, int id_end) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  release_child_signals();
  tutti_unique_id id;
  if (process.number == 0) {
    ::close(id_end);
    id = make_id();
    std::fputs(line_of(id).c_str(), stdout);
    std::fflush(stdout);
  } else {
    id = receive_id(id_end);
  }
  std::exit(run_process(collective, options, process, id));
}

// Input from the program that started this one: one line with the id, then end of file when that program ends.
class Starter {
 public:
  Starter(const Children& children, int id_end, std::uint32_t readers)
      : children_(children), id_end_(id_end), readers_(readers) {}

  bool receive() {
    std::array<char, 512> came;
    const ssize_t count = ::read(STDIN_FILENO, came.data(), came.size());
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) {
      children_.kill_all();
      fail("the program that started this one has ended, or the connection to it is closed");
    }
    text_.append(came.data(), static_cast<std::size_t>(count));
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos || id_end_ < 0) return true;
    tutti_unique_id id;
    if (!read_line(text_.substr(0, end), id)) fail("--host-part: invalid id on standard input");
    for (std::uint32_t i = 0; i < readers_; ++i) send_id(id_end_, id);
    ::close(id_end_);
    id_end_ = -1;
    return true;
  }

 private:
  const Children& children_;
  int id_end_;
  std::uint32_t readers_;
  std::string text_;
};

}  // namespace

std::string line_of(const tutti_unique_id& id) {
  std::string line = kMark;
  for (const char byte : id.bytes) {
    line += kDigits[static_cast<unsigned char>(byte) >> 4];
    line += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return line + "\n";
}

bool read_line(const std::string& line, tutti_unique_id& id) {
  const std::size_t mark = std::strlen(kMark);
  if (line.size() != mark + 2 * sizeof id.bytes || line.compare(0, mark, kMark) != 0) return false;
  for (std::size_t i = 0; i < sizeof id.bytes; ++i) {
    const char* high = std::strchr(kDigits, line[mark + 2 * i]);
    const char* low = std::strchr(kDigits, line[mark + 2 * i + 1]);
    if (high == nullptr || low == nullptr) return false;
    id.bytes[i] = static_cast<char>((high - kDigits) << 4 | (low - kDigits));
  }
  return true;
}

int run_part(const Collective& collective, const Options& options) {
  ::signal(SIGPIPE, SIG_IGN);  // For writes to ended processes: watch() reports their exit.
  hold_child_signals();
  share_failures();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe: %s", std::strerror(errno));
  const HostPart& part = options.part;
  const pid_t parent = ::getpid();
  char host[256] = "";
  (void)::gethostname(host, sizeof host - 1);
  Children children;
  for (std::uint32_t here = 0; here < part.processes; ++here) {
    const auto number = static_cast<int>(part.first + here);
    const pid_t child = ::fork();
    if (child < 0) fail("fork: %s", std::strerror(errno));
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(2);
      ::signal(SIGPIPE, SIG_DFL);
      ::close(ends[1]);  // Otherwise this process would wait for itself to send the id.
      run_child(collective, options,
                {number, static_cast<int>(here), static_cast<int>(part.of), static_cast<int>(part.processes)}, ends[0]);
    }
    children.all.push_back({"process " + std::to_string(number) + " on " + host, child});
  }
  ::close(ends[0]);
  Starter starter(children, ends[1], part.processes - (part.first == 0 ? 1 : 0));
  children.descriptor = STDIN_FILENO;
  children.received = [&starter] { return starter.receive(); };
  const int result = watch(children);
  return result <= 1 ? kPartEnded + result : result;
}

}  // namespace perf
