#include "core/base/worker_error.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>

#include "core/base/words.h"

namespace shw {

bool is_relayed_error(std::string_view message) {
  constexpr std::string_view kWorker = "worker ", kStopped = " stopped: ";
  if (!message.starts_with(kWorker)) return false;
  message.remove_prefix(kWorker.size());
  return consume_number(message) && message.starts_with(kStopped);
}

// Encodes the kind, then the message prefixed with its subject, truncated if too long.
Bytes encode_error(const Error& error) {
  std::string about = error.place.file.empty() ? error.place.tensor : error.place.file;
  std::string text = about.empty() ? error.message : about + ": " + error.message;
  text.resize(std::min(text.size(), kMaxOfError - 1));
  text.insert(text.begin(), static_cast<char>(error.kind));
  auto bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}

Error decode_error_of_rank(int worker, BytesView packed) {
  if (packed.empty()) return {ErrorKind::kIo, fmt::format("worker {} stopped", worker)};
  auto kind = std::min(std::to_integer<int>(packed[0]), static_cast<int>(ErrorKind::kCancelled));
  std::string_view text(reinterpret_cast<const char*>(packed.data()) + 1, packed.size() - 1);
  // An error that was relayed before keeps its text.
  if (is_relayed_error(text)) return {static_cast<ErrorKind>(kind), std::string(text)};
  return {static_cast<ErrorKind>(kind), fmt::format("worker {} stopped: {}", worker, text)};
}

}  // namespace shw
