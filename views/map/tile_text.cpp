// Text about a tile for the tooltip and the right column.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "core/rules/rules.h"
#include "views/map/tile_colours.h"
#include "views/map/tile_map.h"
#include "views/text.h"

namespace shw {

std::string rank_text(const Frame& frame, std::uint32_t rank) {
  std::string text = std::to_string(rank);
  const MeshInfo& mesh = *frame.digest.mesh;
  if (mesh.axes.size() < 2 || mesh.axes[0].name.starts_with("dim ")) return text;
  std::int64_t at = rank, rest = 1;
  for (const MeshAxis& axis : mesh.axes) rest *= axis.size;
  std::string coordinates;
  for (const MeshAxis& axis : mesh.axes) {
    rest /= std::max<std::int64_t>(axis.size, 1);
    if (rest == 0) return text;
    coordinates += fmt::format("{}{} {}", coordinates.empty() ? "" : ", ", axis.name, at / rest);
    at %= rest;
  }
  return text + "  (" + coordinates + ")";
}

std::string share_text(const Frame& frame, std::uint32_t rank) {
  const MeshInfo& mesh = *frame.digest.mesh;
  if (rank >= mesh.shares.size()) return {};
  const RankShare& share = mesh.shares[rank];
  if (share.tiles == 0) return "wrote nothing";
  std::string text = "wrote " + plural(share.tiles, "tile") + " of " +
                     plural(share.tensors, "tensor") + ", " + human_bytes(share.bytes);
  if (share.unreadable_tiles != 0)
    text += "\n" + plural(share.unreadable_tiles, "tile") + ", " +
            human_bytes(share.unreadable_bytes) + ", cannot be read";
  return text;
}

std::string offset_text(std::int64_t offset) {
  return offset < 0 ? std::to_string(offset) : fmt::format("0x{:X}", offset);
}

CrcState crc_state(const Frame& frame, ChunkId chunk) {
  const CheckReport* report = frame.snapshot.report.get();
  if (report == nullptr || report->depth != Depth::kData) return {Sign::kQuiet, "not read yet"};
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  auto item = checkpoint.item(chunk);
  const FindingNames& names = frame.digest.about->names;
  const auto of_tensor = names.of(checkpoint.tensor_of(chunk));
  const auto of_file =
      item && item->file != FileId::kNone ? names.of(item->file) : std::span<const std::uint32_t>();
  std::vector<std::uint32_t> named;
  std::ranges::set_union(of_tensor, of_file, std::back_inserter(named));
  bool is_open = false;
  for (const std::uint32_t f : named) {
    const Finding& finding = report->findings[f];
    const Rule& rule = rule_of(finding);
    // A finding about a missing or short file applies to all its tiles.
    const bool is_of_file =
        finding.severity == Severity::kError && std::ranges::binary_search(of_file, f);
    if (rule.damages_bytes || is_of_file) return {Sign::kBad, "see " + finding.rule};
    is_open = is_open || rule.leaves_undecided;
  }
  // An unreadable item has no checksum result.
  if (is_open || !item) return {Sign::kQuiet, "could not be checked"};
  if (has_unproved_bytes(report->unjudged)) return {Sign::kQuiet, "none, or it matches"};
  return {Sign::kOk, "matches"};
}

std::string tile_text(const Frame& frame, ChunkId chunk) {
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  auto writer = checkpoint.writer(chunk);
  std::string text = writer ? "rank " + rank_text(frame, *writer) : "writer not known";
  text += "\noffsets " + to_text(checkpoint.offsets(chunk));
  text += "\nsizes " + to_text(checkpoint.sizes(chunk));
  auto item = checkpoint.item(chunk);
  if (!item) return text + "\nno storage record";
  text += "\n" + checkpoint.file(item->file).path;
  text += "\nat " + offset_text(item->offset);
  if (item->offset >= 0) text += " = " + human_count(static_cast<std::uint64_t>(item->offset));
  if (item->length >= 0) {
    auto length = static_cast<std::uint64_t>(item->length);
    text += "\n" + human_count(length) + " bytes";
    if (length >= 1000) text += " (" + human_bytes(length) + ")";
  }
  text += "\nCRC-32 " + crc_state(frame, chunk).text;
  std::string values = tile_values_text(frame, chunk);
  if (!values.empty()) text += "\n" + values;
  return text;
}

}  // namespace shw
