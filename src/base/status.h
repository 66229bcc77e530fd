// Status: success, or an error code with one sentence. The function that detects an error writes the sentence, with the
// values that caused it. Callers pass the error on with TUTTI_TRY and may append to the sentence.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tutti {

enum class Code : std::uint8_t {
  ok,
  invalid_argument,  // A value that is always invalid: a null buffer, an unknown type.
  invalid_usage,     // A valid value at the wrong time, or ranks that disagree on a call.
  system,            // The operating system refused; the sentence contains errno's text.
  remote,            // A peer died or failed; the sentence names its rank.
  timeout,           // A deadline passed; the sentence names the peer that did not respond.
  aborted,           // The communicator was aborted, here or by a peer.
  unsupported,       // Valid, but not built, or not available on this machine.
  internal,          // A bug in Tutti.
};

const char* name(Code code);

// A null pointer means success, so success costs one pointer.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // Becomes out_of_memory() if there is no memory for the error. Throws nothing. `os_error`: see os_error().
  Status(Code code, std::string message, int os_error = 0) noexcept;

  bool ok() const { return detail_ == nullptr; }
  Code code() const { return detail_ ? detail_->code : Code::ok; }
  const std::string& message() const;  // Empty when ok.
  // The value of errno that caused the error; 0 if none is known.
  int os_error() const { return detail_ ? detail_->os_error : 0; }
  Status copy() const { return {code(), message(), os_error()}; }

  // Appends "; while <action>" to the message of an error, if there is memory for it. Success stays success.
  Status during(std::string_view action) && noexcept;

 private:
  friend Status out_of_memory() noexcept;
  struct Detail {
    Code code;
    std::string message;
    int os_error = 0;
  };
  struct Deleter {
    void operator()(Detail* detail) const noexcept;  // Leaves the shared Detail of out_of_memory() alone.
  };
  static Detail shared_out_of_memory;

  std::unique_ptr<Detail, Deleter> detail_;
};

// Code::system, "out of memory". Allocates nothing.
Status out_of_memory() noexcept;
Status invalid_argument(std::string message);
Status invalid_usage(std::string message);
Status system_error(std::string_view action);  // Adds the text of errno, and an exceeded limit of open files.
Status remote_error(std::string message);
Status timeout_error(std::string message);
Status aborted_error(std::string message);
Status unsupported(std::string message);
Status internal_error(std::string message);

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace tutti

// Checks for bugs in Tutti. Always enabled, except in kernels.
#define TUTTI_ASSERT(condition) \
  (__builtin_expect(!(condition), 0) ? ::tutti::assertion_failed(#condition, __FILE__, __LINE__) : (void)0)

namespace tutti {

// A value, or the error because of which there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // The status must be an error.
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {  // NOLINT(google-explicit-constructor)
    TUTTI_ASSERT(!std::get<1>(state_).ok());
  }

  bool ok() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  Status status() && { return ok() ? Status() : std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace tutti

// T x = TUTTI_TRY(result_of_T): yields the value, or returns the error from the enclosing function. Use it only as a
// whole initializer or statement.
#define TUTTI_TRY(expression)                                        \
  __extension__({                                                    \
    auto tutti_result = (expression);                                \
    if (!tutti_result.ok()) return std::move(tutti_result).status(); \
    std::move(tutti_result).value();                                 \
  })

// Returns from the enclosing function if a Status is an error.
#define TUTTI_CHECK_OK(expression)                 \
  do {                                             \
    ::tutti::Status tutti_checked = (expression);  \
    if (!tutti_checked.ok()) return tutti_checked; \
  } while (false)
