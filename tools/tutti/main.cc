#include <cstdio>
#include <new>
#include <string_view>
#include <vector>

#include "src/base/nearest_name.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/help.h"

namespace tutti::tool {
namespace {

struct Runner {
  std::string_view name;
  Status (*run)(int argc, char** argv);
};
constexpr Runner kRunners[] = {{"plan", plan_command},         {"verify", verify_command}, {"explain", explain_command},
                               {"estimate", estimate_command}, {"topo", topo_command},     {"doctor", doctor_command},
                               {"simulate", simulate_command}};

Status print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return {};
}

Status unknown_command(std::string_view name) {
  if (name == "version" || name == "help")
    return invalid_argument("the command '" + std::string(name) + "' has no options");
  std::vector<std::string_view> known;
  for (const Command& command : commands()) known.emplace_back(command.name);
  known.insert(known.end(), {"version", "help"});
  return invalid_argument("unknown command '" + std::string(name) + "': " + suggestion(name, known));
}

Status check_end(int argc, char** argv, int words) {
  if (argc <= words) return {};
  return invalid_argument("unexpected argument '" + std::string(argv[words]) + "'");
}

bool is_help_option(std::string_view word) { return word == "--help" || word == "-h"; }

// Runs `tutti help [COMMAND]`.
Status help(int argc, char** argv) {
  if (argc > 2 && is_help_option(argv[2])) --argc;
  TUTTI_CHECK_OK(check_end(argc, argv, 3));
  if (argc < 3) return print(overview());
  const Command* command = find_command(argv[2]);
  return command == nullptr ? unknown_command(argv[2]) : print(help_of(*command));
}

Status run(int argc, char** argv) {
  const std::string_view first = argc < 2 ? "help" : argv[1];
  if (first == "help") return help(argc, argv);
  if (is_help_option(first)) {
    TUTTI_CHECK_OK(check_end(argc, argv, 2));
    return print(overview());
  }
  if (first == "--version" || first == "version") {
    TUTTI_CHECK_OK(check_end(argc, argv, 2));
    return version_command(argc - 1, argv + 1);
  }
  const Command* command = find_command(first);
  if (command == nullptr) return unknown_command(first);
  for (int at = 2; at < argc; ++at) {
    if (is_help_option(argv[at])) return print(help_of(*command));
  }
  for (const Runner& runner : kRunners)
    if (runner.name == first) return runner.run(argc - 1, argv + 1);
  return internal_error("the command is not implemented");
}

// Like run(), but reports an error if the request needs more memory than the machine has.
Status run_in_memory(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return system_error("allocate memory for so many ranks");
  }
}

// Flushes standard output. Reports failed writes, such as on a full disk.
Status finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return system_error("write to standard output");
}

}  // namespace
}  // namespace tutti::tool

int main(int argc, char** argv) {
  tutti::Status status = tutti::tool::run_in_memory(argc, argv);
  if (status.ok()) status = tutti::tool::finish_output();
  if (status.ok()) return 0;
  std::fflush(stdout);  // If both go to one file, the error follows the output.
  std::fprintf(stderr, "tutti: %s\n", status.message().c_str());
  return status.code() == tutti::Code::invalid_argument ? 2 : 1;
}
