#include "core/exec/received_source_data.h"

#include <fmt/core.h>

#include <cstring>

namespace shw {

Result<bool> ReceivedSourceData::take(SourceId source, std::span<std::byte> to) {
  const std::uint32_t reader = dealt_.reader_for(source, self_);
  if (reader == self_) return false;
  BytesView& left = left_[reader];
  if (left.size() < to.size())
    return fail(ErrorKind::kIo,
                fmt::format("worker {} sent {} bytes of a part, but {} were expected", reader,
                            left.size(), to.size()));
  std::memcpy(to.data(), left.data(), to.size());
  left = left.subspan(to.size());
  return true;
}

Result<ElementSums> ReceivedSourceData::finish() {
  for (std::size_t worker = 0; worker < left_.size(); ++worker) {
    if (!left_[worker].empty())
      return fail(ErrorKind::kIo, fmt::format("worker {} sent {} bytes more than expected", worker,
                                              left_[worker].size()));
  }
  return elements_;
}

}  // namespace shw
