// A sink that keeps what is written; holes are zeros and are counted.
#pragma once

#include <algorithm>

#include "core/base/bytes.h"
#include "core/io/sink.h"

namespace shw::test {

class MemorySink final : public ByteSink {
 public:
  Status write(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  Status write_at(std::uint64_t offset, std::span<const std::byte> part) override {
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  Status skip(std::uint64_t length) override {
    bytes.resize(bytes.size() + length);
    skipped += length;
    return {};
  }
  std::uint64_t position() const override { return bytes.size(); }
  Status finish() override { return {}; }

  Bytes bytes;
  std::uint64_t skipped = 0;
};

}  // namespace shw::test
