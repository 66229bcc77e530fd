#include <cstdio>

#include "tools/tutti/commands.h"

namespace {

tutti::Status run(int argc, char** argv) {
  const tutti::Request request = TUTTI_TRY(tutti::parse_request(argc, argv));
  if (request.command == "plan") return tutti::plan_command(request);
  if (request.command == "verify") return tutti::verify_command(request);
  if (request.command == "doctor") return tutti::doctor_command();
  if (request.command == "version") return tutti::version_command();
  std::fputs(tutti::kUsage, stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const tutti::Status status = run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "tutti: %s\n", status.message().c_str());
  return status.code() == tutti::Code::invalid_argument ? 2 : 1;
}
