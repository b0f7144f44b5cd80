#include "core/formats/deepspeed/zero_layers.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/torch_file_with_findings.h"
#include "core/formats/megatron_axes.h"
#include "core/formats/rank_chunks.h"
#include "core/model/state_path.h"

namespace shw {
namespace {

// Limit, above any real number of tensor-parallel ranks.
constexpr std::uint32_t kMaxTensorRanks = 256;

std::string layer_file_name(const std::string& prefix, std::uint32_t rank) {
  return fmt::format("{}-model_{:02}-model_states.pt", prefix.substr(0, prefix.size() - 1), rank);
}

constexpr std::uint32_t kMaxLostLayers = 256;
// A layer with fewer tensors, such as an embedding or a norm, is not a block.
constexpr std::size_t kMinTensors = 4;

// The number in "layer_03.".
std::optional<std::uint32_t> layer_number(std::string_view prefix) {
  constexpr std::string_view kWord = "layer_";
  if (!prefix.starts_with(kWord)) return std::nullopt;
  prefix = prefix.substr(kWord.size(), prefix.find('.') - kWord.size());
  std::uint32_t number = 0;
  const auto read = std::from_chars(prefix.data(), prefix.data() + prefix.size(), number);
  return read.ec == std::errc() && read.ptr == prefix.data() + prefix.size() ? std::optional(number)
                                                                             : std::nullopt;
}

class ZeroLayers {
 public:
  ZeroLayers(CheckpointBuilder& builder, ZeroStorages& storages, const Directory& directory,
             ZeroPickleFindings& notes)
      : builder_(builder),
        storages_(storages),
        directory_(directory),
        notes_(notes),
        chunks_(builder) {}

  void run(std::span<const ZeroLayer> layers, const RecordedLayers& recorded) {
    std::map<std::string, std::set<std::uint32_t>> there;
    for (const ZeroLayer& layer : layers) {
      if (layer.rank >= kMaxTensorRanks) {
        notes_.findings.push_back(bad_record_finding(
            layer.path,
            fmt::format(
                "{} was not read: it belongs to rank {}, but at most {} ranks are supported.",
                layer.path, layer.rank, kMaxTensorRanks)));
        continue;
      }
      ranks_ = std::max(ranks_, layer.rank + 1);
      there[layer.prefix].insert(layer.rank);
      read(layer);
    }
    ranks_ = std::max(ranks_, infer_ranks_from_attention());
    for (const auto& [prefix, own] : there) {
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        if (!own.contains(rank)) builder_.file(layer_file_name(prefix, rank));
      }
    }
    add_lost_layers(layers);
    add_recorded_layers(layers, recorded.numbers);
    if (recorded.blocks) report_lost_blocks(recorded.path, *recorded.blocks);
    for (const std::string& fqn : order_) add(fqn, pieces_.at(fqn));
    report_joined_axes(layers.empty() ? "" : layers.front().path);
    note_unread();
  }

 private:
  void read(const ZeroLayer& layer) {
    const FileId id = builder_.file(layer.path);
    auto file = read_torch_file_with_findings(directory_, layer.path, notes_);
    if (!file) {
      const Error& error = file.error();
      notes_.findings.push_back(bad_record_finding(
          layer.path, "The file " + layer.path + " cannot be read: " + error.message + ".",
          error.place.offset));
      return;
    }
    for (TorchFileTensor& tensor : file->tensors) {
      std::string fqn = layer.prefix + dotted_path(tensor.path);
      auto [known, is_new] = pieces_.try_emplace(std::move(fqn));
      if (is_new) order_.push_back(known->first);
      known->second.push_back({layer.rank, id, std::move(tensor)});
    }
    for (const UnreadableTensor& one : file->unreadable)
      unread_[one.error.message].push_back(layer.prefix + dotted_path(one.path));
  }

  // Names and shapes of the tensors of each layer, by its number.
  std::map<std::uint32_t, std::vector<std::pair<std::string, Extents>>> forms() const {
    std::map<std::uint32_t, std::vector<std::pair<std::string, Extents>>> forms;
    for (const std::string& fqn : order_) {
      const std::size_t dot = fqn.find('.');
      if (const auto number = layer_number(fqn))
        forms[*number].emplace_back(fqn.substr(dot), pieces_.at(fqn).front().tensor.sizes);
    }
    for (auto& [number, form] : forms) std::sort(form.begin(), form.end());
    return forms;
  }

  // Adds the files of layers missing between two layers of one form. A layer without parameters has
  // no file, so a gap counts only among blocks of several tensors that mostly follow one another.
  void add_lost_layers(std::span<const ZeroLayer> layers) {
    const auto known = forms();
    std::size_t adjacent = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> gaps;
    for (auto at = known.begin(); at != known.end(); ++at) {
      const auto next = std::next(at);
      if (next == known.end() || at->second != next->second || at->second.size() < kMinTensors)
        continue;
      if (next->first == at->first + 1)
        ++adjacent;
      else
        gaps.emplace_back(at->first, next->first);
    }
    if (gaps.size() > 1 || adjacent < 2) return;
    for (const auto& [before, after] : gaps) {
      for (const ZeroLayer& layer : layers) {
        if (layer_number(layer.prefix) != before) continue;
        for (std::uint32_t lost = before + 1; lost < after && lost - before <= kMaxLostLayers;
             ++lost)
          builder_.file(
              fmt::format("layer_{:02}{}", lost, layer.path.substr(layer.prefix.size() - 1)));
      }
    }
  }

  // Adds the files of layers whose parameters the optimizer has. The numbers are those of layers if
  // most layers that are here have one; a tied layer's parameters are named otherwise.
  void add_recorded_layers(std::span<const ZeroLayer> layers,
                           const std::set<std::uint32_t>& recorded) {
    const auto known = forms();
    const auto common = std::count_if(known.begin(), known.end(), [&](const auto& layer) {
      return recorded.contains(layer.first);
    });
    if (common < 2 || 2 * static_cast<std::size_t>(common) < known.size()) return;
    for (const std::uint32_t number : recorded) {
      if (known.contains(number) || number > known.rbegin()->first + kMaxLostLayers) continue;
      for (const ZeroLayer& layer : layers) {
        if (layer_number(layer.prefix) == known.begin()->first)
          builder_.file(
              fmt::format("layer_{:02}{}", number, layer.path.substr(layer.prefix.size() - 1)));
      }
    }
  }

  // Reports fewer blocks than the model has. Blocks are the layers with the commonest names.
  void report_lost_blocks(const std::string& path, std::int64_t recorded) {
    std::map<std::string, std::int64_t> count_by_names;
    std::int64_t there = 0;
    for (const auto& [number, form] : forms()) {
      std::string names;
      for (const auto& [name, sizes] : form) names += name + "\n";
      if (form.size() >= kMinTensors) there = std::max(there, ++count_by_names[names]);
    }
    if (there == 0 || there >= recorded) return;
    Finding finding = bad_record_finding(
        path,
        fmt::format("{} records {} layers (args.num_layers), but files of {} blocks are here: {} "
                    "missing. A load fails at the first one, or initializes it at random.",
                    path, recorded, there,
                    recorded - there == 1
                        ? std::string("one is")
                        : human_count(static_cast<std::uint64_t>(recorded - there)) + " are"));
    finding.evidence = {{"expected", fmt::format("{} layers", recorded)}, {"count", there}};
    notes_.findings.push_back(std::move(finding));
  }

  // Derives the number of ranks from one rank's files: the output matrix of attention is square in
  // these models, and each rank has some columns of it.
  std::uint32_t infer_ranks_from_attention() const {
    for (const std::string& fqn : order_) {
      const Extents& sizes = pieces_.at(fqn).front().tensor.sizes;
      if (!fqn.ends_with(".attention.dense.weight") || sizes.size() != 2 || sizes[1] <= 0) continue;
      const std::int64_t ranks = sizes[0] / sizes[1];
      if (sizes[0] % sizes[1] == 0 && ranks > 1 && ranks <= kMaxTensorRanks)
        return static_cast<std::uint32_t>(ranks);
    }
    return 1;
  }

  // True if the first MLP matrix combines gate and up: it then has twice as many rows as the second
  // has columns; otherwise equally many.
  std::optional<bool> is_gated(const std::string& fqn) const {
    constexpr std::string_view kFirst = ".dense_h_to_4h.", kSecond = ".dense_4h_to_h.";
    const std::size_t at = fqn.find(kFirst);
    if (at == std::string::npos) return std::nullopt;
    const std::string before = fqn.substr(0, at);
    auto first = pieces_.find(before + std::string(kFirst) + "weight");
    auto second = pieces_.find(before + std::string(kSecond) + "weight");
    if (first == pieces_.end() || second == pieces_.end()) return std::nullopt;
    const Extents& rows = first->second.front().tensor.sizes;
    const Extents& columns = second->second.front().tensor.sizes;
    if (rows.size() != 2 || columns.size() != 2 || columns[1] <= 0) return std::nullopt;
    if (rows[0] == columns[1]) return false;
    return rows[0] % 2 == 0 && rows[0] / 2 == columns[1] ? std::optional(true) : std::nullopt;
  }

  void add(const std::string& fqn, const std::vector<RankPiece>& pieces) {
    if (add_joined(fqn, pieces)) return;
    unknown_.push_back(fqn);
    for (const RankPiece& piece : pieces) {
      const std::string own = fmt::format("mp_rank_{:02}.{}", piece.rank, fqn);
      if (!storages_.claim_name(own)) continue;
      begin(own, piece.tensor.dtype, piece.tensor.sizes);
      (void)chunks_.add(piece, {whole(piece.tensor.sizes)});
    }
  }

  bool add_joined(const std::string& fqn, const std::vector<RankPiece>& pieces) {
    const TensorSplit cut =
        ranks_ == 1 ? TensorSplit::kReplicated : tensor_split(fqn, is_gated(fqn));
    const TorchFileTensor& first = pieces.front().tensor;
    const bool are_alike = std::all_of(pieces.begin(), pieces.end(), [&](const RankPiece& piece) {
      return piece.tensor.sizes == first.sizes && piece.tensor.dtype == first.dtype;
    });
    const auto whole_of = split_part_of_rank(cut, first.sizes, 0, ranks_);
    if (cut == TensorSplit::kUnknown || !are_alike || !whole_of) return false;
    if (!storages_.claim_name(fqn)) return true;
    begin(fqn, first.dtype, whole_of->shape);
    for (const RankPiece& piece : pieces) {
      const auto part = split_part_of_rank(cut, first.sizes, piece.rank, ranks_);
      // The chunk's boxes relative to its own part.
      if (part) (void)chunks_.add(piece, part->boxes);
    }
    ++joined_;
    return true;
  }

  void begin(const std::string& fqn, Dtype dtype, const Extents& shape) {
    builder_.add_tensor(fqn, dtype, shape);
    chunks_.begin_tensor();
  }

  void report_joined_axes(const std::string& path) {
    if (ranks_ == 1) return;
    std::string cause = fmt::format(
        "{} of {} tensor-parallel ranks were joined along Megatron's sharding axis, chosen by "
        "tensor names: the files do not record it.",
        plural(joined_, "tensor"), ranks_);
    if (!unknown_.empty())
      cause += fmt::format(
          " {} were not, because the sharding axis of such names is not known: each rank's part is "
          "listed as a separate tensor (mp_rank_00.NAME): {}.",
          plural(unknown_.size(), "tensor"), short_list_text(unknown_));
    Finding finding = how_read_finding(path, std::move(cause));
    finding.evidence = {{"joined", static_cast<std::int64_t>(joined_)},
                        {"tensor_parallel", std::int64_t{ranks_}},
                        {"count", static_cast<std::int64_t>(unknown_.size())}};
    notes_.findings.push_back(std::move(finding));
  }

  void note_unread() {
    for (const auto& [reason, names] : unread_) {
      Finding finding = bad_record_finding(
          names.front(), fmt::format("{} cannot be read: {}.", short_list_text(names), reason));
      finding.rule = "not-looked-at";
      finding.severity = Severity::kInfo;
      finding.evidence = {{"count", static_cast<std::int64_t>(names.size())}};
      notes_.findings.push_back(std::move(finding));
    }
  }

  CheckpointBuilder& builder_;
  ZeroStorages& storages_;
  const Directory& directory_;
  ZeroPickleFindings& notes_;
  RankChunks chunks_;
  std::uint32_t ranks_ = 1;
  std::unordered_map<std::string, std::vector<RankPiece>> pieces_;
  std::vector<std::string> order_, unknown_;
  std::map<std::string, std::vector<std::string>> unread_;  // names, by reason
  std::size_t joined_ = 0;
};

}  // namespace

void add_zero_layers(CheckpointBuilder& builder, ZeroStorages& storages, const Directory& directory,
                     std::span<const ZeroLayer> layers, const RecordedLayers& recorded,
                     ZeroPickleFindings& notes) {
  if (!layers.empty()) ZeroLayers(builder, storages, directory, notes).run(layers, recorded);
}

}  // namespace shw
