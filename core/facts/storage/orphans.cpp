#include "core/facts/storage/orphans.h"

#include <memory>

#include "core/io/copy_range.h"

namespace shw {
namespace {

template <class Visit>
void parallel_for_ranges(const CheckInput& input, Visit visit) {
  const Checkpoint& checkpoint = input.checkpoint;
  auto offer = [&](const ItemPlace& place) {
    if (auto range = range_of(checkpoint, place)) visit(index_of(place.file), *range);
  };
  // torch writes non-tensor entries first, so files are visited front to back in this order.
  auto objects = checkpoint.objects();
  for (const NonTensorEntry& object : each_of(objects, input)) {
    if (object.item) offer(*object.item);
    for (const ItemPlace& place : object.of_other_ranks) offer(place);
  }
  for (ChunkId chunk : each_of(checkpoint.chunks(), input)) {
    if (auto item = checkpoint.item(chunk)) offer(*item);
  }
  for (const UnclaimedStorageRecord& unclaimed : checkpoint.unclaimed_records())
    offer(unclaimed.item);
}

// Recognises alignment padding: up to a block of zeros before a long item
// (core/exec/align_outputs.h). Without data access it is assumed.
class GapClassifier {
 public:
  GapClassifier(const CheckInput& input, const std::string& path) : input_(input), path_(path) {}

  bool operator()(const UnclaimedRange& gap, const UnclaimedRange& item) {
    if (gap.size() >= kShareBlock || item.size() < kMinShared) return false;
    return input_.depth == Depth::kMetadata || is_zero(gap);
  }

 private:
  bool is_zero(const UnclaimedRange& gap) {
    if (file_ == nullptr && input_.checkpoint.directory() != nullptr)
      file_ = input_.checkpoint.directory()->open(path_).value_or(nullptr);
    if (file_ == nullptr) return false;
    auto bytes = read_bytes(*file_, gap.begin, gap.size());
    return bytes && std::all_of(bytes->begin(), bytes->end(),
                                [](std::byte byte) { return byte == std::byte{0}; });
  }

  const CheckInput& input_;
  const std::string& path_;
  std::shared_ptr<const ByteSource> file_;
};

// The uncovered ranges of a file.
std::vector<UnclaimedRange> find_uncovered_ranges(std::vector<UnclaimedRange> ranges,
                                                  std::uint64_t size, GapClassifier is_left_free) {
  std::sort(ranges.begin(), ranges.end(),
            [](const UnclaimedRange& a, const UnclaimedRange& b) { return a.begin < b.begin; });
  std::vector<UnclaimedRange> gaps;
  std::uint64_t end = 0;
  auto add = [&](const UnclaimedRange& next) {
    const UnclaimedRange gap{end, next.begin};
    if (gap.end > gap.begin && gap.size() >= kMinGap && !is_left_free(gap, next))
      gaps.push_back(gap);
  };
  for (const UnclaimedRange& range : ranges) {
    add(range);
    end = std::max(end, range.end);
  }
  add({size, size});
  return gaps;
}

// Total claimed bytes; ranges shared by several items count once, so a full sum does not exclude
// gaps.
struct ClaimedBytes {
  std::uint64_t bytes = 0, end = 0;
  bool in_order = true;  // items are in ascending order without overlaps
};

}  // namespace

std::optional<UnclaimedRange> range_of(const Checkpoint& checkpoint, const ItemPlace& place) {
  if (place.file == FileId::kNone) return std::nullopt;
  auto begin = narrow<std::uint64_t>(place.offset), length = narrow<std::uint64_t>(place.length);
  auto end = begin && length ? checked_add(*begin, *length) : std::nullopt;
  std::uint64_t size = checkpoint.file(place.file).size;
  if (!end || *begin >= size) return std::nullopt;
  return UnclaimedRange{*begin, std::min(*end, size)};
}

std::map<std::size_t, std::vector<UnclaimedRange>> find_orphans(const CheckInput& input) {
  const Checkpoint& checkpoint = input.checkpoint;
  std::string_view suffix = checkpoint.format().traits.data_suffix;
  if (suffix.empty()) return {};
  // Computes sums first, because only items of files that may have gaps need sorting.
  std::vector<ClaimedBytes> used(checkpoint.file_count());
  parallel_for_ranges(input, [&](std::size_t file, const UnclaimedRange& range) {
    ClaimedBytes& of = used[file];
    of.bytes = checked_add(of.bytes, range.size()).value_or(UINT64_MAX);
    of.in_order = of.in_order && range.begin >= of.end;
    of.end = range.end;
  });
  std::map<std::size_t, std::vector<UnclaimedRange>> roomy;
  for (std::size_t f = 0; f < used.size(); ++f) {
    const FileRow& file = checkpoint.files()[f];
    bool data = file.referenced && file.safe && file.kind == EntryKind::kFile &&
                file.path.ends_with(suffix);
    bool full = used[f].bytes >= file.size || file.size - used[f].bytes < kMinGap;
    if (data && !(full && used[f].in_order)) roomy[f];
  }
  if (roomy.empty()) return roomy;
  parallel_for_ranges(input, [&](std::size_t file, const UnclaimedRange& range) {
    if (auto found = roomy.find(file); found != roomy.end()) found->second.push_back(range);
  });
  for (auto& [f, ranges] : each_of(roomy, input))
    ranges = find_uncovered_ranges(std::move(ranges), checkpoint.files()[f].size,
                                   GapClassifier(input, checkpoint.files()[f].path));
  if (is_cancelled(input.progress)) return {};  // some entries are still ranges and not gaps
  std::erase_if(roomy, [](const auto& file) { return file.second.empty(); });
  return roomy;
}

}  // namespace shw
