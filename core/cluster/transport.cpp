#include "core/cluster/transport.h"

#include <fmt/core.h>

#include "core/base/words.h"

namespace shw {
namespace {

std::string timeout_text(const WaitStep& step) {
  return human_seconds(static_cast<double>(step.within.count()) * 1e-3);
}

}  // namespace

Status check_peer(const Transport& transport, int peer) {
  if (peer >= 0 && peer < transport.size() && peer != transport.rank()) return {};
  return fail(ErrorKind::kUsage, fmt::format("worker {} of {} cannot send to worker {}",
                                             transport.rank(), transport.size(), peer));
}

Error peer_timeout_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender) {
  return {ErrorKind::kIo,
          is_sender
              ? fmt::format("in `{}` worker {} sent nothing for {}: {} bytes were to come "
                            "from it",
                            step.name, peer, timeout_text(step), bytes)
              : fmt::format("in `{}` worker {} took nothing for {}: {} bytes were to go to it",
                            step.name, peer, timeout_text(step), bytes)};
}

Error wrong_size_error(const WaitStep& step, int peer, std::uint64_t agreed, bool is_more) {
  return {ErrorKind::kIo,
          fmt::format("in `{}` worker {} sent {} bytes than the {} that were agreed", step.name,
                      peer, is_more ? "more" : "fewer", agreed)};
}

Error peer_lost_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender) {
  return {ErrorKind::kIo, fmt::format("in `{}` worker {} had ended: {} bytes were to {} it",
                                      step.name, peer, bytes, is_sender ? "come from" : "go to")};
}

Error used_after_error() {
  return {ErrorKind::kUsage, "the workers have lost each other before"};
}

}  // namespace shw
