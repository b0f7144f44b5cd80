#include "core/formats/common/zstd_stream.h"

#include <fmt/core.h>

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace shw {
namespace {

// 8 MiB windows are what level 19 uses; --long=27 takes 128 MiB, zstd's own default limit.
constexpr int kMaxWindowLog = 27;

using Take = std::function<void(BytesView)>;

Status decompress(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                  std::uint64_t limit, Progress* progress, const Take& take) {
  Place place{source.name(), offset};
  auto too_much = [&](std::uint64_t amount) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("the compressed item becomes {} bytes or more; at most {} are expected of it",
                    amount, limit),
        place);
  };
  if (offset > source.size() || length > source.size() - offset)
    return fail(ErrorKind::kDamaged, "the compressed item runs past the end of the file", place);
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (context == nullptr) return fail(ErrorKind::kIo, "no memory for zstd", place);
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  Bytes in(std::min<std::uint64_t>(length, ZSTD_DStreamInSize())), out(ZSTD_DStreamOutSize());
  std::uint64_t read = 0, made = 0;
  std::size_t pending = 1;
  while (read < length) {
    if (is_cancelled(progress)) return cancelled_error();
    std::size_t part = std::min<std::uint64_t>(in.size(), length - read);
    SHW_CHECK(source.read(offset + read, std::span(in).first(part)));
    if (read == 0) {
      auto announced = ZSTD_getFrameContentSize(in.data(), part);
      if (announced == ZSTD_CONTENTSIZE_ERROR)
        return fail(ErrorKind::kDamaged, "is no zstd frame, as the transform says", place);
      if (announced != ZSTD_CONTENTSIZE_UNKNOWN && announced > limit) return too_much(announced);
    }
    ZSTD_inBuffer input{in.data(), part, 0};
    bool full = true;
    while (input.pos < input.size || full) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      pending = ZSTD_decompressStream(context.get(), &output, &input);
      if (ZSTD_isError(pending) != 0)
        return fail(ErrorKind::kDamaged,
                    std::string("the zstd frame is damaged: ") + ZSTD_getErrorName(pending),
                    {source.name(), offset + read + input.pos});
      made += output.pos;
      if (made > limit) return too_much(made);
      take(BytesView(out).first(output.pos));
      full = output.pos == output.size;
      if (pending == 0 && input.pos == input.size) break;
    }
    read += part;
    if (progress != nullptr) progress->add(part);
  }
  if (pending != 0)
    return fail(ErrorKind::kDamaged, "the zstd frame is cut off", {source.name(), offset + length});
  return {};
}

// The two ends of something too large to keep.
class EndsSource final : public ByteSource {
 public:
  EndsSource(std::string name, std::uint64_t keep) : name_(std::move(name)), keep_(keep) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::uint64_t tail_begin = size_ - tail_.size();
    if (offset <= size_ && out.size() <= size_ - offset) {
      if (offset >= tail_begin) return copy(tail_, offset - tail_begin, out);
      if (offset + out.size() <= head_.size()) return copy(head_, offset, out);
    }
    return fail(ErrorKind::kUnsupported, "the header of the compressed item is too large",
                {name_, offset});
  }

  void append(BytesView bytes) {
    size_ += bytes.size();
    if (head_.size() < keep_) {
      auto part = bytes.first(std::min<std::size_t>(bytes.size(), keep_ - head_.size()));
      head_.insert(head_.end(), part.begin(), part.end());
    }
    tail_.insert(tail_.end(), bytes.begin(), bytes.end());
    if (tail_.size() > 4 * keep_) trim();
  }
  void trim() {
    if (tail_.size() > keep_)
      tail_.erase(tail_.begin(), tail_.end() - static_cast<std::ptrdiff_t>(keep_));
  }

 private:
  static Status copy(const Bytes& from, std::uint64_t at, std::span<std::byte> out) {
    if (!out.empty()) std::memcpy(out.data(), from.data() + at, out.size());
    return {};
  }
  std::string name_;
  std::uint64_t keep_;
  std::uint64_t size_ = 0;
  Bytes head_, tail_;
};

}  // namespace

Status check_transforms(std::span<const std::string> transforms, const std::string& file) {
  for (const std::string& transform : transforms) {
    std::string_view text = transform;
    std::string_view name = text.substr(0, text.find('/'));
    std::string_view version =
        name.size() < text.size() ? text.substr(name.size() + 1) : std::string_view{};
    if (name != "stream.zstd")
      return fail(ErrorKind::kUnsupported, "the transform \"" + transform + "\" is not known",
                  {file});
    if (version.substr(0, version.find('.')) != "1")
      return fail(ErrorKind::kUnsupported,
                  "the transform \"" + transform + "\" has a version that is not read; 1 is",
                  {file});
  }
  return {};
}

Result<Bytes> read_zstd(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                        std::uint64_t limit, Progress* progress) {
  Bytes out;
  SHW_CHECK(decompress(source, offset, length, limit, progress,
                       [&](BytesView part) { out.insert(out.end(), part.begin(), part.end()); }));
  return out;
}

Result<std::shared_ptr<const ByteSource>> read_zstd_ends(const ByteSource& source,
                                                         std::uint64_t offset, std::uint64_t length,
                                                         std::uint64_t limit, std::uint64_t keep) {
  auto ends = std::make_shared<EndsSource>(source.name(), keep);
  SHW_CHECK(decompress(source, offset, length, limit, nullptr,
                       [&](BytesView part) { ends->append(part); }));
  ends->trim();
  return ends;
}

}  // namespace shw
