#include "core/rules/storage/equal_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
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

// Number of tensors needed as evidence; a single one may be a repetitive table.
constexpr std::size_t kMinEvidenceTensors = 2;
// Number of different numbers that shows that a tile was trained.
constexpr std::size_t kManyNumbers = 16;
constexpr std::size_t kMaxAsked = 16;  // tensors per file

using Items = std::vector<ChunkId>;  // of one file, in file order

// Length of a file and the checksums of its items; equal files agree in both.
using FileSignature = std::pair<std::uint64_t, std::string>;
struct FileItems {
  FileId file{};
  Items items;
};

std::map<FileSignature, std::vector<FileItems>> files_by_signature(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  const std::vector<FileId> real = first_file_per_inode(c);
  std::vector<Items> items(c.file_count());
  std::vector<bool> is_known(c.file_count(), true);
  for (ChunkId chunk : each_of(c.chunks(), facts)) {
    auto place = c.item(chunk);
    if (!place || place->file == FileId::kNone) continue;
    const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
    if (!header || !header->payload_crc) is_known[index_of(place->file)] = false;
    items[index_of(place->file)].push_back(chunk);
  }
  std::map<FileSignature, std::vector<FileItems>> found;
  for (std::size_t f = 0; f < items.size(); ++f) {
    const FileId file{static_cast<std::uint32_t>(f)};
    // Links to another file are reported separately.
    const bool is_own = real.empty() || real[f] == file;
    if (!is_known[f] || !is_own || items[f].size() < kMinEvidenceTensors) continue;
    std::sort(items[f].begin(), items[f].end(),
              [&](ChunkId a, ChunkId b) { return c.item(a)->offset < c.item(b)->offset; });
    std::vector<std::uint32_t> crcs;
    for (ChunkId chunk : items[f]) crcs.push_back(*facts.headers[index_of(chunk)]->payload_crc);
    FileSignature print{c.file(file).size, to_hex(hash_of(std::as_bytes(std::span(crcs))))};
    found[print].push_back({file, std::move(items[f])});
  }
  return found;
}

// Compares places in the file, and checksums.
bool is_equal_item(const Facts& facts, ChunkId a, ChunkId b) {
  const Checkpoint& c = facts.checkpoint;
  const ItemHeader one = *facts.headers[index_of(a)], two = *facts.headers[index_of(b)];
  return c.item(a)->offset == c.item(b)->offset && c.item(a)->length == c.item(b)->length &&
         one.dtype == two.dtype && one.sizes == two.sizes && one.strides == two.strides &&
         one.payload_length == two.payload_length && one.payload_crc == two.payload_crc;
}

bool is_equal_file(const Facts& facts, const Items& a, const Items& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](auto x, auto y) {
           return is_equal_item(facts, x, y);
         });
}

bool is_moment(const Checkpoint& c, TensorId tensor) {
  auto state = parse_state_fqn(c.fqn(tensor));
  return state && role_of_kind(state->kind) == StateRole::kMoment;
}

// True if training must give two tiles different values. Equal tensors with other names are left to
// duplicate-content; accumulated optimizer states never agree.
bool must_differ(const Checkpoint& c, ChunkId a, ChunkId b) {
  TensorId one = c.tensor_of(a), two = c.tensor_of(b);
  if (one != two) return is_moment(c, one);
  return !same(c.offsets(a), c.offsets(b));
}

// Items with many different numbers, by index in the file: one per tensor, as many as
// needed.
std::vector<std::size_t> distinctive_items(const Checkpoint& c, const Items& items) {
  std::vector<std::size_t> telling;
  std::set<TensorId> seen;
  ItemCursor reader(c, /*decoded_bytes=*/0);
  for (std::size_t i = 0; i < items.size() && telling.size() < kMaxAsked; ++i) {
    const TensorId tensor = c.tensor_of(items[i]);
    const auto elements = static_cast<std::uint64_t>(volume(c.sizes(items[i])).value_or(0));
    if (elements < kManyNumbers || seen.contains(tensor) || !must_have_distinct_tiles(c, tensor))
      continue;
    if (distinct_values_at_start(c, items[i], kManyNumbers, reader) != kManyNumbers) continue;
    seen.insert(tensor);
    telling.push_back(i);
  }
  return telling;
}

// True if the files share the tiles of at least two tensors that training would have made
// different.
bool share_distinctive_tiles(const Checkpoint& c, const std::vector<std::size_t>& telling,
                             const Items& a, const Items& b) {
  auto differs = [&](std::size_t i) { return must_differ(c, a[i], b[i]); };
  return std::count_if(telling.begin(), telling.end(), differs) >=
         static_cast<std::ptrdiff_t>(kMinEvidenceTensors);
}

struct EqualFiles {
  std::vector<FileId> files;
  std::set<TensorId> tensors;
};

std::vector<EqualFiles> equal_files(const Facts& facts) {
  std::vector<EqualFiles> found;
  auto by_path = [&](FileId a, FileId b) {
    return facts.checkpoint.file(a).path < facts.checkpoint.file(b).path;
  };
  auto by_print = files_by_signature(facts);
  for (auto& [print, files] : each_of(by_print, facts)) {
    // Each round removes the first remaining file with all files equal to it, and reads one of
    // them. Only the first is compared: comparing all pairs of 1000 files would take a million
    // reads.
    while (files.size() > 1) {
      const FileItems first = std::move(files.front());
      const std::vector<std::size_t> telling = distinctive_items(facts.checkpoint, first.items);
      EqualFiles group;
      std::vector<FileItems> left;
      for (std::size_t k = 1; k < files.size(); ++k) {
        if (!is_equal_file(facts, first.items, files[k].items))
          left.push_back(std::move(files[k]));
        else if (share_distinctive_tiles(facts.checkpoint, telling, first.items, files[k].items))
          group.files.push_back(files[k].file);
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

bool must_have_distinct_tiles(const Checkpoint& c, TensorId tensor) {
  return is_moment(c, tensor) ||
         (c.shape(tensor).size() <= 2 && c.fqn(tensor).find("expert") == std::string_view::npos);
}

void report_equal_files(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.headers.empty()) return;
  const Checkpoint& c = facts.checkpoint;
  for (const EqualFiles& group : equal_files(facts)) {
    Finding finding{.rule = std::string(kSharedStorage.id), .severity = Severity::kWarning};
    for (FileId file : group.files) finding.subjects.push_back(c.file(file).path);
    std::vector<std::string> tensors;
    for (TensorId tensor : group.tensors) tensors.emplace_back(c.fqn(tensor));
    finding.cause = fmt::format(
        "{} hold the same items (equal checksums), but should hold different rows of {}: one "
        "rank's file was copied over another's, or these ranks drew the same random numbers and "
        "never trained. The files do not show which one is the original.",
        short_list_text(finding.subjects), plural(tensors.size(), "tensor"));
    finding.evidence = {{"tensors_in_them", capped(tensors)}, {"count", count_of(tensors.size())}};
    findings.push_back(std::move(finding));
  }
}

}  // namespace shw
