#include "core/exec/copy_hasher.h"

#include <algorithm>
#include <array>

#include "core/base/encoder.h"

namespace shw {

// The items in one part of a file, in order.
class CopyHasher::PartItemHasher {
 public:
  PartItemHasher(std::span<Item> items, std::uint64_t begin, std::mutex& guard)
      : items_(items), at_(begin), guard_(guard) {}

  void take(BytesView bytes) {
    while (!items_.empty()) {
      Item& item = items_.front();
      const std::uint64_t low = std::max(at_, item.offset),
                          high = std::min(at_ + bytes.size(), item.end());
      if (low < high)
        hash_.add(bytes.subspan(static_cast<std::size_t>(low - at_),
                                static_cast<std::size_t>(high - low)));
      if (high < item.end()) break;
      {
        std::lock_guard lock(guard_);
        item.set_hash(hash_.value());
      }
      hash_ = RunningHash();
      items_ = items_.subspan(1);
    }
    at_ += bytes.size();
  }

  void add_zeros(std::uint64_t length) {
    static constexpr std::array<std::byte, 1 << 16> kZeros{};
    for (std::uint64_t done = 0; done < length;) {
      const std::uint64_t part = std::min<std::uint64_t>(length - done, kZeros.size());
      take(BytesView(kZeros).first(static_cast<std::size_t>(part)));
      done += part;
    }
  }

 private:
  std::span<Item> items_;  // not yet seen
  std::uint64_t at_;
  std::mutex& guard_;
  RunningHash hash_;
};

CopyHasher::CopyHasher(const Checkpoint& source, std::span<const std::string> files) {
  items_.resize(source.files().size());
  std::map<std::string_view, std::uint32_t> ids;
  for (std::uint32_t i = 0; i < source.files().size(); ++i) ids[source.files()[i].path] = i;
  std::vector<bool> is_copied(items_.size(), false);
  for (const std::string& path : files) {
    if (auto found = ids.find(path); found != ids.end()) is_copied[found->second] = true;
  }
  for (std::uint32_t i = 0; i < source.chunk_count(); ++i) {
    auto place = source.item(ChunkId{i});
    if (!place || !is_copied[index_of(place->file)]) continue;
    auto range = range_in_file(*place, source.file(place->file).size);
    if (range && range->length != 0)
      items_[index_of(place->file)].emplace_back(range->offset, range->length);
  }
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    std::vector<Item>& items = items_[i];
    if (items.empty()) continue;
    files_[source.files()[i].path] = i;
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return std::pair(a.offset, a.length) < std::pair(b.offset, b.length);
    });
    // Keeps the first of overlapping or identical items.
    std::uint64_t end = 0;
    std::erase_if(items, [&](const Item& item) {
      if (item.offset < end) return true;
      end = item.end();
      return false;
    });
    items.shrink_to_fit();
  }
}

std::optional<ExtentVisitor> CopyHasher::watch(const std::string& file, std::uint64_t begin,
                                               std::uint64_t length) {
  auto found = files_.find(file);
  if (found == files_.end()) return std::nullopt;
  std::vector<Item>& all = items_[found->second];
  auto is_before = [](const Item& item, std::uint64_t at) { return item.offset < at; };
  auto first = std::lower_bound(all.begin(), all.end(), begin, is_before);
  auto last = std::lower_bound(first, all.end(), begin + length, is_before);
  if (last != first && begin + length - (last - 1)->offset < (last - 1)->length) --last;
  if (first == last) return std::nullopt;
  auto watch = std::make_shared<PartItemHasher>(std::span(first, last), begin, *guard_);
  ExtentVisitor parts;
  parts.bytes = [watch](BytesView bytes) -> Status {
    watch->take(bytes);
    return {};
  };
  parts.hole = [watch](std::uint64_t zeros) -> Status {
    watch->add_zeros(zeros);
    return {};
  };
  return parts;
}

std::uint64_t CopyHasher::length_of_piece(const std::string& file, std::uint64_t begin,
                                          std::uint64_t length, std::uint64_t about) const {
  if (length <= about) return length;
  auto found = files_.find(file);
  if (found == files_.end()) return about;
  const std::vector<Item>& all = items_[found->second];
  auto is_behind = [](std::uint64_t at, const Item& item) { return at <= item.offset; };
  auto next = std::upper_bound(all.begin(), all.end(), begin + about, is_behind);
  if (next == all.begin()) return about;
  const Item& item = *(next - 1);  // the last item that begins before the cut
  const std::uint64_t end = item.end();
  if (end <= begin + about || item.offset < begin) return about;
  if (item.offset > begin) return item.offset - begin;
  return item.length <= length ? item.length : about;
}

Status CopyHasher::share(Team& team) {
  // One row per run of items hashed here: file, index of the first item, hashes.
  Encoder own;
  for (std::size_t file = 0; file < items_.size(); ++file) {
    const std::vector<Item>& items = items_[file];
    for (std::size_t first = 0; first < items.size();) {
      std::size_t last = first;
      std::vector<std::uint64_t> hashes;
      for (; last < items.size() && items[last].is_known != 0; ++last)
        hashes.insert(hashes.end(), {items[last].hash.high, items[last].hash.low});
      if (!hashes.empty()) {
        own.add(std::uint64_t{file});
        own.add(std::uint64_t{first});
        own.add(hashes);
      }
      first = last + 1;
    }
  }
  SHW_TRY(auto told, team.allgather(own.take(), "what came along"));
  for (std::size_t member = 0; member < told.size(); ++member) {
    if (member != team.rank()) SHW_CHECK(receive(told[member]));
  }
  return {};
}

Status CopyHasher::receive(BytesView told) {
  Decoder theirs(told);
  while (!theirs.is_at_end()) {
    SHW_TRY(std::uint64_t file, theirs.number());
    SHW_TRY(std::uint64_t first, theirs.number());
    SHW_TRY(auto hashes, theirs.numbers());
    if (file >= items_.size() || first > items_[file].size() ||
        hashes.size() / 2 > items_[file].size() - first)
      return fail(ErrorKind::kIo, "another worker has seen items that are not there");
    for (std::size_t i = 0; i + 1 < hashes.size(); i += 2)
      items_[file][first + i / 2].set_hash({hashes[i], hashes[i + 1]});
  }
  return {};
}

std::optional<Hash128> CopyHasher::hash_of(FileId file, std::uint64_t offset,
                                           std::uint64_t length) const {
  if (index_of(file) >= items_.size()) return std::nullopt;
  const std::vector<Item>& items = items_[index_of(file)];
  auto found =
      std::lower_bound(items.begin(), items.end(), offset,
                       [](const Item& item, std::uint64_t at) { return item.offset < at; });
  if (found == items.end() || found->offset != offset || found->length != length ||
      found->is_known == 0)
    return std::nullopt;
  return found->hash;
}

}  // namespace shw
