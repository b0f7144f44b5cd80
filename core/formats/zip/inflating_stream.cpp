#include "core/formats/zip/inflating_stream.h"

#include <fmt/core.h>

#include <zlib.h>

#include <algorithm>

namespace shw {
namespace {

constexpr std::uint64_t kInflatedAtOnce = 64 << 10;

class InflatingStream final : public ByteStream {
 public:
  InflatingStream(std::shared_ptr<const ByteSource> source, DeflatedBytes deflated)
      : source_(std::move(source)), deflated_(std::move(deflated)) {}
  InflatingStream(const InflatingStream&) = delete;
  InflatingStream& operator=(const InflatingStream&) = delete;
  ~InflatingStream() override { inflateEnd(&zlib_); }

  Status begin() {
    const int window = deflated_.form == DeflateForm::kZlib ? MAX_WBITS : -MAX_WBITS;
    if (inflateInit2(&zlib_, window) == Z_OK) return {};
    return fail(ErrorKind::kIo, "zlib cannot start", {source_->name(), deflated_.begin});
  }

  Result<std::size_t> read(std::span<std::byte> out) override {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>({out.size(), left(), kMaxAtOnce}));
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(wanted);
    while (zlib_.avail_out != 0 && !has_ended_) SHW_CHECK(go_on());
    const std::size_t made = wanted - zlib_.avail_out;
    made_ += made;
    if (!deflated_.length) return made;
    if (left() == 0) SHW_CHECK(check_stream_end());
    if (made < wanted) return wrong_length();
    return wanted;
  }

 private:
  static constexpr std::size_t kMaxAtOnce = std::size_t{1} << 30;  // avail_out has 32 bits

  std::uint64_t left() const { return deflated_.length.value_or(UINT64_MAX) - made_; }
  tl::unexpected<Error> damaged(const std::string& words) const {
    return fail(ErrorKind::kDamaged, deflated_.what + " " + words,
                {source_->name(), deflated_.begin});
  }
  tl::unexpected<Error> wrong_length() const {
    return damaged(fmt::format("does not expand to the announced {} bytes", *deflated_.length));
  }

  Status go_on() {
    if (zlib_.avail_in == 0) {
      in_.resize(std::min<std::uint64_t>(kInflatedAtOnce, deflated_.stored_length - read_));
      if (in_.empty()) return damaged("is cut off");
      SHW_CHECK(source_->read(deflated_.begin + read_, in_));
      read_ += in_.size();
      zlib_.next_in = reinterpret_cast<Bytef*>(in_.data());
      zlib_.avail_in = static_cast<uInt>(in_.size());
    }
    const int code = ::inflate(&zlib_, Z_NO_FLUSH);
    has_ended_ = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return {};
    return damaged("is damaged");
  }

  // After all announced bytes are decoded, checks that no more follow.
  Status check_stream_end() {
    std::byte beyond{};
    zlib_.next_out = reinterpret_cast<Bytef*>(&beyond);
    zlib_.avail_out = 1;
    while (!has_ended_ && zlib_.avail_out == 1) SHW_CHECK(go_on());
    const bool is_more = zlib_.avail_out == 0;
    zlib_.avail_out = 0;
    return is_more ? Status(wrong_length()) : Status{};
  }

  const std::shared_ptr<const ByteSource> source_;
  const DeflatedBytes deflated_;
  z_stream zlib_{};
  Bytes in_;
  std::uint64_t read_ = 0, made_ = 0;
  bool has_ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> inflating_stream(std::shared_ptr<const ByteSource> source,
                                                     const DeflatedBytes& deflated) {
  auto stream = std::make_unique<InflatingStream>(std::move(source), deflated);
  SHW_CHECK(stream->begin());
  return std::unique_ptr<ByteStream>(std::move(stream));
}

}  // namespace shw
