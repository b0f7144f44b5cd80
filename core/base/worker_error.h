// The form in which an error of one rank is sent to the other ranks.
#pragma once

#include <string_view>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

// True for "worker 12 stopped: ...", the text of an error that another rank reported.
bool is_relayed_error(std::string_view message);
inline constexpr std::size_t kMaxOfError = 1000;  // bytes; longer messages are cut
Bytes encode_error(const Error& error);
Error decode_error_of_rank(int worker, BytesView packed);

}  // namespace shw
