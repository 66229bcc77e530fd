#include "perf/tool/start_on_hosts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "perf/tool/children.h"
#include "perf/tool/fail.h"
#include "perf/tool/host_part.h"

namespace perf {
namespace {

constexpr int kNoFolder = 125;   // Exit status of the command without the folder; the program's own are 0 to 2.
constexpr int kNoCommand = 126;  // Exit status of a shell: not executable.
constexpr int kNoProgram = 127;  // Exit status of a shell: not found.
constexpr int kSshFailed = 255;

using Words = std::vector<std::string>;

// Quotes a word for the shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

std::string own_program() {
  std::array<char, 4096> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) fail("path of this program: %s", std::strerror(errno));
  return {path.data(), static_cast<std::size_t>(length)};
}

std::string own_folder() {
  std::array<char, 4096> path;
  if (::getcwd(path.data(), path.size()) == nullptr) fail("path of the current folder: %s", std::strerror(errno));
  return path.data();
}

// Environment for the other hosts: settings of the library and of libraries that it opens, without this process's
// launcher variables.
Words passed_variables() {
  Words passed;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto begins = [text](const char* with) { return text.starts_with(with); };
    const auto list = {"TUTTI_", "NCCL_", "UCX_", "LD_LIBRARY_PATH="};
    const auto own = {"TUTTI_RANK=", "TUTTI_RANKS=", "TUTTI_ROOT="};
    if (std::any_of(list.begin(), list.end(), begins) && std::none_of(own.begin(), own.end(), begins))
      passed.emplace_back(text);
  }
  return passed;
}

// Returns the remote command: the same folder, the same arguments.
std::string command_for(const Options& options, const HostPart& part) {
  std::string command = "cd " + quoted(own_folder()) + " || exit " + std::to_string(kNoFolder) + "; exec env";
  for (const std::string& variable : passed_variables()) command += " " + quoted(variable);
  command += " " + quoted(own_program()) + " --host-part " + text_of(part);  // First: the words may end with "--".
  for (const std::string& word : options.words) command += " " + quoted(word);
  return command;
}

std::string describe_failure(int status) {
  if (!WIFEXITED(status)) return describe_end(status);
  const std::string ended = describe_end(status) + ": ";
  switch (WEXITSTATUS(status)) {
    case 0:
    case 1: return ended + "the program did not start; check that the command of --ssh runs its arguments";
    case kSshFailed: return ended + "the connection or the login failed, or the connection broke; see above";
    case kNoFolder: return ended + "the folder " + own_folder() + " of this run does not exist there";
    case kNoCommand: return ended + "the program cannot be executed; see above";
    case kNoProgram:
      return ended + "the program " + own_program() + " does not exist there; it must have the same path on all hosts";
    default: return describe_end(status);
  }
}

struct Pipe {
  int read_end = -1, write_end = -1;
};

// Close-on-exec; children receive it through dup2().
Pipe open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe: %s", std::strerror(errno));
  return {ends[0], ends[1]};
}

[[noreturn]] void become(const Words& words, int input, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  release_child_signals();
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  if (output >= 0) ::dup2(output, STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "%s: start %s: %s\n", program_name(), arguments[0], std::strerror(errno));
  ::_exit(kNoCommand);
}

// Output of the first host: the id, then the table of the run.
class Output {
 public:
  Output(int from, const std::vector<int>& inputs) : from_(from), inputs_(inputs) {}

  bool receive() {
    std::array<char, 4096> came;
    const ssize_t count = ::read(from_, came.data(), came.size());
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) return false;
    text_.append(came.data(), static_cast<std::size_t>(count));
    while (!reported_) {  // Shells print lines of their own first.
      const std::size_t end = text_.find('\n');
      if (end == std::string::npos) return true;
      notify(text_.substr(0, end));
      text_.erase(0, end + 1);
    }
    show(text_);
    text_.clear();
    return true;
  }

 private:
  void notify(const std::string& line) {
    tutti_unique_id id;
    reported_ = read_line(line, id);
    if (!reported_) return show(line + "\n");
    const std::string reported = line_of(id);
    for (const int input : inputs_)
      (void)!::write(input, reported.data(),
                     reported.size());  // Writes to hosts that are gone fail; that is detected elsewhere.
  }
  static void show(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  int from_;
  const std::vector<int>& inputs_;
  std::string text_;
  bool reported_ = false;
};

}  // namespace

int start_on_hosts(const Options& options) {
  ::signal(SIGPIPE, SIG_IGN);
  hold_child_signals();
  Words words;
  std::istringstream ssh(options.ssh);
  for (std::string word; ssh >> word;) words.push_back(word);
  if (words.empty()) fail("--ssh names no program");
  std::uint32_t processes = 0;
  for (const Host& host : options.hosts) processes += host.processes;

  Children children;
  std::vector<int> inputs;
  const Pipe output = open_pipe();
  HostPart part = {0, 0, processes};
  for (const Host& host : options.hosts) {
    part.processes = host.processes;
    Words all = words;
    all.push_back(host.name);
    all.push_back(command_for(options, part));
    const Pipe input = open_pipe();
    const pid_t child = ::fork();
    if (child < 0) fail("fork: %s", std::strerror(errno));
    if (child == 0) become(all, input.read_end, part.first == 0 ? output.write_end : -1);
    ::close(input.read_end);
    inputs.push_back(input.write_end);
    children.all.push_back({"host " + host.name, child});
    part.first += part.processes;
  }
  ::close(output.write_end);

  Output first(output.read_end, inputs);
  children.descriptor = output.read_end;
  children.received = [&first] { return first.receive(); };
  children.describe = describe_failure;
  children.good = kPartEnded;
  // The hosts' programs end when their inputs do; ssh itself may not, if the host is gone.
  children.end = [&] {
    if (inputs.empty()) return children.kill_all();
    for (const int input : inputs) ::close(input);
    inputs.clear();
  };
  const int result = watch(children);
  while (first.receive()) {  // Remaining input.
  }
  return result;
}

}  // namespace perf
