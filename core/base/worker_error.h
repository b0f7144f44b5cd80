// What workers of a team are told of an error that one of them met.
#pragma once

#include <string_view>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

// "worker 12 stopped: ...": what another one met.
bool is_of_another(std::string_view message);
inline constexpr std::size_t kMostOfError = 1000;  // bytes
Bytes packed_error(const Error& error);
Error error_of_worker(int worker, BytesView packed);

}  // namespace shw
