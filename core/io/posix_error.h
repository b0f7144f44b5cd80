// Converts errno into an Error that names the file.
#pragma once

#include <cstring>
#include <string>

#include "core/base/result.h"

namespace shw {

// `code` is an errno value.
inline tl::unexpected<Error> system_error(const std::string& doing, const std::string& file,
                                          int code) {
  return fail(ErrorKind::kIo, doing + ": " + std::strerror(code), {file});
}

}  // namespace shw
