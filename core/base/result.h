// Success or an Error that always says where. Nothing in core throws; a library that does is caught
// at its edge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace shw {

enum class ErrorKind {
  kUsage,        // the caller asked for something that makes no sense: exit code 3
  kIo,           // the system refused: exit code 4
  kDamaged,      // the bytes are not what the format promises: exit code 2
  kUnsupported,  // well formed, but beyond what is read or repaired: exit code 2
  kCancelled,    // the person stopped it: exit code 2
};

// Where it happened. `file` is relative to the checkpoint where there is one; `offset` counts bytes
// in that file.
struct Place {
  std::string file;
  std::optional<std::uint64_t> offset = std::nullopt;
  std::string tensor = {};
};

struct Error {
  ErrorKind kind = ErrorKind::kDamaged;
  std::string message;  // one sentence: what, and what was expected there
  Place place = {};
  std::string advice = {};  // what to do; may be empty
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

// SHW_TRY(auto bytes, read(...)): declares `bytes`, or returns the error.
#define SHW_TRY(declaration, expression) \
  SHW_TRY_IMPL(SHW_CONCAT(shw_try_, __LINE__), declaration, expression)
#define SHW_TRY_IMPL(name, declaration, expression)                        \
  auto name = (expression);                                                \
  if (!name) return tl::unexpected<::shw::Error>(std::move(name).error()); \
  declaration = std::move(*name)

// SHW_CHECK(write(...)): goes on, or returns the error of a Status.
#define SHW_CHECK(expression)                                             \
  do {                                                                    \
    if (auto shw_status = (expression); !shw_status)                      \
      return tl::unexpected<::shw::Error>(std::move(shw_status).error()); \
  } while (false)
