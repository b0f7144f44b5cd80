#include "core/facts/storage/filled.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_set>

#include "core/base/cancellable_range.h"
#include "core/base/words.h"
#include "core/formats/common/filled_attribute.h"
#include "core/tiles/coverage.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxSideFile = std::uint64_t{256} << 20;
constexpr std::string_view kInHeaders = "__metadata__";  // of safetensors files
constexpr std::size_t kMaxDisagreements = 8;

struct Source {
  std::string name;
  FilledRecord record;
};

// True if the file begins like ours: certificate.json files of other tools are ignored.
bool has_shardwright_schema(std::string_view text) {
  return text.substr(0, 256).find("\"shardwright/") != std::string_view::npos;
}

void read_file(const Checkpoint& checkpoint, const char* path, std::vector<Source>& sources,
               FilledReport& report, const Progress* progress) {
  const Directory& directory = *checkpoint.directory();
  if (directory.stat(path).kind != EntryKind::kFile) return;
  auto source = directory.open(path);
  if (!source || (*source)->size() > kMaxSideFile) {
    report.unreadable.emplace_back(path);
    return;
  }
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) {
    report.unreadable.emplace_back(path);
    return;
  }
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (auto record = filled_from_json(text, progress)) {
    sources.push_back({path, std::move(*record)});
  } else if (has_shardwright_schema(text)) {
    report.unreadable.emplace_back(path);
  }
}

bool fits_checkpoint(const Checkpoint& checkpoint, const FilledTensor& tensor) {
  auto here = checkpoint.find(tensor.fqn);
  return here && same(checkpoint.shape(*here), tensor.shape);
}

// A file copied from another checkpoint may share a few names. Accepted if most of its tensors
// exist here with the same shape.
bool is_of_another_checkpoint(const Checkpoint& checkpoint, const FilledRecord& record,
                              const Progress* progress) {
  std::size_t here = 0;
  for (const FilledTensor& tensor : cancellable_range(record.tensors, progress))
    here += fits_checkpoint(checkpoint, tensor) ? 1 : 0;
  return 2 * here <= record.tensors.size() && !record.tensors.empty();
}

// Old holes are reported by coverage-gap; they count here only if something was filled
// in.
bool is_filled(const Checkpoint& checkpoint, const FilledTensor& tensor) {
  return !tensor.fill.empty() ||
         compute_tiling(checkpoint, *checkpoint.find(tensor.fqn)).tiling == Tiling::kExact;
}

// Merges two records of one tensor: union of the boxes, greater number.
void merge_filled_boxes(FilledTensor& into, const FilledTensor& other, std::size_t& looks) {
  into.has_all_boxes = into.has_all_boxes && other.has_all_boxes;
  if (into.boxes != other.boxes) {
    if (!add_all_disjoint(into.boxes, other.boxes, looks)) into.has_all_boxes = false;
  }
  std::int64_t in_boxes = 0;
  for (const Box& box : into.boxes) in_boxes += volume(box.sizes).value_or(0);
  into.lost = std::min(into.total(), std::max({into.lost, other.lost, in_boxes}));
  into.has_all_boxes = into.has_all_boxes && in_boxes == into.lost;
  if (!other.fill.empty()) merge_fill_source(into, other, into.fill.empty());
}

using FilledByTensor = std::map<TensorId, FilledTensor>;

FilledByTensor merge_fill_records(const Checkpoint& checkpoint, const std::vector<Source>& sources,
                                  const Progress* progress) {
  FilledByTensor all;
  std::size_t looks = 20'000'000;
  for (const Source& source : sources) {
    for (const FilledTensor& tensor : cancellable_range(source.record.tensors, progress)) {
      if (tensor.lost == 0 || !fits_checkpoint(checkpoint, tensor) ||
          !is_filled(checkpoint, tensor))
        continue;
      auto [found, added] = all.try_emplace(*checkpoint.find(tensor.fqn), tensor);
      if (!added) merge_filled_boxes(found->second, tensor, looks);
    }
  }
  return all;
}

// Reports contradictions between sources that list all losses.
void compare(const std::vector<Source>& sources, const FilledByTensor& all,
             const Progress* progress, FilledReport& report) {
  std::vector<std::map<std::string_view, std::int64_t>> said(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (const FilledTensor& tensor : cancellable_range(sources[i].record.tensors, progress)) {
      if (tensor.lost != 0) said[i][tensor.fqn] = tensor.lost;
    }
    if (!said[i].empty() && sources[i].record.lossless == true)
      report.disagreements.push_back(sources[i].name +
                                     " says that nothing is lost, but lists losses");
  }
  for (const auto& [id, tensor] : cancellable_range(all, progress)) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (report.disagreements.size() == kMaxDisagreements) return;
      // Safetensors headers describe only the tensors of their own file.
      if (sources[i].name == kInHeaders) continue;
      auto found = said[i].find(tensor.fqn);
      std::int64_t lost = found == said[i].end() ? 0 : found->second;
      if (lost == tensor.lost) continue;
      report.disagreements.push_back(
          sources[i].name + " says " + human_count(static_cast<std::uint64_t>(lost)) + " of " +
          tensor.fqn + " where " + human_count(static_cast<std::uint64_t>(tensor.lost)) +
          " are recorded elsewhere");
    }
  }
}

// An entry whose value still exists under another name is not lost.
void add_entries(const Checkpoint& checkpoint, const std::vector<Source>& sources,
                 FilledReport& report) {
  std::set<std::string_view> here, seen;
  for (const NonTensorEntry& row : checkpoint.objects()) here.insert(row.fqn);
  for (const Source& source : sources) {
    std::set<std::string_view> taken;
    for (const FilledEntry& entry : source.record.entries) taken.insert(entry.from);
    for (const FilledEntry& entry : source.record.entries) {
      if (!taken.contains(entry.fqn) && here.contains(entry.fqn) && seen.insert(entry.fqn).second)
        report.entries.push_back(entry);
    }
  }
}

}  // namespace

FilledRecord FilledRecord::of_tensors(const std::vector<std::string>& fqns) const {
  const std::unordered_set<std::string_view> wanted(fqns.begin(), fqns.end());
  FilledRecord own;
  for (const FilledTensor& tensor : tensors) {
    if (wanted.contains(tensor.fqn)) own.tensors.push_back(tensor);
  }
  return own;
}

const FilledTensor* FilledReport::find(std::string_view fqn) const {
  auto found = std::lower_bound(
      by_name.begin(), by_name.end(), fqn,
      [&](std::uint32_t i, std::string_view wanted) { return tensors[i].fqn < wanted; });
  return found != by_name.end() && tensors[*found].fqn == fqn ? &tensors[*found] : nullptr;
}

bool add_uncovered_part_of_box(std::vector<Box>& boxes, const Box& box, std::size_t& looks) {
  if (is_empty(box)) return true;
  if (box.sizes.empty()) {  // a scalar's single element
    if (boxes.empty()) boxes.push_back(box);
    return true;
  }
  std::vector<Box> parts{box};
  for (const Box& other : boxes) {
    std::vector<Box> left;
    for (const Box& part : parts) {
      if (looks == 0) return false;
      --looks;
      if (!intersect(part, other)) {
        left.push_back(part);
        continue;
      }
      for (Box& piece : subtract(part, other)) left.push_back(std::move(piece));
    }
    parts = std::move(left);
    if (parts.empty()) return true;
  }
  for (Box& part : parts) boxes.push_back(std::move(part));
  return true;
}

bool add_all_disjoint(std::vector<Box>& boxes, std::span<const Box> more, std::size_t& looks) {
  constexpr std::size_t kFew = 64;        // below this a simple loop is as fast
  constexpr std::size_t kMost = 200'000;  // the sweep below may have a thousand open boxes
  if (more.size() > kFew && boxes.size() + more.size() <= kMost) {
    std::vector<Box> all = boxes;
    std::copy_if(more.begin(), more.end(), std::back_inserter(all),
                 [](const Box& box) { return !is_empty(box); });
    if (are_disjoint(all)) {
      boxes = std::move(all);
      return true;
    }
  }
  bool whole = true;
  for (const Box& box : more) whole = add_uncovered_part_of_box(boxes, box, looks) && whole;
  return whole;
}

FilledText read_filled_record_text(const Checkpoint& checkpoint) {
  const Provenance& provenance = checkpoint.provenance();
  const FormatTraits& traits = checkpoint.format().traits;
  FilledText inside{std::string(traits.has_index ? traits.index_file : kInHeaders), {}};
  auto is_named = [](const std::string& name) { return name == kFilledAttribute; };
  for (const auto& [name, value] : provenance.plain_attributes) {
    if (!is_named(name)) continue;
    auto text = text_of_binunicode(value);
    if (text) inside.texts.push_back(std::move(*text));
    inside.damaged = inside.damaged || !text;
  }
  bool there =
      std::any_of(provenance.extra_attributes.begin(), provenance.extra_attributes.end(), is_named);
  inside.damaged = inside.damaged || (there && inside.texts.empty());
  return inside;
}

FilledReport filled_report_of(const Checkpoint& checkpoint, const Progress* progress) {
  FilledReport report;
  std::vector<Source> sources;
  FilledText inside = read_filled_record_text(checkpoint);
  for (const std::string& text : inside.texts) {
    if (auto record = filled_from_json(text, progress)) {
      sources.push_back({inside.place, std::move(*record)});
    } else {
      inside.damaged = true;
    }
  }
  if (inside.damaged) report.unreadable.push_back(inside.place);
  if (checkpoint.directory() != nullptr) {
    std::vector<Source> beside;
    read_file(checkpoint, kLostFile, beside, report, progress);
    read_file(checkpoint, kCertificateFile, beside, report, progress);
    for (Source& source : beside) {
      if (is_of_another_checkpoint(checkpoint, source.record, progress)) {
        report.foreign.push_back(source.name);
      } else {
        sources.push_back(std::move(source));
      }
    }
  }
  FilledByTensor all = merge_fill_records(checkpoint, sources, progress);
  compare(sources, all, progress, report);
  add_entries(checkpoint, sources, report);
  for (const Source& source : sources) {
    auto loses = [](const FilledTensor& tensor) { return tensor.lost != 0; };
    bool says = !source.record.entries.empty() ||
                std::any_of(source.record.tensors.begin(), source.record.tensors.end(), loses);
    if (says) report.sources.push_back(source.name);
  }
  for (auto& [id, tensor] : all) report.tensors.push_back(std::move(tensor));
  report.by_name.resize(report.tensors.size());
  std::iota(report.by_name.begin(), report.by_name.end(), 0u);
  std::sort(report.by_name.begin(), report.by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    return report.tensors[a].fqn < report.tensors[b].fqn;
  });
  return report;
}

std::string replacement_text(const FilledTensor& tensor) {
  if (tensor.fill == "zero") return "zeros";
  if (tensor.fill == "constant") return "one value everywhere";
  if (tensor.fill == "side") return "the contents of a file next to the checkpoint";
  if (tensor.fill == "cast" && !tensor.fill_from.empty()) return "the cast of " + tensor.fill_from;
  if (tensor.fill == "cast") return "the cast of another tensor";
  if (tensor.fill != "from") return "what no record names";
  return (tensor.fill_from.empty() ? "the same tensor" : tensor.fill_from) + " of " +
         (tensor.fill_checkpoint.empty() ? "another checkpoint" : tensor.fill_checkpoint);
}

std::string filled_elements_text(const FilledTensor& tensor) {
  return human_count(static_cast<std::uint64_t>(tensor.lost)) + " of " +
         human_count(static_cast<std::uint64_t>(tensor.total())) + " elements lost, filled with " +
         replacement_text(tensor);
}

}  // namespace shw
