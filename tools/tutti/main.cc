#include <cstdio>
#include <cstring>
#include <new>

#include "tools/tutti/commands.h"
#include "tools/tutti/usage.h"

namespace {

tutti::Status run(int argc, char** argv) {
  const auto is = [&](int at, const char* word) { return at < argc && std::strcmp(argv[at], word) == 0; };
  if (is(1, "topo")) return tutti::tool::topo_command(argc, argv);
  if (is(1, "explain")) return tutti::tool::explain_command(argc, argv);
  if (is(1, "simulate")) return tutti::tool::simulate_command(argc, argv);
  const tutti::tool::Request request = TUTTI_TRY(tutti::tool::parse_request(argc, argv));
  if (request.command == "plan") return tutti::tool::plan_command(request);
  if (request.command == "verify") return tutti::tool::verify_command(request);
  if (request.command == "doctor") return tutti::tool::doctor_command();
  if (request.command == "version") return tutti::tool::version_command();
  tutti::tool::print_usage();
  return {};
}

// What is asked for may be larger than the machine.
tutti::Status run_in_memory(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return tutti::system_error("hold so many ranks");
  }
}

// A full disk is met at the latest when what is left is written.
tutti::Status finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return tutti::system_error("write to standard output");
}

}  // namespace

int main(int argc, char** argv) {
  tutti::Status status = run_in_memory(argc, argv);
  if (status.ok()) status = finish_output();
  if (status.ok()) return 0;
  std::fprintf(stderr, "tutti: %s\n", status.message().c_str());
  return status.code() == tutti::Code::invalid_argument ? 2 : 1;
}
