#include "core/formats/zip/zstd_stream.h"

#include <fmt/core.h>

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace shw {
namespace {

// Level 19 uses windows of 8 MiB; --long=27 uses 128 MiB, zstd's default limit.
constexpr int kMaxWindowLog = 27;

// Bytes per write, so that the cost of system calls is negligible.
constexpr std::size_t kWrittenAtOnce = std::size_t{1} << 20;

using ByteConsumer = std::function<void(BytesView)>;

// Decodes consecutive frames.
class ZstdStream final : public ByteStream {
 public:
  ZstdStream(std::shared_ptr<const ByteSource> source, std::uint64_t offset, std::uint64_t length,
             std::uint64_t limit)
      : source_(std::move(source)), offset_(offset), length_(length), limit_(limit) {}

  Status begin() {
    if (offset_ > source_->size() || length_ > source_->size() - offset_)
      return fail(ErrorKind::kDamaged, "the compressed item reaches beyond the end of the file",
                  place());
    if (context_ == nullptr) return fail(ErrorKind::kIo, "no memory for zstd", place());
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
    in_.resize(std::min<std::uint64_t>(length_, ZSTD_DStreamInSize()));
    return {};
  }

  Result<std::size_t> read(std::span<std::byte> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos < output.size) {
      // Reads more input if the frame has ended, or if zstd left room in the output: otherwise it
      // may still hold decoded bytes.
      const bool wants_more = input_.pos == input_.size && (pending_ == 0 || !is_full_);
      if (wants_more && read_ == length_) break;
      if (wants_more) SHW_CHECK(read_next_input());
      const std::size_t before = output.pos;
      pending_ = ZSTD_decompressStream(context_.get(), &output, &input_);
      if (ZSTD_isError(pending_) != 0)
        return fail(ErrorKind::kDamaged,
                    std::string("the zstd frame is damaged: ") + ZSTD_getErrorName(pending_),
                    {source_->name(), offset_ + read_ - input_.size + input_.pos});
      is_full_ = output.pos == output.size;
      made_ += output.pos - before;
      if (made_ > limit_) return too_much(made_);
    }
    if (output.pos == output.size || pending_ == 0) return output.pos;
    return fail(ErrorKind::kDamaged, "the zstd frame is truncated",
                {source_->name(), offset_ + length_});
  }

  std::uint64_t taken() const { return read_; }  // number of compressed bytes read

 private:
  Place place() const { return {source_->name(), offset_}; }
  tl::unexpected<Error> too_much(std::uint64_t amount) const {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("the compressed item expands to {} bytes or more; at most {} are expected",
                    amount, limit_),
        place());
  }

  Status read_next_input() {
    const std::size_t part = std::min<std::uint64_t>(in_.size(), length_ - read_);
    SHW_CHECK(source_->read(offset_ + read_, std::span(in_).first(part)));
    if (read_ == 0) {
      auto announced = ZSTD_getFrameContentSize(in_.data(), part);
      if (announced == ZSTD_CONTENTSIZE_ERROR)
        return fail(ErrorKind::kDamaged, "is not a zstd frame, though the transform says so",
                    place());
      if (announced != ZSTD_CONTENTSIZE_UNKNOWN && announced > limit_) return too_much(announced);
    }
    input_ = {in_.data(), part, 0};
    read_ += part;
    return {};
  }

  std::shared_ptr<const ByteSource> source_;
  std::uint64_t offset_, length_, limit_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_{ZSTD_createDCtx(), &ZSTD_freeDCtx};
  Bytes in_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  std::uint64_t read_ = 0, made_ = 0;
  std::size_t pending_ = 1;  // 0 between frames
  bool is_full_ = false;     // the last output buffer was filled, so zstd may hold more decoded
                             // bytes
};

Status decompress(std::shared_ptr<const ByteSource> source, std::uint64_t offset,
                  std::uint64_t length, std::uint64_t limit, Progress* progress,
                  const ByteConsumer& take, const Progress* asked = nullptr) {
  ZstdStream stream(std::move(source), offset, length, limit);
  SHW_CHECK(stream.begin());
  Bytes out(ZSTD_DStreamOutSize());
  for (std::size_t made = out.size(); made == out.size();) {
    if (is_cancelled(progress) || is_cancelled(asked)) return cancelled_error();
    const std::uint64_t before = stream.taken();
    SHW_TRY(made, stream.read(out));
    take(BytesView(out).first(made));
    if (progress != nullptr) progress->add(stream.taken() - before);
  }
  return {};
}

// A non-owning pointer; the source must outlive its use.
std::shared_ptr<const ByteSource> non_owning_source(const ByteSource& source) {
  return {std::shared_ptr<void>(), &source};
}

// A source of which only the two ends are in memory; the middle is streamed from `rest_`.
class HeadAndTailSource final : public ByteSource {
 public:
  HeadAndTailSource(std::string name, std::uint64_t keep) : name_(std::move(name)), keep_(keep) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::uint64_t tail_begin = size_ - tail_.size();
    if (offset <= size_ && out.size() <= size_ - offset) {
      if (offset >= tail_begin) return copy(tail_, offset - tail_begin, out);
      if (offset + out.size() <= head_.size()) return copy(head_, offset, out);
    }
    if (rest_ != nullptr) return rest_->read(offset, out);
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
  void set_source_of_rest(StartStream start) {
    rest_ = streamed_source(name_, size_, std::move(start));
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
  std::shared_ptr<const ByteSource> rest_;  // the whole content as a sequential source
};

}  // namespace

Status check_transforms(std::span<const std::string> transforms, const std::string& file) {
  for (const std::string& transform : transforms) {
    std::string_view text = transform;
    std::string_view name = text.substr(0, text.find('/'));
    std::string_view version =
        name.size() < text.size() ? text.substr(name.size() + 1) : std::string_view{};
    if (name != "stream.zstd")
      return fail(ErrorKind::kUnsupported, "the transform \"" + transform + "\" is unknown",
                  {file});
    if (version.substr(0, version.find('.')) != "1")
      return fail(
          ErrorKind::kUnsupported,
          "the transform \"" + transform + "\" has an unsupported version; only 1 is supported",
          {file});
  }
  return {};
}

Result<std::unique_ptr<ByteStream>> zstd_stream(std::shared_ptr<const ByteSource> source,
                                                std::uint64_t offset, std::uint64_t length,
                                                std::uint64_t limit) {
  auto stream = std::make_unique<ZstdStream>(std::move(source), offset, length, limit);
  SHW_CHECK(stream->begin());
  return std::unique_ptr<ByteStream>(std::move(stream));
}

Result<Bytes> read_zstd(const ByteSource& source, std::uint64_t offset, std::uint64_t length,
                        std::uint64_t limit, Progress* progress) {
  Bytes out;
  SHW_CHECK(decompress(non_owning_source(source), offset, length, limit, progress,
                       [&](BytesView part) { out.insert(out.end(), part.begin(), part.end()); }));
  return out;
}

Result<std::uint64_t> decompress_zstd_to_file(std::shared_ptr<const ByteSource> source,
                                              std::uint64_t offset, std::uint64_t length,
                                              std::uint64_t limit, ScratchFile& to,
                                              const Progress* progress) {
  ZstdStream stream(std::move(source), offset, length, limit);
  SHW_CHECK(stream.begin());
  Bytes out(kWrittenAtOnce);
  std::uint64_t size = 0;
  for (std::size_t made = out.size(); made == out.size(); size += made) {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(made, stream.read(out));
    SHW_CHECK(to.write_at(size, BytesView(out).first(made)));
  }
  return size;
}

Result<std::shared_ptr<const ByteSource>> read_zstd_ends(std::shared_ptr<const ByteSource> source,
                                                         std::uint64_t offset, std::uint64_t length,
                                                         std::uint64_t limit, std::uint64_t keep,
                                                         MiddleAccess between, Progress* progress,
                                                         const Progress* asked) {
  auto ends = std::make_shared<HeadAndTailSource>(source->name(), keep);
  SHW_CHECK(decompress(
      source, offset, length, limit, progress, [&](BytesView part) { ends->append(part); }, asked));
  ends->trim();
  if (between == MiddleAccess::kStreamed)
    ends->set_source_of_rest([=] { return zstd_stream(source, offset, length, limit); });
  return ends;
}

}  // namespace shw
