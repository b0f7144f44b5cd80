#include "core/cluster/transport.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"

namespace shw {
namespace {

std::string patience_of(const WaitStep& step) {
  return human_seconds(static_cast<double>(step.within.count()) * 1e-3);
}

}  // namespace

bool is_of_another(std::string_view message) {
  constexpr std::string_view kWorker = "worker ", kStopped = " stopped: ";
  if (!message.starts_with(kWorker)) return false;
  message.remove_prefix(kWorker.size());
  return take_number(message) && message.starts_with(kStopped);
}

Status check_peer(const Transport& transport, int peer) {
  if (peer >= 0 && peer < transport.size() && peer != transport.rank()) return {};
  return fail(ErrorKind::kUsage, fmt::format("worker {} of {} cannot send to worker {}",
                                             transport.rank(), transport.size(), peer));
}

Error silent_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender) {
  return {ErrorKind::kIo,
          is_sender
              ? fmt::format("in `{}` worker {} sent nothing for {}: {} bytes were to come "
                            "from it",
                            step.name, peer, patience_of(step), bytes)
              : fmt::format("in `{}` worker {} took nothing for {}: {} bytes were to go to it",
                            step.name, peer, patience_of(step), bytes)};
}

Error wrong_size_error(const WaitStep& step, int peer, std::uint64_t agreed, bool is_more) {
  return {ErrorKind::kIo,
          fmt::format("in `{}` worker {} sent {} bytes than the {} that were agreed", step.name,
                      peer, is_more ? "more" : "fewer", agreed)};
}

Error gone_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender) {
  return {ErrorKind::kIo, fmt::format("in `{}` worker {} had ended: {} bytes were to {} it",
                                      step.name, peer, bytes, is_sender ? "come from" : "go to")};
}

Error used_after_error() {
  return {ErrorKind::kUsage, "the workers have lost each other before"};
}

// kind, and the message with what it is about in front; the end is cut off where it is too long.
Bytes packed_error(const Error& error) {
  std::string about = error.place.file.empty() ? error.place.tensor : error.place.file;
  std::string text = about.empty() ? error.message : about + ": " + error.message;
  text.resize(std::min(text.size(), kMostOfError - 1));
  text.insert(text.begin(), static_cast<char>(error.kind));
  auto bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}

Error error_of_worker(int worker, BytesView packed) {
  if (packed.empty()) return {ErrorKind::kIo, fmt::format("worker {} stopped", worker)};
  auto kind = std::min(std::to_integer<int>(packed[0]), static_cast<int>(ErrorKind::kCancelled));
  std::string_view text(reinterpret_cast<const char*>(packed.data()) + 1, packed.size() - 1);
  // It passes on what another one said.
  if (is_of_another(text)) return {static_cast<ErrorKind>(kind), std::string(text)};
  return {static_cast<ErrorKind>(kind), fmt::format("worker {} stopped: {}", worker, text)};
}

}  // namespace shw
