// A value or an Error with the place of the failure. Core throws nothing; exceptions of libraries
// are caught where the library is called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace shw {

enum class ErrorKind {
  kUsage,        // the request makes no sense: exit code 3
  kNotFound,     // no tensor fits the words that were given: exit code 1
  kIo,           // a system call failed: exit code 4
  kDamaged,      // the file violates its format: exit code 2
  kUnsupported,  // valid, but not supported by this program: exit code 2
  kCancelled,    // cancelled by the user: exit code 2
};

// Where an error happened. `file` is relative to the checkpoint folder if there is one; `offset` is
// a byte offset in that file.
struct Place {
  std::string file;
  std::optional<std::uint64_t> offset = std::nullopt;
  std::string tensor = {};
};

struct Error {
  ErrorKind kind = ErrorKind::kDamaged;
  std::string message;  // one sentence: what failed, and what was expected
  Place place = {};
  std::string advice = {};  // what the user can do; may be empty
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message, Place place = {},
                                  std::string advice = {}) {
  return tl::unexpected<Error>(
      Error{kind, std::move(message), std::move(place), std::move(advice)});
}

}  // namespace shw

#define SHW_CONCAT2(a, b) a##b
#define SHW_CONCAT(a, b) SHW_CONCAT2(a, b)

// SHW_TRY(auto bytes, read(...)) declares `bytes`, or returns the error from the function.
#define SHW_TRY(declaration, expression) \
  SHW_TRY_IMPL(SHW_CONCAT(shw_try_, __LINE__), declaration, expression)
#define SHW_TRY_IMPL(name, declaration, expression)                        \
  auto name = (expression);                                                \
  if (!name) return tl::unexpected<::shw::Error>(std::move(name).error()); \
  declaration = std::move(*name)

// SHW_CHECK(write(...)) returns the error of a failed Status from the function.
#define SHW_CHECK(expression)                                             \
  do {                                                                    \
    if (auto shw_status = (expression); !shw_status)                      \
      return tl::unexpected<::shw::Error>(std::move(shw_status).error()); \
  } while (false)
