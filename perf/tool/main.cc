// One program per collective: CMake defines TUTTI_PERF_COLLECTIVE.
#include "perf/tool/fail.h"
#include "perf/tool/launch.h"

int main(int argc, char** argv) {
  perf::set_program_name(argv[0]);
  return perf::launch(*perf::find_collective(TUTTI_PERF_COLLECTIVE), perf::parse_options(argc, argv));
}
