// A decoder's output as a sequential stream, and as a source for readers that go forward: a payload
// of any length then needs a few MiB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out`; returns fewer bytes only at the end of the stream, after checking that it is
  // complete.
  virtual Result<std::size_t> read(std::span<std::byte> out) = 0;
};

using StartStream = std::function<Result<std::unique_ptr<ByteStream>>()>;

// A read may begin this many bytes before the last one's end without restarting the stream;
// gather() never goes back further.
inline constexpr std::size_t kStreamKept = std::size_t{1} << 20;

// The first `size` bytes of a stream as a source. A read further back than kStreamKept restarts the
// stream, and decodes everything before it again. Thread-safe: reads are serialised.
std::shared_ptr<const ByteSource> streamed_source(std::string name, std::uint64_t size,
                                                  StartStream start);

}  // namespace shw
