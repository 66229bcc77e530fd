// Queries of the last choice, and of the algorithms of a collective.
#include "src/api/call_entry.h"
#include "src/communicator/call/forced.h"

namespace tutti {
namespace {

Result<LastRun> last_run(tutti_comm comm) {
  const CommHandle* handle = TUTTI_TRY(handle_of(comm));
  const Communicator* runner = handle->runner;
  if (runner == nullptr) return no_runner(*handle);
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
                              " is null: pass a pointer to a const char*");
    const tutti::LastRun ran = TUTTI_TRY(tutti::last_run(comm));
    *algorithm = ran.algorithm;
    *protocol = ran.protocol;
    return {};
  });
}

tutti_status tutti_comm_last_compression(tutti_comm comm, const char** compression, double* error) {
  return guarded("tutti_comm_last_compression", [&]() -> Status {
    if (compression == nullptr || error == nullptr)
      return invalid_argument(compression == nullptr ? "compression is null: pass a pointer to a const char*"
                                                     : "error is null: pass a pointer to a double");
    const tutti::LastRun ran = TUTTI_TRY(tutti::last_run(comm));
    *compression = ran.compression;
    *error = ran.error;
    return {};
  });
}

tutti_status tutti_comm_compression_statistics(tutti_comm comm, tutti_compression_statistics* statistics) {
  return guarded("tutti_comm_compression_statistics", [&]() -> Status {
    if (statistics == nullptr)
      return invalid_argument("statistics is null: pass a pointer to a tutti_compression_statistics");
    if (statistics->size < sizeof *statistics)
      return invalid_argument("statistics.size is " + std::to_string(statistics->size) +
                              ": begin with TUTTI_COMPRESSION_STATISTICS_DEFAULT");
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    const tutti::Communicator* communicator = handle->shared->communicator.get();
    if (communicator == nullptr) return tutti::no_runner(*handle);
    const tutti::CompressionStatistics seen = communicator->compression_statistics();
    statistics->compressed_calls = seen.compressed_calls;
    statistics->uncompressed_calls = seen.uncompressed_calls;
    statistics->element_bytes = seen.carried.element_bytes;
    statistics->message_bytes = seen.carried.message_bytes;
    return {};
  });
}

tutti_status tutti_algorithms(const char* collective, const char** names) {
  return guarded("tutti_algorithms", [&]() -> Status {
    if (collective == nullptr) return invalid_argument("collective is null: pass a name, such as \"all_reduce\"");
    if (names == nullptr) return invalid_argument("names is null: pass a pointer to a const char*");
    *names = TUTTI_TRY(tutti::algorithms_of(collective));
    return {};
  });
}

}  // extern "C"
