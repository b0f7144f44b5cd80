#include "core/rules/storage/equal_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "core/base/hash.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/rules/rules.h"
#include "core/rules/storage/linked_files.h"
#include "core/rules/storage/tile_start.h"

namespace shw {
namespace {

// What two tensors or more must say. One alone may be a table that repeats itself.
constexpr std::size_t kTelling = 2;
// Different numbers that make a tile one that was trained.
constexpr std::size_t kManyNumbers = 16;
constexpr std::size_t kMostRounds = 64;

using Items = std::vector<ChunkId>;  // of one file, as they lie

// The length of a file and the checksums of its items: only files that agree in both can be equal.
using FilePrint = std::pair<std::uint64_t, std::string>;
struct FileItems {
  FileId file{};
  Items items;
};

std::map<FilePrint, std::vector<FileItems>> files_by_print(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  const std::vector<FileId> real = real_files(c);
  std::vector<Items> items(c.file_count());
  std::vector<bool> is_known(c.file_count(), true);
  for (ChunkId chunk : each_of(c.chunks(), facts)) {
    auto place = c.item(chunk);
    if (!place || place->file == FileId::kNone) continue;
    const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
    if (!header || !header->payload_crc) is_known[index_of(place->file)] = false;
    items[index_of(place->file)].push_back(chunk);
  }
  std::map<FilePrint, std::vector<FileItems>> found;
  for (std::size_t f = 0; f < items.size(); ++f) {
    const FileId file{static_cast<std::uint32_t>(f)};
    // One that is a link to another is told by itself.
    const bool is_own = real.empty() || real[f] == file;
    if (!is_known[f] || !is_own || items[f].size() < kTelling) continue;
    std::sort(items[f].begin(), items[f].end(),
              [&](ChunkId a, ChunkId b) { return c.item(a)->offset < c.item(b)->offset; });
    std::vector<std::uint32_t> crcs;
    for (ChunkId chunk : items[f]) crcs.push_back(*facts.headers[index_of(chunk)]->payload_crc);
    FilePrint print{c.file(file).size, to_hex(hash_of(std::as_bytes(std::span(crcs))))};
    found[print].push_back({file, std::move(items[f])});
  }
  return found;
}

// Where one lies in a file, and what it says of its bytes.
bool is_equal_item(const Facts& facts, ChunkId a, ChunkId b) {
  const Checkpoint& c = facts.checkpoint;
  const ItemHeader &one = *facts.headers[index_of(a)], &two = *facts.headers[index_of(b)];
  return c.item(a)->offset == c.item(b)->offset && c.item(a)->length == c.item(b)->length &&
         one.dtype == two.dtype && one.sizes == two.sizes && one.strides == two.strides &&
         one.payload_length == two.payload_length && one.payload_crc == two.payload_crc;
}

bool is_equal_file(const Facts& facts, const Items& a, const Items& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](auto x, auto y) {
           return is_equal_item(facts, x, y);
         });
}

// Training gives these two other numbers. Experts may be copies of one dense layer, layers on an
// axis of their own as well, and equal tensors of other names are for duplicate-content; what an
// optimizer has gathered is never alike.
bool must_differ(const Checkpoint& c, ChunkId a, ChunkId b) {
  TensorId one = c.tensor_of(a), two = c.tensor_of(b);
  auto state = parse_state_fqn(c.fqn(one));
  if (state && role_of_kind(state->kind) == StateRole::kMoment)
    return one != two || !same(c.offsets(a), c.offsets(b));
  return one == two && !same(c.offsets(a), c.offsets(b)) && c.shape(one).size() <= 2 &&
         c.fqn(one).find("expert") == std::string_view::npos;
}

// Files with the same items: each is read once for what it holds, wherever it is asked of.
class SameItems {
 public:
  SameItems(const Facts& facts, const Items& items)
      : facts_(facts), items_(items), known_(items.size()), reader_(facts.checkpoint, 0) {}

  // Two tensors of which the files hold two tiles that training would have made different.
  bool are_told_apart(const Items& a, const Items& b) {
    std::set<TensorId> seen;
    for (std::size_t i = 0; i < a.size() && seen.size() < kTelling; ++i) {
      TensorId tensor = facts_.checkpoint.tensor_of(a[i]);
      if (!seen.contains(tensor) && has_many_numbers(i) &&
          must_differ(facts_.checkpoint, a[i], b[i]))
        seen.insert(tensor);
    }
    return seen.size() >= kTelling;
  }

 private:
  bool has_many_numbers(std::size_t item) {
    if (!known_[item]) {
      const Checkpoint& c = facts_.checkpoint;
      const ChunkId chunk = items_[item];
      const auto elements = static_cast<std::uint64_t>(volume(c.sizes(chunk)).value_or(0));
      known_[item] = elements >= kManyNumbers &&
                     numbers_at_start(c, chunk, kManyNumbers, reader_) == kManyNumbers;
    }
    return *known_[item];
  }

  const Facts& facts_;
  const Items& items_;
  std::vector<std::optional<bool>> known_;
  BoxReader reader_;
};

struct EqualFiles {
  std::vector<FileId> files;
  std::set<TensorId> tensors;
};

std::vector<EqualFiles> equal_files(const Facts& facts) {
  std::vector<EqualFiles> found;
  auto by_path = [&](FileId a, FileId b) {
    return facts.checkpoint.file(a).path < facts.checkpoint.file(b).path;
  };
  auto by_print = files_by_print(facts);
  for (auto& [print, files] : each_of(by_print, facts)) {
    // Each round is for the first file that is left: of a thousand files that say nothing of each
    // other more would be a million looks.
    for (std::size_t round = 0; round < kMostRounds && files.size() > 1; ++round) {
      const FileItems first = std::move(files.front());
      SameItems same(facts, first.items);
      EqualFiles group;
      std::vector<FileItems> left;
      for (std::size_t k = 1; k < files.size(); ++k) {
        const bool is_copy = is_equal_file(facts, first.items, files[k].items) &&
                             same.are_told_apart(first.items, files[k].items);
        if (is_copy)
          group.files.push_back(files[k].file);
        else
          left.push_back(std::move(files[k]));
      }
      files = std::move(left);
      if (group.files.empty()) continue;
      group.files.push_back(first.file);
      std::sort(group.files.begin(), group.files.end(), by_path);
      for (ChunkId chunk : first.items) group.tensors.insert(facts.checkpoint.tensor_of(chunk));
      found.push_back(std::move(group));
    }
  }
  std::sort(found.begin(), found.end(), [&](const EqualFiles& a, const EqualFiles& b) {
    return by_path(a.files.front(), b.files.front());
  });
  return found;
}

}  // namespace

void report_equal_files(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.headers.empty()) return;
  const Checkpoint& c = facts.checkpoint;
  for (const EqualFiles& group : equal_files(facts)) {
    Finding finding;
    finding.rule = kSharedStorage.id;
    finding.severity = Severity::kWarning;
    for (FileId file : group.files) finding.subjects.push_back(c.file(file).path);
    std::vector<std::string> tensors;
    for (TensorId tensor : group.tensors) tensors.emplace_back(c.fqn(tensor));
    finding.cause = fmt::format(
        "{} hold the same items, checksum by checksum, where other rows of {} belong into each: "
        "one rank's file was copied over another's, or these ranks drew the same random numbers "
        "and never trained. Which of them is its own nothing in them tells.",
        some_of(finding.subjects), plural(tensors.size(), "tensor"));
    finding.evidence = {{"tensors in them", capped(tensors)}, {"count", count_of(tensors.size())}};
    findings.push_back(std::move(finding));
  }
}

}  // namespace shw
