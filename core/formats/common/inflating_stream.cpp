#include "core/formats/common/inflating_stream.h"

#include <fmt/core.h>

#include <zlib.h>

#include <algorithm>

namespace shw {
namespace {

constexpr std::uint64_t kInflatedAtOnce = 64 << 10;

// A deflated record, which must come to as many bytes as it announces.
class InflatingStream final : public ByteStream {
 public:
  InflatingStream(std::shared_ptr<const ByteSource> source, const DeflatedRecord& record)
      : source_(std::move(source)),
        data_(record.data),
        stored_(record.stored_length),
        length_(record.length),
        name_(record.name) {}
  InflatingStream(const InflatingStream&) = delete;
  InflatingStream& operator=(const InflatingStream&) = delete;
  ~InflatingStream() override { inflateEnd(&zlib_); }

  Status begin() {
    if (inflateInit2(&zlib_, -MAX_WBITS) == Z_OK) return {};
    return fail(ErrorKind::kIo, "zlib cannot start", {source_->name(), data_});
  }

  Result<std::size_t> read(std::span<std::byte> out) override {
    const auto wanted = static_cast<std::size_t>(
        std::min<std::uint64_t>({out.size(), length_ - made_, kMostAtOnce}));
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(wanted);
    while (zlib_.avail_out != 0 && !has_ended_) SHW_CHECK(go_on());
    made_ += wanted - zlib_.avail_out;
    if (made_ == length_) SHW_CHECK(see_its_end());
    if (zlib_.avail_out != 0) return wrong_length();
    return wanted;
  }

 private:
  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // avail_out has 32 bits

  tl::unexpected<Error> damaged(const std::string& words) const {
    return fail(ErrorKind::kDamaged, "the deflated record \"" + name_ + "\" " + words,
                {source_->name(), data_});
  }
  tl::unexpected<Error> wrong_length() const {
    return damaged(fmt::format("does not hold the {} bytes that it announces", length_));
  }

  Status go_on() {
    if (zlib_.avail_in == 0) {
      in_.resize(std::min<std::uint64_t>(kInflatedAtOnce, stored_ - read_));
      if (in_.empty()) return damaged("is cut off");
      SHW_CHECK(source_->read(data_ + read_, in_));
      read_ += in_.size();
      zlib_.next_in = reinterpret_cast<Bytef*>(in_.data());
      zlib_.avail_in = static_cast<uInt>(in_.size());
    }
    const int code = ::inflate(&zlib_, Z_NO_FLUSH);
    has_ended_ = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return {};
    return damaged("is damaged");
  }

  // All that was announced is there: nothing more may come.
  Status see_its_end() {
    std::byte beyond{};
    zlib_.next_out = reinterpret_cast<Bytef*>(&beyond);
    zlib_.avail_out = 1;
    while (!has_ended_ && zlib_.avail_out == 1) SHW_CHECK(go_on());
    const bool is_more = zlib_.avail_out == 0;
    zlib_.avail_out = 0;
    return is_more ? Status(wrong_length()) : Status{};
  }

  std::shared_ptr<const ByteSource> source_;
  std::uint64_t data_, stored_, length_;
  std::string name_;
  z_stream zlib_{};
  Bytes in_;
  std::uint64_t read_ = 0, made_ = 0;
  bool has_ended_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> inflating_stream(std::shared_ptr<const ByteSource> source,
                                                     const DeflatedRecord& record) {
  auto stream = std::make_unique<InflatingStream>(std::move(source), record);
  SHW_CHECK(stream->begin());
  return std::unique_ptr<ByteStream>(std::move(stream));
}

}  // namespace shw
