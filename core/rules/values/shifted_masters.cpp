#include "core/rules/values/shifted_masters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/values/flat_shift.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::size_t kMaxTiles = 4096;

using Codes = std::vector<std::uint16_t>;

// The elements of a box, row-major.
Codes elements_in_box(const TensorValues& values, const Box& box) {
  Codes codes(static_cast<std::size_t>(volume(box.sizes).value_or(0)));
  const Extents strides = row_major_strides(values.shape);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) offset += box.offsets[d] * strides[d];
  const Extents dense = row_major_strides(box.sizes);
  copy_strided({values.bytes, strides, offset},
               {std::as_writable_bytes(std::span(codes)), dense, 0}, box.sizes, sizeof(codes[0]));
  return codes;
}

// Makes -0 and 0 equal.
void replace_negative_zeros(Codes& codes) {
  constexpr std::uint16_t kMinusZero = 0x8000;
  std::replace(codes.begin(), codes.end(), kMinusZero, std::uint16_t{0});
}

struct TileShift {
  enum class Kind : std::uint8_t { kFits, kShifted, kOther } kind = Kind::kOther;
  std::int64_t by = 0;
};

std::vector<TileShift> parse_shifts(std::string_view text) {
  std::vector<TileShift> shifts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    TileShift shift;
    auto [end, code] = std::from_chars(one.data(), one.data() + one.size(), shift.by);
    if (code == std::errc{} && end == one.data() + one.size())
      shift.kind = shift.by == 0 ? TileShift::Kind::kFits : TileShift::Kind::kShifted;
    shifts.push_back(shift);
  }
  return shifts;
}

// The most common shift, and the number of tiles that have it.
std::pair<std::int64_t, std::size_t> most_common_shift(
    const std::vector<std::vector<TileShift>>& all) {
  std::map<std::int64_t, std::size_t> counts;
  for (const auto& shifts : all) {
    for (const TileShift& shift : shifts) {
      if (shift.kind == TileShift::Kind::kShifted) ++counts[shift.by];
    }
  }
  std::pair<std::int64_t, std::size_t> best{0, 0};
  for (const auto& [by, count] : counts) {
    if (count > best.second) best = {by, count};
  }
  return best;
}

// True if the tile has this shift, or is not longer than the shift, so that none of its values are
// left.
bool is_explained(const TileShift& shift, std::int64_t elements, std::int64_t by) {
  return shift.kind == TileShift::Kind::kFits || shift.by == by ||
         (shift.kind == TileShift::Kind::kOther && elements <= (by < 0 ? -by : by));
}

// Undoes a shift by `by` elements of a chunk's flattened elements. The moved elements are at most
// two boxes of the matrix. nullopt if dims before the last two are longer than 1.
std::optional<std::vector<RetainedChunk>> undo_flat_shift(const Checkpoint& c, ChunkId chunk,
                                                          std::int64_t by) {
  const ExtentsView sizes = c.sizes(chunk);
  const std::size_t ndim = sizes.size();
  if (ndim == 0 || by <= 0) return std::nullopt;
  const std::int64_t width = sizes[ndim - 1], rows = ndim > 1 ? sizes[ndim - 2] : 1;
  if (volume(sizes) != rows * width || width < 1) return std::nullopt;
  const std::int64_t down = by / width, right = by % width;
  std::vector<RetainedChunk> out;
  auto add = [&](std::int64_t first, std::int64_t columns, std::int64_t to_row,
                 std::int64_t to_column) {
    const std::int64_t count = rows - to_row;
    if (count <= 0 || columns <= 0) return;
    RetainedChunk retained_chunk{
        chunk, {Extents(ndim, 0), copy_of(sizes)}, copy_of(c.offsets(chunk))};
    retained_chunk.source.offsets[ndim - 1] = first;
    retained_chunk.source.sizes[ndim - 1] = columns;
    retained_chunk.at[ndim - 1] += to_column;
    if (ndim > 1) {
      retained_chunk.source.sizes[ndim - 2] = count;
      retained_chunk.at[ndim - 2] += to_row;
    }
    out.push_back(std::move(retained_chunk));
  };
  add(0, width - right, down, right);
  if (right != 0 && ndim > 1) add(width - right, right, down + 1, 0);
  return out;
}

// The tile with the same box in another state; the order of tiles may differ.
std::optional<ChunkId> chunk_with_same_box(const Checkpoint& c, TensorId state, ChunkId like) {
  for (ChunkId chunk : c.chunks(state)) {
    if (same(c.offsets(chunk), c.offsets(like)) && same(c.sizes(chunk), c.sizes(like)))
      return chunk;
  }
  return std::nullopt;
}

// The corrections of a state whose tiles have the master's boxes.
std::optional<PartlyLost> shift_corrections(const Checkpoint& c, TensorId state, TensorId master,
                                            const std::vector<TileShift>& shifts, std::int64_t by) {
  if (c.chunks(state).size() != shifts.size()) return std::nullopt;
  PartlyLost part{state, copy_of(c.shape(state)), {}, {}};
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const auto chunk =
        chunk_with_same_box(c, state, c.chunks(master)[static_cast<std::uint32_t>(i)]);
    if (!chunk) return std::nullopt;
    if (shifts[i].kind == TileShift::Kind::kFits) {
      part.retained_chunks.push_back(
          whole_retained_chunk(*chunk, c.sizes(*chunk), c.offsets(*chunk)));
      continue;
    }
    auto moved = undo_flat_shift(c, *chunk, by);
    if (!moved) return std::nullopt;
    part.retained_chunks.insert(part.retained_chunks.end(), moved->begin(), moved->end());
  }
  return part;
}

// The corrections of masters and their moments; empty if one cannot be expressed as boxes.
std::vector<PartlyLost> all_shift_corrections(const Facts& facts,
                                              const std::vector<const MasterValues*>& looks,
                                              const std::vector<std::vector<TileShift>>& shifts,
                                              const std::vector<bool>& explained, std::int64_t by) {
  const Checkpoint& c = facts.checkpoint;
  std::map<TensorId, std::vector<TensorId>> moments;  // by weight
  for (const OptimizerState& state : each_state(facts)) {
    if (state.role == StateRole::kMoment && state.parameter && state.is_parameter_certain)
      moments[*state.parameter].push_back(state.state);
  }
  std::vector<PartlyLost> parts;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (!explained[i]) continue;
    auto master = shift_corrections(c, looks[i]->master, looks[i]->master, shifts[i], by);
    if (!master) return {};
    master->refill_from = c.fqn(looks[i]->weight);
    parts.push_back(std::move(*master));
    for (TensorId moment : moments[looks[i]->weight]) {
      auto part = shift_corrections(c, moment, looks[i]->master, shifts[i], by);
      if (!part) return {};
      parts.push_back(std::move(*part));
    }
  }
  return parts;
}

Finding describe_shift(const Checkpoint& c, const std::vector<const MasterValues*>& looks,
                       const std::vector<std::vector<TileShift>>& shifts,
                       const std::vector<bool>& explained, std::int64_t by) {
  Finding finding{.rule = std::string(kMasterCast.id)};
  finding.link = "Megatron-LM #5077";
  std::vector<std::string> lines;
  std::size_t tiles = 0;
  std::string example;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (!explained[i]) continue;
    const auto shifted = static_cast<std::size_t>(
        std::count_if(shifts[i].begin(), shifts[i].end(),
                      [](const TileShift& one) { return one.kind != TileShift::Kind::kFits; }));
    const std::string fqn(c.fqn(looks[i]->master));
    const bool is_shown = std::any_of(shifts[i].begin(), shifts[i].end(), [](const auto& one) {
      return one.kind == TileShift::Kind::kShifted;
    });
    if (example.empty() && is_shown) example = fqn;
    tiles += shifted;
    finding.subjects.push_back(fqn);
    lines.push_back(fmt::format("{}: {} of {}", fqn, shifted, plural(shifts[i].size(), "chunk")));
  }
  const std::int64_t distance = by < 0 ? -by : by;
  const std::size_t count = finding.subjects.size();
  finding.cause = fmt::format(
      "{} not the {} belong to: {} shifted by {} (element i of {} is element i {} {} of its "
      "weight). The save counted padding that was removed from its buffers, and shifted the "
      "moments of these chunks as well.",
      count == 1 ? "One master copy is" : human_count(count) + " master copies are",
      count == 1 ? "weight that it" : "weights that they",
      tiles == 1 ? "one chunk is" : plural(tiles, "chunk") + " are",
      plural(static_cast<std::uint64_t>(distance), "element"), example, by < 0 ? "-" : "+",
      distance);
  finding.evidence = {{"shift", by},
                      {"masters", capped(lines)},
                      {"count", count_of(finding.subjects.size())},
                      {"tiles", count_of(tiles)}};
  return finding;
}

}  // namespace

std::string tile_shifts(const Checkpoint& checkpoint, TensorId master, const TensorValues& masters,
                        const TensorValues& weights) {
  const auto chunks = checkpoint.chunks(master);
  if (chunks.size() > kMaxTiles || size_of(weights.dtype) != sizeof(std::uint16_t) ||
      masters.shape != weights.shape)
    return {};
  auto cast = cast_elements(masters.dtype, masters.bytes, weights.dtype);
  if (!cast) return {};
  const TensorValues rounded{weights.dtype, masters.shape, std::move(*cast), 0};
  std::string text;
  for (ChunkId chunk : chunks) {
    const Box box = box_of(checkpoint, chunk);
    Codes part = elements_in_box(rounded, box), whole = elements_in_box(weights, box);
    replace_negative_zeros(part);
    replace_negative_zeros(whole);
    if (!text.empty()) text += ',';
    const auto by = part == whole ? std::optional<std::int64_t>(0) : flat_shift(part, whole);
    text += by ? std::to_string(*by) : "?";
  }
  return text;
}

bool report_shifted_masters(const Facts& facts, const std::vector<const MasterValues*>& looks,
                            const std::vector<std::string>& shifts, std::vector<bool>& explained,
                            std::vector<Finding>& findings) {
  constexpr std::size_t kSureTiles = 2;
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::vector<TileShift>> parsed;
  for (const std::string& text : shifts) parsed.push_back(parse_shifts(text));
  const auto [by, count] = most_common_shift(parsed);
  if (count < kSureTiles) return false;
  explained.assign(looks.size(), false);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    bool all = !parsed[i].empty() && parsed[i].size() == c.chunks(looks[i]->master).size();
    for (std::size_t t = 0; all && t < parsed[i].size(); ++t) {
      const ChunkId chunk = c.chunks(looks[i]->master)[static_cast<std::uint32_t>(t)];
      all = is_explained(parsed[i][t], volume(c.sizes(chunk)).value_or(0), by);
    }
    explained[i] = all;
  }
  if (std::find(explained.begin(), explained.end(), true) == explained.end()) return false;
  Finding finding = describe_shift(c, looks, parsed, explained, by);
  std::vector<PartlyLost> parts = all_shift_corrections(facts, looks, parsed, explained, by);
  if (parts.empty()) {
    finding.evidence.emplace_back(
        "what_to_do", std::string("no safe remedy: do not resume with these states. Fill the "
                                  "masters from the weights and start the moments from scratch"));
  } else {
    const LostCount loss = loss_of(parts);
    finding.remedy = Remedy{
        "retile", false,
        fmt::format("Shift the chunks back by {}: {} elements kept, {} lost, {} of them (masters) "
                    "refilled from the weights; the rest are moments and are masked.",
                    plural(static_cast<std::uint64_t>(by), "element"),
                    human_count(static_cast<std::uint64_t>(loss.kept)),
                    human_count(static_cast<std::uint64_t>(loss.lost)),
                    human_count(static_cast<std::uint64_t>(loss.refilled)))};
    for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
  }
  findings.push_back(std::move(finding));
  return true;
}

}  // namespace shw
