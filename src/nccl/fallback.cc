#include "src/nccl/fallback.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "src/nccl/banner.h"
#include "src/nccl/current_device.h"
#include "src/nccl/environment.h"
#include "src/nccl/export.h"

namespace tutti::nccl {

TUTTI_NCCL_EXPORT ncclResult_t pncclGetVersion(int* version);

namespace {

constexpr const char* kVariable = "TUTTI_NCCL_FALLBACK";
// Every communicator needs these.
constexpr const char* kRequired[] = {"ncclGetVersion",       "ncclGetUniqueId",      "ncclGetLastError",
                                     "ncclCommInitRank",     "ncclCommFinalize",     "ncclCommDestroy",
                                     "ncclCommAbort",        "ncclGroupStart",       "ncclGroupEnd",
                                     "ncclGroupSimulateEnd", "ncclCommGetAsyncError"};
constexpr std::chrono::milliseconds kPollTime(1);

std::string text_of_version(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Outcome was_aborted() { return {ncclRemoteError, "the communicator was aborted"}; }

// Message of rank 0 to all ranks before they join.
struct Start {
  int version;
  ncclUniqueId id;
};

}  // namespace

FallbackLibrary::~FallbackLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void* FallbackLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

// The symbols of the library stay apart from those of this one: RTLD_DEEPBIND makes it call its own functions.
Outcome FallbackLibrary::load() {
  handle_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (handle_ == nullptr) return {ncclSystemError, std::string(kVariable) + ": " + ::dlerror()};
  if (symbol("pncclGetVersion") == reinterpret_cast<void*>(pncclGetVersion))
    return invalid_usage(std::string(kVariable) + " is " + path_ + ", this library; set it to NVIDIA's libnccl.so.2");
  for (const char* name : kRequired) {
    if (symbol(name) == nullptr)
      return invalid_usage(std::string(kVariable) + ": " + path_ + " has no function " + name +
                           "; set it to NVIDIA's libnccl.so.2");
  }
  return check_version();
}

Outcome FallbackLibrary::check_version() {
  TUTTI_NCCL_CHECK(run("ncclGetVersion", &version_));
  if (version_ >= kVersion) return {};
  return invalid_usage(std::string(kVariable) + ": " + path_ + " is NCCL " + text_of_version(version_) + "; use " +
                       text_of_version(kVersion) + " or later");
}

// A library that cannot be used is tried again.
Outcome FallbackLibrary::find(FallbackLibrary*& library) {
  static std::mutex& mutex = *new std::mutex;  // Never destroyed, because threads may run while the process ends.
  static auto& libraries = *new std::map<std::string, std::unique_ptr<FallbackLibrary>>;
  library = nullptr;
  const std::string path = variable(kVariable);
  if (path.empty()) return {};
  const std::lock_guard lock(mutex);
  std::unique_ptr<FallbackLibrary>& known = libraries[path];
  if (known == nullptr) {
    std::unique_ptr<FallbackLibrary> loaded(new FallbackLibrary(path));
    TUTTI_NCCL_CHECK(loaded->load());
    log_info(std::string(kVariable) + ": " + path + " is NCCL " + text_of_version(loaded->version()));
    known = std::move(loaded);
  }
  library = known.get();
  return {};
}

Outcome FallbackLibrary::get(const char* name, void** function) {
  *function = symbol(name);
  if (*function == nullptr)
    return invalid_usage("neither Tutti nor NCCL " + text_of_version(version_) + ", " + path_ + " of " + kVariable +
                         ", implements the function; use a later NCCL");
  const std::lock_guard lock(mutex_);
  if (used_.insert(name).second) log_info(std::string(name) + " falls back to " + path_);
  return {};
}

Outcome FallbackLibrary::outcome(const char* name, ncclResult_t result) const {
  if (result == ncclSuccess || result == ncclInProgress) return {result};
  const char* text = reinterpret_cast<const char* (*)(ncclComm_t)>(symbol("ncclGetLastError"))(nullptr);
  return {result, std::string(name) + " of " + path_ + " returned " + std::to_string(result) + ": " +
                      (text == nullptr ? "" : text)};
}

Outcome Fallback::create(const Exchange& exchange, int device, std::unique_ptr<Fallback>& made) {
  FallbackLibrary* library = nullptr;
  Outcome found = FallbackLibrary::find(library);
  if (!found.failed() && library == nullptr) found = invalid_usage(std::string(kVariable) + " was unset");
  TUTTI_NCCL_CHECK(exchange.agree(found));
  std::unique_ptr<Fallback> fallback(new Fallback(*library));
  Outcome joined = fallback->join(exchange, device);
  if (joined.code != ncclSuccess) {
    fallback->abort();
    return joined;
  }
  made = std::move(fallback);
  return {};
}

Outcome Fallback::join(const Exchange& exchange, int device) {
  Start start = {library_.version(), {}};
  Outcome possible;
  if (exchange.rank() == 0) possible = library_.run("ncclGetUniqueId", &start.id);
  TUTTI_NCCL_CHECK(exchange.broadcast(start));
  if (start.version != library_.version())
    possible = invalid_usage(std::string(kVariable) + ": " + library_.path() + " is NCCL " +
                             text_of_version(library_.version()) + ", but that of rank 0 is " +
                             text_of_version(start.version) + "; use one version on all ranks");
  TUTTI_NCCL_CHECK(exchange.agree(possible));
  return exchange.agree(init(exchange, device, start.id));
}

Outcome Fallback::init(const Exchange& exchange, int device, const ncclUniqueId& id) {
  const CurrentDevice current(device);
  ncclComm_t comm = nullptr;
  const ncclResult_t result = library_.call("ncclCommInitRank", &comm, exchange.ranks(), id, exchange.rank());
  if (result == ncclSuccess || result == ncclInProgress) comm_ = comm;
  return result == ncclInProgress ? wait_for_ranks(exchange) : library_.outcome("ncclCommInitRank", result);
}

// With NCCL_COMM_BLOCKING=0, functions of the library return ncclInProgress before they are done.
Outcome Fallback::wait_for_ranks(const Exchange& exchange) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(exchange.limit_ms());
  for (;;) {
    ncclResult_t now = ncclSuccess;
    TUTTI_NCCL_CHECK(poll(now));
    if (now != ncclInProgress) return library_.outcome("ncclCommInitRank", now);
    TUTTI_NCCL_CHECK(exchange.check());
    if (exchange.limit_ms() >= 0 && std::chrono::steady_clock::now() >= until)
      return {ncclRemoteError, "ncclCommInitRank of " + library_.path() + " has been in progress for " +
                                   std::to_string(exchange.limit_ms()) + " ms; NCCL_DEBUG=INFO logs what it does"};
    std::this_thread::sleep_for(kPollTime);
  }
}

// Stores what ncclCommGetAsyncError reports. Fails after abort().
Outcome Fallback::poll(ncclResult_t& now) {
  const std::lock_guard lock(mutex_);
  if (comm() == nullptr) return was_aborted();
  return library_.run("ncclCommGetAsyncError", comm(), &now);
}

// Waits until the call of `function` that returned `result` is done. Ends by abort().
Outcome Fallback::complete(const char* function, ncclResult_t result) {
  while (result == ncclInProgress) {
    std::this_thread::sleep_for(kPollTime);
    TUTTI_NCCL_CHECK(poll(result));
  }
  return library_.outcome(function, result);
}

Outcome Fallback::state() {
  ncclResult_t now = ncclSuccess;
  const Outcome polled = poll(now);
  if (comm() == nullptr) return {};
  return polled.failed() ? polled : library_.outcome("ncclCommGetAsyncError", now);
}

void Fallback::end_by(const char* function) {
  ncclComm_t ended = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ended = comm_.exchange(nullptr);
  }
  if (ended != nullptr) library_.call(function, ended);
}

Fallback::~Fallback() { end_by(state().code == ncclSuccess ? "ncclCommDestroy" : "ncclCommAbort"); }

void Fallback::abort() { end_by("ncclCommAbort"); }

Outcome Fallback::finalize() {
  const ncclComm_t there = comm();
  if (there == nullptr) return {};
  return complete("ncclCommFinalize", library_.call("ncclCommFinalize", there));
}

Outcome Fallback::register_window(const FallbackWindow& window, ncclWindow_t& made) {
  const ncclComm_t there = comm();
  if (there == nullptr) return was_aborted();
  ncclResult_t (*enroll)(ncclComm_t, void*, std::size_t, ncclWindow_t*, int) = nullptr;
  TUTTI_NCCL_CHECK(library_.get("ncclCommWindowRegister", enroll));
  return complete("ncclCommWindowRegister", enroll(there, window.memory, window.size, &made, window.flags));
}

Outcome Fallback::deregister_window(ncclWindow_t window) {
  const ncclComm_t there = comm();
  if (there == nullptr) return {};
  ncclResult_t (*withdraw)(ncclComm_t, ncclWindow_t) = nullptr;
  TUTTI_NCCL_CHECK(library_.get("ncclCommWindowDeregister", withdraw));
  return library_.outcome("ncclCommWindowDeregister", withdraw(there, window));
}

}  // namespace tutti::nccl
