// Bytes that a decoder makes from front to back, and the source that they are while they are read
// in this order: a payload of any length then takes a few MiB.
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
  // Fills `out`. Less of it only where the stream ends, whose end was then seen to be one.
  virtual Result<std::size_t> read(std::span<std::byte> out) = 0;
};

using StartStream = std::function<Result<std::unique_ptr<ByteStream>>()>;

// How far back a read may begin without starting the stream anew: gather() reads ahead no further.
inline constexpr std::size_t kStreamKept = std::size_t{1} << 20;

// The first `size` bytes of what a stream gives. A read that begins further back than the last ones
// starts it anew, which costs as much as all that lies before. Threads take turns.
std::shared_ptr<const ByteSource> streamed_source(std::string name, std::uint64_t size,
                                                  StartStream start);

}  // namespace shw
