#include "core/facts/storage/shared_ranges.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <tuple>

#include "core/base/cancellable_range.h"
#include "core/base/checked.h"

namespace shw {
namespace {

struct Item {
  FileId file;
  std::int64_t begin, end;
  Claim claim;
};

template <class Visit>
void each_item(const Checkpoint& checkpoint, const Progress* progress,
               const std::vector<FileId>& real, Visit visit) {
  auto offer = [&](const std::optional<ItemPlace>& place, Claim claim) {
    if (!place || place->file == FileId::kNone || place->offset < 0 || place->length <= 0) return;
    auto end = checked_add(place->offset, place->length);
    FileId file = real.empty() ? place->file : real[index_of(place->file)];
    if (end) visit(Item{file, place->offset, *end, claim});
  };
  auto objects = checkpoint.objects();
  for (std::size_t o = 0; o < objects.size(); ++o)
    offer(objects[o].item, {ChunkId{}, static_cast<std::int64_t>(o)});
  for (ChunkId chunk : cancellable_range(checkpoint.chunks(), progress))
    offer(checkpoint.item(chunk), {chunk});
}

// Files whose items are not in ascending order: only those can have overlaps and need
// sorting.
std::vector<bool> files_to_sort(const Checkpoint& checkpoint, const Progress* progress,
                                const std::vector<FileId>& real) {
  std::vector<std::int64_t> end(checkpoint.file_count(), 0);
  std::vector<bool> sort(checkpoint.file_count(), false);
  each_item(checkpoint, progress, real, [&](const Item& item) {
    std::size_t file = index_of(item.file);
    if (item.begin < end[file]) sort[file] = true;
    end[file] = item.end;
  });
  return sort;
}

bool may_share_storage(const Checkpoint& checkpoint, const Claim& a, const Claim& b, bool partial) {
  if (!a.is_chunk() || !b.is_chunk()) return !a.is_chunk() && !b.is_chunk() && !partial;
  // Chunks that are views of a storage share it by design.
  if (checkpoint.view(a.chunk) || checkpoint.view(b.chunk)) return true;
  return checkpoint.tensor_of(a.chunk) == checkpoint.tensor_of(b.chunk) &&
         same(checkpoint.offsets(a.chunk), checkpoint.offsets(b.chunk));
}

SharedRange make_shared_range(const Checkpoint& checkpoint, std::vector<Claim> claims,
                              bool partial) {
  ItemPlace place = place_of(checkpoint, claims.front());
  return {place, std::move(claims), partial};
}

// Items [first, last) with equal ranges: adds those that do not share by design.
void add_equal(const Checkpoint& checkpoint, const std::vector<Item>& items, std::size_t first,
               std::size_t last, std::vector<SharedRange>& found) {
  std::vector<Claim> claims;
  for (std::size_t i = first; i < last; ++i) {
    bool known = std::any_of(claims.begin(), claims.end(), [&](const Claim& other) {
      return may_share_storage(checkpoint, other, items[i].claim, false);
    });
    if (!known && claims.size() < kMaxShared) claims.push_back(items[i].claim);
  }
  if (claims.size() > 1) found.push_back(make_shared_range(checkpoint, std::move(claims), false));
}

}  // namespace

ItemPlace place_of(const Checkpoint& checkpoint, const Claim& claim) {
  if (claim.is_chunk()) return checkpoint.item(claim.chunk).value_or(ItemPlace{});
  return checkpoint.objects()[static_cast<std::size_t>(claim.object)].item.value_or(ItemPlace{});
}

std::string_view fqn_of(const Checkpoint& checkpoint, const Claim& claim) {
  if (claim.is_chunk()) return checkpoint.fqn(checkpoint.tensor_of(claim.chunk));
  return checkpoint.objects()[static_cast<std::size_t>(claim.object)].fqn;
}

std::vector<SharedRange> find_shared_ranges(const Checkpoint& checkpoint, const Progress* progress,
                                            const std::vector<FileId>& real) {
  std::vector<SharedRange> found;
  std::vector<bool> sort = files_to_sort(checkpoint, progress, real);
  if (std::find(sort.begin(), sort.end(), true) == sort.end()) return found;
  std::vector<Item> items;
  each_item(checkpoint, progress, real, [&](const Item& item) {
    if (sort[index_of(item.file)]) items.push_back(item);
  });
  tbb::parallel_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tuple(a.file, a.begin, a.end, a.claim.object, a.claim.chunk) <
           std::tuple(b.file, b.begin, b.end, b.claim.object, b.claim.chunk);
  });
  const Item* reach = nullptr;  // the earlier item with the greatest end
  for (std::size_t first = 0, last = 0;
       first < items.size() && found.size() < kMaxShared && !is_cancelled(progress); first = last) {
    const Item& item = items[first];
    while (last < items.size() && items[last].file == item.file &&
           items[last].begin == item.begin && items[last].end == item.end)
      ++last;
    add_equal(checkpoint, items, first, last, found);
    bool reached = reach != nullptr && reach->file == item.file && item.begin < reach->end;
    if (reached && !may_share_storage(checkpoint, reach->claim, item.claim, true))
      found.push_back(make_shared_range(checkpoint, {reach->claim, item.claim}, true));
    if (!reached || item.end > reach->end) reach = &item;
  }
  return found;
}

bool is_tied(const Checkpoint& checkpoint, const SharedRange& range) {
  if (range.partial || !range.claims.front().is_chunk()) return false;
  const TensorId one = checkpoint.tensor_of(range.claims.front().chunk);
  for (std::size_t i = 1; i < range.claims.size(); ++i) {
    const Claim& claim = range.claims[i];
    if (!claim.is_chunk()) return false;
    const TensorId other = checkpoint.tensor_of(claim.chunk);
    if (one == other) return false;  // two chunks of one tensor
    auto a = checkpoint.chunks(one), b = checkpoint.chunks(other);
    if (a.size() != b.size() || checkpoint.dtype(one) != checkpoint.dtype(other) ||
        !same(checkpoint.shape(one), checkpoint.shape(other)))
      return false;
    for (std::uint32_t k = 0; k < a.size(); ++k) {
      auto left = checkpoint.item(a[k]), right = checkpoint.item(b[k]);
      if (!left || !right || left->file != right->file || left->offset != right->offset ||
          !same(checkpoint.offsets(a[k]), checkpoint.offsets(b[k])))
        return false;
    }
  }
  return true;
}

}  // namespace shw
