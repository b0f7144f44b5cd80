#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/formats/zip/byte_stream.h"

namespace shw {
namespace {

// Decoded per step: one or two blocks of zlib and zstd.
constexpr std::size_t kStep = std::size_t{256} << 10;
// Maximum kept: moving the rest to the front costs a third of a full copy.
constexpr std::size_t kMaxHeld = std::size_t{4} << 20;

class StreamedSource final : public ByteSource {
 public:
  StreamedSource(std::string name, std::uint64_t size, StartStream start)
      : name_(std::move(name)), size_(size), start_(std::move(start)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset)
      return fail(ErrorKind::kDamaged, "decodes to fewer bytes than its shape needs", {name_});
    std::lock_guard lock(guard_);
    if (!out.empty() && (stream_ == nullptr || offset < begin_)) SHW_CHECK(restart_stream());
    while (!out.empty()) {
      const std::uint64_t end = begin_ + held_.size();
      if (offset >= end) {
        SHW_CHECK(go_on());
        continue;
      }
      const std::size_t part = std::min<std::uint64_t>(out.size(), end - offset);
      std::memcpy(out.data(), held_.data() + (offset - begin_), part);
      out = out.subspan(part);
      offset += part;
    }
    return {};
  }

 private:
  Status restart_stream() const {
    stream_ = nullptr;
    held_.clear();
    begin_ = 0;
    SHW_TRY(stream_, start_());
    return {};
  }

  Status go_on() const {
    if (held_.size() + kStep > kMaxHeld) {
      const std::size_t gone = held_.size() - kStreamKept;
      held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(gone));
      begin_ += gone;
    }
    const std::size_t before = held_.size();
    held_.resize(before + kStep);
    auto made = stream_->read(std::span(held_).subspan(before));
    held_.resize(before + (made ? *made : 0));
    // A failed stream cannot continue.
    if (!made) stream_ = nullptr;
    if (!made) return tl::unexpected<Error>(std::move(made).error());
    if (*made == 0)
      return fail(ErrorKind::kDamaged, "decodes to fewer bytes than its shape needs", {name_});
    return {};
  }

  const std::string name_;
  const std::uint64_t size_;
  const StartStream start_;
  mutable std::mutex guard_;  // guards all members below
  mutable std::unique_ptr<ByteStream> stream_;
  mutable Bytes held_;               // most recently decoded bytes
  mutable std::uint64_t begin_ = 0;  // position of the first of them
};

}  // namespace

std::shared_ptr<const ByteSource> streamed_source(std::string name, std::uint64_t size,
                                                  StartStream start) {
  return std::make_shared<StreamedSource>(std::move(name), size, std::move(start));
}

}  // namespace shw
