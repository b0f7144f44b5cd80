#include "core/io/sink.h"

#include "core/base/bytes.h"
#include "core/base/checked.h"

namespace shw {
namespace {

class BufferedSink final : public ByteSink {
 public:
  BufferedSink(std::unique_ptr<OutputFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {
    buffer_.reserve(kBufferSize);
  }

  Status write(std::span<const std::byte> bytes) override {
    if (bytes.size() >= kBufferSize) {
      SHW_CHECK(flush());
      SHW_CHECK(file_->write_at(flushed_, bytes));
      flushed_ += bytes.size();
      return {};
    }
    if (buffer_.size() + bytes.size() > kBufferSize) SHW_CHECK(flush());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }

  Status skip(std::uint64_t length) override {
    SHW_CHECK(flush());
    auto end = checked_add(flushed_, length);
    if (!end || !narrow<std::int64_t>(*end))
      return fail(ErrorKind::kUsage, "a hole is larger than a file can be", {name_, flushed_});
    flushed_ = *end;
    return {};
  }

  std::uint64_t position() const override { return flushed_ + buffer_.size(); }

  Status finish() override {
    SHW_CHECK(flush());
    return file_->finish(flushed_);
  }

 private:
  static constexpr std::size_t kBufferSize = std::size_t{1} << 20;

  Status flush() {
    if (buffer_.empty()) return {};
    SHW_CHECK(file_->write_at(flushed_, buffer_));
    flushed_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  std::unique_ptr<OutputFile> file_;
  std::string name_;
  Bytes buffer_;
  std::uint64_t flushed_ = 0;
};

}  // namespace

std::unique_ptr<ByteSink> make_buffered_sink(std::unique_ptr<OutputFile> file, std::string name) {
  return std::make_unique<BufferedSink>(std::move(file), std::move(name));
}

}  // namespace shw
