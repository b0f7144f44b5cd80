// A sink that stores written bytes; holes are zeros and are counted.
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

// An output file from byte `begin` on; unwritten bytes are zeros.
class MemoryFile final : public OutputFile {
 public:
  explicit MemoryFile(std::uint64_t begin = 0) : begin_(begin) {}
  Status write_at(std::uint64_t offset, std::span<const std::byte> part) override {
    offset -= begin_;
    bytes.resize(std::max<std::size_t>(bytes.size(), offset + part.size()));
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    written += part.size();
    return {};
  }
  Result<bool> reflink_at(std::uint64_t, const ByteSource&, std::uint64_t, std::uint64_t) override {
    return false;
  }
  Status sync() override { return {}; }
  Status finish(std::uint64_t length) override {
    bytes.resize(length - begin_);
    return {};
  }

  Bytes bytes;
  std::uint64_t written = 0;

 private:
  std::uint64_t begin_;
};

}  // namespace shw::test
