// What was chosen, and what there is to choose among.
#include "src/api/call_entry.h"
#include "src/communicator/forced.h"

namespace tutti {
namespace {

Result<Ran> last_run(tutti_comm comm) {
  const Door* door = TUTTI_TRY(door_of(comm));
  const Communicator* runner = door->runner;
  if (runner == nullptr) return no_runner(*door);
  return runner->last_run();
}

}  // namespace
}  // namespace tutti

using tutti::guarded;
using tutti::invalid_argument;
using tutti::Status;

extern "C" {

tutti_status tutti_comm_last_choice(tutti_comm comm, const char** algorithm, const char** protocol) {
  return guarded("tutti_comm_last_choice", [&]() -> Status {
    if (algorithm == nullptr || protocol == nullptr)
      return invalid_argument(std::string(algorithm == nullptr ? "algorithm" : "protocol") +
                              " is null: pass where to put the name");
    const tutti::Ran ran = TUTTI_TRY(tutti::last_run(comm));
    *algorithm = ran.algorithm;
    *protocol = ran.protocol;
    return {};
  });
}

tutti_status tutti_comm_last_wire(tutti_comm comm, const char** wire, double* error) {
  return guarded("tutti_comm_last_wire", [&]() -> Status {
    if (wire == nullptr || error == nullptr)
      return invalid_argument(std::string(wire == nullptr ? "wire" : "error") + " is null: pass where to put it");
    const tutti::Ran ran = TUTTI_TRY(tutti::last_run(comm));
    *wire = ran.wire;
    *error = ran.error;
    return {};
  });
}

tutti_status tutti_comm_wire_statistics(tutti_comm comm, tutti_wire_statistics* statistics) {
  return guarded("tutti_comm_wire_statistics", [&]() -> Status {
    if (statistics == nullptr) return invalid_argument("statistics is null: pass where to put them");
    if (statistics->size < sizeof *statistics)
      return invalid_argument("statistics.size is " + std::to_string(statistics->size) +
                              ": begin with TUTTI_WIRE_STATISTICS_DEFAULT");
    const tutti::Door* door = TUTTI_TRY(tutti::door_of(comm));
    const tutti::Communicator* communicator = door->shared->communicator.get();
    if (communicator == nullptr) return tutti::no_runner(*door);
    const tutti::WireStatistics seen = communicator->wire_statistics();
    statistics->rounded_calls = seen.rounded_calls;
    statistics->raw_calls = seen.raw_calls;
    statistics->element_bytes = seen.carried.element_bytes;
    statistics->message_bytes = seen.carried.message_bytes;
    return {};
  });
}

tutti_status tutti_algorithms(const char* collective, const char** names) {
  return guarded("tutti_algorithms", [&]() -> Status {
    if (collective == nullptr || names == nullptr)
      return invalid_argument(std::string(collective == nullptr ? "collective" : "names") + " is null");
    *names = TUTTI_TRY(tutti::algorithms_of(collective));
    return {};
  });
}

}  // extern "C"
