#include "core/report/page_facts.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/repair/proof/checksum_mismatches.h"

namespace shw {
namespace {

// Number of tiles and bytes of their items, by rank.
struct Written {
  std::uint64_t tiles = 0, bytes = 0;
};

std::map<std::uint32_t, Written> written_by_rank(const Checkpoint& checkpoint) {
  std::map<std::uint32_t, Written> ranks;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    const std::uint64_t element = size_of(checkpoint.dtype(TensorId{t}));
    for (ChunkId chunk : checkpoint.chunks(TensorId{t})) {
      auto rank = checkpoint.writer(chunk);
      if (!rank) continue;
      Written& written = ranks[*rank];
      ++written.tiles;
      auto elements = volume(checkpoint.sizes(chunk));
      written.bytes += elements ? static_cast<std::uint64_t>(*elements) * element : 0;
    }
  }
  return ranks;
}

std::string state_of(const FileRow& file, const FormatTraits& traits) {
  if (!file.safe) return "leaves the checkpoint, never opened";
  if (file.kind == EntryKind::kMissing) return "is not there";
  if (file.kind != EntryKind::kFile) return "is not a file";
  if (traits.has_index && file.path == traits.index_file) return "the index";
  return file.referenced ? "" : "nothing points to it";
}

bool has_file_problem(const FileRow& file) {
  return !file.safe || file.kind != EntryKind::kFile;
}

std::vector<std::uint64_t> tiles_by_file(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> tiles(checkpoint.file_count());
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i) {
    auto item = checkpoint.item(ChunkId{i});
    if (item && item->file != FileId::kNone) ++tiles[index_of(item->file)];
  }
  return tiles;
}

}  // namespace

std::string ranks_line(const Checkpoint& checkpoint) {
  auto ranks = written_by_rank(checkpoint);
  if (ranks.empty()) return "Nothing says which ranks wrote the tiles";
  auto fewer = [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; };
  auto [least, most] = std::minmax_element(ranks.begin(), ranks.end(), fewer);
  std::string text = plural(ranks.size(), "rank") + " wrote tiles: ";
  if (least->second.bytes == most->second.bytes) return text + human_bytes(most->second.bytes);
  return text + fmt::format("from {} (rank {}) to {} (rank {})", human_bytes(least->second.bytes),
                            least->first, human_bytes(most->second.bytes), most->first);
}

std::map<std::pair<std::string, std::string>, std::size_t> count_tensors_per_mesh(
    const Spec& spec) {
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  for (const auto& [fqn, entry] : spec.entries) {
    if (entry.mesh) ++counts[{to_text(*entry.mesh), to_text(entry.placements)}];
  }
  return counts;
}

std::vector<FileLine> file_lines(const Checkpoint& checkpoint) {
  const std::vector<std::uint64_t> tiles = tiles_by_file(checkpoint);
  std::vector<FileLine> lines;
  for (std::uint32_t i = 0; i < checkpoint.file_count(); ++i) {
    const FileRow& file = checkpoint.file(FileId{i});
    lines.push_back(
        {FileId{i}, tiles[i], state_of(file, checkpoint.format().traits), has_file_problem(file)});
  }
  std::stable_partition(lines.begin(), lines.end(),
                        [](const FileLine& line) { return line.has_unreadable_data; });
  return lines;
}

std::string tensor_outcomes_text(const Certificate& certificate) {
  std::size_t lost = 0, moved = 0, cast = 0;
  std::uint64_t elements = 0;
  for (const TensorCertificate& tensor : certificate.tensors) {
    lost += tensor.lost != 0;
    cast += tensor.is_cast;
    moved += tensor.before != tensor.after;
    elements += static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.lost, 0));
  }
  std::string text = plural(certificate.tensors.size(), "tensor") + ", " + human_count(moved) +
                     " of them rewritten";
  if (cast != 0) text += ", " + human_count(cast) + " rounded to another dtype";
  if (lost != 0)
    text += "; " + plural(elements, "element") + " of " + plural(lost, "tensor") + " lost";
  return text;
}

std::pair<std::string, bool> loss_verdict(const Certificate& certificate) {
  if (certificate.seal == Certificate::Seal::kBroken)
    return {"changed after it was written", false};
  const auto is_lost = [](const TensorCertificate& tensor) { return tensor.lost != 0; };
  const bool has_lost =
      std::any_of(certificate.tensors.begin(), certificate.tensors.end(), is_lost);
  if (has_damage(certificate) && !has_lost) return {"holds what was damaged before", false};
  if (!certificate.lossless) return {"lost data", false};
  return {certificate.left_out.empty() ? "nothing was lost" : "no element was lost", true};
}

std::vector<std::pair<std::string, std::string>> certificate_lines(const Certificate& certificate) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Operation& operation : certificate.operations)
    lines.emplace_back(name(operation.kind), operation.text);
  for (const std::string& step : certificate.steps) lines.emplace_back("step", step);
  for (const std::string& dropped : certificate.dropped) lines.emplace_back("dropped", dropped);
  for (const std::string& fqn : certificate.of_other_ranks)
    lines.emplace_back("dropped", fqn + " of other ranks");
  for (const std::string& left : certificate.left_out) lines.emplace_back("left out", left);
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (tensor.lost > 0)
      lines.emplace_back(
          "lost", plural(static_cast<std::uint64_t>(tensor.lost), "element") + " of " + tensor.fqn);
    if (tensor.out_of_range > 0)
      lines.emplace_back("out of range",
                         plural(static_cast<std::uint64_t>(tensor.out_of_range), "element") +
                             " of " + tensor.fqn + ", beyond what " + tensor.dtype + " can say");
    if (!tensor.damage.empty()) lines.emplace_back("damaged", tensor.fqn + ": " + tensor.damage);
    if (tensor.padding > 0)
      lines.emplace_back("left out", plural(static_cast<std::uint64_t>(tensor.padding), "element") +
                                         " of padding of " + tensor.fqn);
  }
  return lines;
}

}  // namespace shw
