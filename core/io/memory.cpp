#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/io/source.h"

namespace shw {
namespace {

// The largest tensors of real checkpoints have 10 GB; larger requests would abort the process.
constexpr std::uint64_t kMaxAtOnce = std::uint64_t{64} << 30;

Status past_the_end_error(const ByteSource& source, std::uint64_t offset, std::uint64_t length) {
  return fail(ErrorKind::kDamaged,
              fmt::format("ends at byte {}, but {} bytes are needed from byte {}", source.size(),
                          length, offset),
              {source.name(), offset});
}

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, Bytes bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  BytesView mapped() const override { return bytes_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
      return past_the_end_error(*this, offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  std::string name_;
  Bytes bytes_;
};

class MemoryDirectory final : public Directory {
 public:
  MemoryDirectory(std::string name, std::vector<std::pair<std::string, Bytes>> files)
      : name_(std::move(name)) {
    for (auto& [path, bytes] : files) files_[path] = memory_source(path, std::move(bytes));
  }
  const std::string& name() const override { return name_; }
  Result<std::vector<Entry>> list(std::size_t limit) const override {
    std::vector<Entry> entries;
    for (const auto& [path, source] : files_) {
      if (entries.size() == limit)
        return fail(ErrorKind::kUnsupported, fmt::format("more than {} files", limit), {name_});
      entries.push_back(stat(path));
    }
    return entries;
  }
  Entry stat(const std::string& path) const override {
    auto found = files_.find(path);
    if (found == files_.end()) return {path};
    return {path, EntryKind::kFile, found->second->size(), 0, found->second->size()};
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    if (!is_safe_relative_path(path))
      return fail(ErrorKind::kDamaged, "the path points outside the checkpoint folder", {path});
    auto found = files_.find(path);
    if (found == files_.end()) return fail(ErrorKind::kIo, "no such file", {path});
    return found->second;
  }

 private:
  std::string name_;
  std::map<std::string, std::shared_ptr<const ByteSource>> files_;
};

class WindowSource final : public ByteSource {
 public:
  WindowSource(std::shared_ptr<const ByteSource> inner, std::uint64_t offset, std::uint64_t length)
      : inner_(std::move(inner)), offset_(offset), length_(length) {}
  const std::string& name() const override { return inner_->name(); }
  std::uint64_t size() const override { return length_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > length_ || out.size() > length_ - offset) {
      return fail(ErrorKind::kDamaged,
                  fmt::format("the item ends at byte {}, but {} bytes are needed from byte {}",
                              offset_ + length_, out.size(), offset_ + offset),
                  {name(), offset_ + offset});
    }
    return inner_->read(offset_ + offset, out);
  }
  std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const override {
    auto inner = inner_->extents(offset_ + offset, length);
    for (Extent& extent : inner) extent.offset -= offset_;
    return inner;
  }
  bool is_hole(std::uint64_t offset, std::uint64_t length) const override {
    return offset <= length_ && length <= length_ - offset &&
           inner_->is_hole(offset_ + offset, length);
  }

 private:
  std::shared_ptr<const ByteSource> inner_;
  std::uint64_t offset_;
  std::uint64_t length_;
};

class FaultySource final : public ByteSource {
 public:
  FaultySource(std::shared_ptr<const ByteSource> inner, ReadFault decide)
      : inner_(std::move(inner)), decide_(std::move(decide)) {}
  const std::string& name() const override { return inner_->name(); }
  std::uint64_t size() const override { return inner_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (auto error = decide_(name(), offset, out.size())) return tl::unexpected<Error>(*error);
    return inner_->read(offset, out);
  }
  bool is_hole(std::uint64_t offset, std::uint64_t length) const override {
    return inner_->is_hole(offset, length);
  }

 private:
  std::shared_ptr<const ByteSource> inner_;
  ReadFault decide_;
};

class FaultyDirectory final : public Directory {
 public:
  FaultyDirectory(std::shared_ptr<const Directory> inner, ReadFault decide)
      : inner_(std::move(inner)), decide_(std::move(decide)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t limit) const override { return inner_->list(limit); }
  Entry stat(const std::string& path) const override { return inner_->stat(path); }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    SHW_TRY(auto source, inner_->open(path));
    return std::make_shared<FaultySource>(std::move(source), decide_);
  }

 private:
  std::shared_ptr<const Directory> inner_;
  ReadFault decide_;
};

}  // namespace

std::shared_ptr<const ByteSource> memory_source(std::string name, Bytes bytes) {
  return std::make_shared<MemorySource>(std::move(name), std::move(bytes));
}

std::shared_ptr<const Directory> memory_directory(
    std::string name, std::vector<std::pair<std::string, Bytes>> files) {
  return std::make_shared<MemoryDirectory>(std::move(name), std::move(files));
}

std::shared_ptr<const ByteSource> window(std::shared_ptr<const ByteSource> source,
                                         std::uint64_t offset, std::uint64_t length) {
  return std::make_shared<WindowSource>(std::move(source), offset, length);
}

std::shared_ptr<const Directory> faulty_directory(std::shared_ptr<const Directory> inner,
                                                  ReadFault decide) {
  return std::make_shared<FaultyDirectory>(std::move(inner), std::move(decide));
}

Result<Bytes> read_bytes(const ByteSource& source, std::uint64_t offset, std::uint64_t length) {
  if (offset > source.size() || length > source.size() - offset) {
    return tl::unexpected<Error>(past_the_end_error(source, offset, length).error());
  }
  if (length > kMaxAtOnce)
    return fail(ErrorKind::kUnsupported,
                "wants " + human_bytes(length) + " in memory at once; at most " +
                    human_bytes(kMaxAtOnce) + " are read so",
                {source.name(), offset});
  Bytes bytes(length);
  SHW_CHECK(source.read(offset, bytes));
  return bytes;
}

bool is_safe_relative_path(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos)
    return false;
  while (true) {
    std::size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace shw
