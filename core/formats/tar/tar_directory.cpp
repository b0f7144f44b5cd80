#include "core/formats/tar/tar_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace shw {
namespace {

constexpr std::uint64_t kTarBlock = 512;
constexpr std::size_t kMaxTarFiles = 1 << 20;
constexpr std::uint64_t kLongestTarName = 1 << 16;

struct TarFile {
  std::uint64_t offset = 0, size = 0;
};
using TarFiles = std::map<std::string, TarFile>;

class TarDirectory final : public Directory {
 public:
  TarDirectory(std::shared_ptr<const ByteSource> source, std::string name, TarFiles files)
      : source_(std::move(source)), name_(std::move(name)), files_(std::move(files)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Entry>> list(std::size_t limit) const override {
    if (files_.size() > limit)
      return fail(ErrorKind::kUnsupported, "holds more files than the limit", {name_});
    std::vector<Entry> entries;
    for (const auto& [path, file] : files_)
      entries.push_back({path, EntryKind::kFile, file.size, 0, file.size});
    return entries;
  }
  Entry stat(const std::string& path) const override {
    if (auto found = files_.find(path); found != files_.end())
      return {path, EntryKind::kFile, found->second.size, 0, found->second.size};
    const auto below = files_.lower_bound(path + "/");
    const bool is_folder = below != files_.end() && below->first.starts_with(path + "/");
    return {path, is_folder ? EntryKind::kDirectory : EntryKind::kMissing};
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    auto found = files_.find(path);
    if (found == files_.end())
      return fail(ErrorKind::kIo, "there is no such file in the archive", {path});
    return window(source_, found->second.offset, found->second.size);
  }

 private:
  std::shared_ptr<const ByteSource> source_;
  std::string name_;
  TarFiles files_;
};

std::string_view tar_field(BytesView block, std::size_t at, std::size_t length) {
  const auto* text = reinterpret_cast<const char*>(block.data()) + at;
  return {text, static_cast<std::size_t>(std::find(text, text + length, '\0') - text)};
}

// Parses octal digits, or base 256 if the first bit is set.
std::optional<std::uint64_t> tar_number(BytesView block, std::size_t at, std::size_t length) {
  std::uint64_t value = 0;
  if ((std::to_integer<unsigned>(block[at]) & 0x80) != 0) {
    for (std::size_t i = 1; i < length; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | std::to_integer<std::uint64_t>(block[at + i]);
    }
    return value;
  }
  for (char c : tar_field(block, at, length)) {
    if (c == ' ') continue;
    if (c < '0' || c > '7' || value >> 60 != 0) return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// True if the checksum equals the sum of all bytes, with its own field read as spaces.
bool has_tar_checksum(BytesView block) {
  constexpr std::size_t kAt = 148, kLength = 8;
  std::uint64_t sum = kLength * std::uint64_t{' '};
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i < kAt || i >= kAt + kLength) sum += std::to_integer<std::uint64_t>(block[i]);
  }
  return tar_number(block, kAt, kLength) == sum;
}

class TarWalk {
 public:
  explicit TarWalk(const ByteSource& source) : source_(source) {}

  Result<TarFiles> run() {
    while (at_ + kTarBlock <= source_.size()) {
      SHW_TRY(Bytes block, read_bytes(source_, at_, kTarBlock));
      const bool is_end = std::all_of(block.begin(), block.end(),
                                      [](std::byte byte) { return byte == std::byte{0}; });
      if (is_end) return std::move(files_);
      if (!has_tar_checksum(block))
        return damaged(at_, files_.empty() ? "is not a tar archive" : "has an invalid file header");
      SHW_CHECK(take(block));
    }
    return damaged(at_, "is truncated: it ends before the end of its archive");
  }

 private:
  tl::unexpected<Error> damaged(std::uint64_t at, std::string what) const {
    return fail(ErrorKind::kDamaged, std::move(what), {source_.name(), at});
  }

  Status take(BytesView block) {
    const auto size = tar_number(block, 124, 12);
    const std::uint64_t data = at_ + kTarBlock;
    const std::uint64_t length = pax_size_.value_or(size.value_or(0));
    if (!size || length > source_.size() - data)
      return damaged(at_, "is truncated: a file in the archive ends after it");
    const char type = static_cast<char>(block[156]);
    at_ = data + (length + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (type == 'L') return read_long_name(data, length);
    if (type == 'x') return read_pax(data, length);
    std::string path = long_name_.empty() ? short_name(block) : std::move(long_name_);
    long_name_.clear();
    pax_size_.reset();
    if (type != '0' && type != '\0') return {};
    while (path.starts_with("./")) path.erase(0, 2);
    if (!is_safe_relative_path(path)) return {};
    if (files_.size() == kMaxTarFiles) return damaged(at_, "has too many files in its archive");
    files_[std::move(path)] = {data, length};
    return {};
  }

  static std::string short_name(BytesView block) {
    const std::string name(tar_field(block, 0, 100));
    const std::string prefix(tar_field(block, 257, 5) == "ustar" && block[263] != std::byte{' '}
                                 ? tar_field(block, 345, 155)
                                 : std::string_view());
    return prefix.empty() ? name : prefix + "/" + name;
  }

  Status read_long_name(std::uint64_t at, std::uint64_t length) {
    if (length > kLongestTarName) return damaged(at, "has a name too long for a file");
    SHW_TRY(Bytes bytes, read_bytes(source_, at, length));
    long_name_ = std::string(tar_field(bytes, 0, bytes.size()));
    return {};
  }

  // Parses lines "LENGTH KEY=VALUE\n".
  Status read_pax(std::uint64_t at, std::uint64_t length) {
    if (length > kLongestTarName) return damaged(at, "has a header too long for a file");
    SHW_TRY(Bytes bytes, read_bytes(source_, at, length));
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const std::size_t space = line.find(' '), equals = line.find('=');
      if (space == std::string_view::npos || equals == std::string_view::npos || equals < space)
        continue;
      const std::string_view key = line.substr(space + 1, equals - space - 1);
      const std::string_view value = line.substr(equals + 1);
      if (key == "path") long_name_ = std::string(value);
      if (key == "size") SHW_CHECK(read_pax_size(at, value));
    }
    return {};
  }

  Status read_pax_size(std::uint64_t at, std::string_view value) {
    std::uint64_t size = 0;
    for (char c : value) {
      if (c < '0' || c > '9' || size > source_.size())
        return damaged(at, "is truncated: a file in the archive ends after it");
      size = size * 10 + static_cast<std::uint64_t>(c - '0');
    }
    pax_size_ = size;
    return {};
  }

  const ByteSource& source_;
  std::uint64_t at_ = 0;
  std::string long_name_;
  std::optional<std::uint64_t> pax_size_;
  TarFiles files_;
};

}  // namespace

Result<std::shared_ptr<const Directory>> open_tar(std::shared_ptr<const ByteSource> source,
                                                  std::string name) {
  SHW_TRY(TarFiles files, TarWalk(*source).run());
  return std::make_shared<const TarDirectory>(std::move(source), std::move(name), std::move(files));
}

}  // namespace shw
