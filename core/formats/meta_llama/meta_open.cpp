#include "core/formats/meta_llama/meta_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/torch_file_with_findings.h"
#include "core/formats/rank_chunks.h"
#include "core/io/read_whole.h"
#include "core/model/builder.h"
#include "core/model/state_path.h"

namespace shw {
namespace {

std::string meta_file_name(std::uint32_t rank) {
  return fmt::format("consolidated.{:02}.pth", rank);
}
std::optional<std::uint32_t> rank_of_meta_file(std::string_view path) {
  return parse_meta_file(path.substr(path.rfind('/') + 1));
}

constexpr Format kMetaLlamaFormat = {
    .name = "meta-llama",
    .title = "Llama in Meta's format",
    .codec = &kZipRecordCodec,
    .traits = {.writer_of_file = rank_of_meta_file},
};
constexpr std::uint32_t kMaxMetaRanks = 1024;
constexpr std::string_view kMetaParams = "params.json";
constexpr std::uint64_t kMaxMetaParams = 1 << 20;
constexpr auto kMetaRows =
    std::to_array<std::string_view>({"wq", "wk", "wv", "wqkv", "w1", "w3", "output"});
constexpr auto kMetaColumns = std::to_array<std::string_view>({"wo", "w2"});

using MetaFiles = std::map<std::uint32_t, std::string>;
MetaFiles meta_files(std::span<const Entry> entries) {
  MetaFiles files;
  for (const Entry& entry : entries) {
    auto rank = is_top_file(entry) ? parse_meta_file(entry.path) : std::nullopt;
    if (rank) files.emplace(*rank, entry.path);
  }
  return files;
}

class MetaReading {
 public:
  MetaReading(std::shared_ptr<const Directory> directory, MetaFiles files)
      : directory_(*directory), files_(std::move(files)), chunks_(builder_) {
    builder_.set_format(kMetaLlamaFormat);
    builder_.set_directory(std::move(directory));
    ranks_ = files_.rbegin()->first + 1;
  }

  OpenedCheckpoint run(Progress* progress) {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (is_cancelled(progress)) return cancelled_error();
      auto path = files_.find(rank);
      // Adds the file as missing under its expected name.
      if (path == files_.end())
        builder_.file(meta_file_name(rank));
      else
        read_file(rank, path->second);
    }
    if (pieces_.empty() && error_) return tl::unexpected<Error>(std::move(*error_));
    find_width();
    find_ranks();
    for (const std::string& name : order_) add_tensor(name, pieces_.at(name));
    note_rules();
    for (Finding& finding : notes_.findings) builder_.add_finding(std::move(finding));
    return builder_.finish();
  }

 private:
  void read_file(std::uint32_t rank, const std::string& path) {
    const FileId id = builder_.file(path);
    auto file = read_torch_file_with_findings(directory_, path, notes_);
    if (!file) {
      builder_.add_finding(bad_record_finding(
          path, "The file " + path + " cannot be read: " + file.error().message + ".",
          file.error().place.offset));
      if (!error_) error_ = std::move(file).error();
      return;
    }
    for (TorchFileTensor& tensor : file->tensors) {
      const std::string name = dotted_path(tensor.path);
      auto [known, is_new] = pieces_.try_emplace(name);
      if (is_new) order_.push_back(name);
      known->second.push_back({rank, id, std::move(tensor)});
    }
    for (const UnreadableTensor& one : file->unreadable) {
      Finding finding =
          bad_record_finding(path, fmt::format("{} in {} cannot be read: {}.",
                                               dotted_path(one.path), path, one.error.message));
      finding.rule = "not-looked-at";
      finding.severity = Severity::kInfo;
      notes_.findings.push_back(std::move(finding));
    }
  }

  // The width of the model, from a norm, which every rank stores completely.
  void find_width() {
    auto norm = pieces_.find("norm.weight");
    if (norm == pieces_.end() || norm->second.front().tensor.sizes.size() != 1) return;
    width_ = norm->second.front().tensor.sizes[0];
  }

  // The number of ranks, from the shapes of one rank's parts, because the last files may be missing
  // without a visible gap.
  void find_ranks() {
    const std::uint32_t wanted = std::max(ranks_of_embedding(), rank_count_from_heads());
    for (; ranks_ < wanted; ++ranks_) builder_.file(meta_file_name(ranks_));
    knows_ranks_ = wanted != 0;
  }

  // Llama 2 splits the embedding's width; 0 if the number of ranks is unknown.
  std::uint32_t ranks_of_embedding() const {
    const TorchFileTensor* embedding = first_of("tok_embeddings.weight");
    if (embedding == nullptr || embedding->sizes.size() != 2 || !width_) return 0;
    const std::int64_t columns = embedding->sizes[1];
    return columns < *width_ ? times(*width_, columns) : 0;
  }

  // The columns of wo on a rank are its heads, and params.json records their total; 0 if one is
  // unknown.
  std::uint32_t rank_count_from_heads() const {
    const TorchFileTensor* heads = first_of("layers.0.attention.wo.weight");
    const auto all = head_elements_in_params();
    if (heads == nullptr || heads->sizes.size() != 2 || !all) return 0;
    return times(*all, heads->sizes[1]);
  }

  static std::uint32_t times(std::int64_t all, std::int64_t part) {
    if (part <= 0 || all % part != 0 || all / part > kMaxMetaRanks) return 0;
    return static_cast<std::uint32_t>(all / part);
  }

  const TorchFileTensor* first_of(const std::string& name) const {
    auto found = pieces_.find(name);
    return found == pieces_.end() ? nullptr : &found->second.front().tensor;
  }

  // Total elements of all heads.
  std::optional<std::int64_t> head_elements_in_params() const {
    if (directory_.stat(std::string(kMetaParams)).kind != EntryKind::kFile) return std::nullopt;
    auto source = directory_.open(std::string(kMetaParams));
    const auto text = source ? read_whole_text(**source, kMaxMetaParams)
                             : Result<std::string>(tl::unexpected<Error>(source.error()));
    if (!text) return std::nullopt;
    const auto read = parse_json<nlohmann::json>(*text);
    if (!read.problem.empty() || !read.tree.is_object()) return std::nullopt;
    auto number = [&](const char* key) -> std::int64_t {
      const auto found = read.tree.find(key);
      return found != read.tree.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                                    : 0;
    };
    const std::int64_t width = number("dim"), heads = number("n_heads"), each = number("head_dim");
    if (each > 0 && heads > 0) return checked_mul(heads, each);
    // Without head_dim the heads divide the width.
    return width > 0 ? std::optional(width) : std::nullopt;
  }

  void add_tensor(const std::string& name, std::vector<RankPiece>& pieces) {
    const TorchFileTensor& first = pieces.front().tensor;
    const bool are_alike = std::all_of(pieces.begin(), pieces.end(), [&](const RankPiece& piece) {
      return piece.tensor.sizes == first.sizes && piece.tensor.dtype == first.dtype;
    });
    const TensorSplit cut = ranks_ == 1 ? TensorSplit::kReplicated
                            : are_alike ? meta_tensor_split(name, first.sizes, width_, ranks_)
                                        : TensorSplit::kUnknown;
    const auto all = split_part_of_rank(cut, first.sizes, 0, ranks_);
    if (cut == TensorSplit::kUnknown || !all) {
      unknown_.push_back(name);
      for (RankPiece& piece : pieces) add_piece_as_tensor(name, piece);
      return;
    }
    builder_.add_tensor(name, first.dtype, all->shape);
    chunks_.begin_tensor();
    for (const RankPiece& piece : pieces) {
      if (const auto part = split_part_of_rank(cut, first.sizes, piece.rank, ranks_))
        (void)chunks_.add(piece, part->boxes);
    }
    ++joined_;
  }

  void add_piece_as_tensor(const std::string& name, const RankPiece& piece) {
    builder_.add_tensor(fmt::format("rank_{}.{}", piece.rank, name), piece.tensor.dtype,
                        piece.tensor.sizes);
    chunks_.begin_tensor();
    (void)chunks_.add(piece, {whole(piece.tensor.sizes)});
  }

  void note(std::string subject, std::string cause) {
    Finding finding = how_read_finding(std::move(subject), std::move(cause));
    builder_.add_finding(std::move(finding));
  }

  void note_rules() {
    if (joined_ != 0 && ranks_ > 1)
      note(files_.begin()->second,
           fmt::format("{} of {} ranks were joined along Llama's sharding axis, chosen by tensor "
                       "names and shapes: the files do not record it.{}",
                       plural(joined_, "tensor"), ranks_,
                       knows_ranks_
                           ? ""
                           : " It is not known whether a file with a higher number is missing."));
    if (!unknown_.empty())
      note(unknown_.front(),
           fmt::format("{} with an unknown name {} not joined: {}. Each rank's part is listed as a "
                       "separate tensor (rank_0.NAME).",
                       plural(unknown_.size(), "tensor"), unknown_.size() == 1 ? "was" : "were",
                       short_list_text(unknown_)));
  }

  const Directory& directory_;
  MetaFiles files_;
  std::uint32_t ranks_ = 0;
  CheckpointBuilder builder_;
  RankChunks chunks_;
  std::unordered_map<std::string, std::vector<RankPiece>> pieces_;
  std::vector<std::string> order_, unknown_;
  std::optional<std::int64_t> width_;
  PickleFindings notes_;
  std::optional<Error> error_;
  std::size_t joined_ = 0;
  bool knows_ranks_ = false;
};

// True if any of the files exists, because others may be missing.
Result<bool> recognises_meta(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  const MetaFiles files = meta_files(entries);
  if (files.empty() || look.entry("config.json").kind == EntryKind::kFile) return false;
  const bool has_params = look.entry(std::string(kMetaParams)).kind == EntryKind::kFile;
  return files.rbegin()->first != 0 || has_params;
}

}  // namespace

std::optional<std::uint32_t> parse_meta_file(std::string_view name) {
  constexpr std::string_view kBegin = "consolidated.";
  if (!name.starts_with(kBegin)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  const auto rank = consume_number(name);
  return rank && name == ".pth" && *rank < kMaxMetaRanks ? rank : std::nullopt;
}

TensorSplit meta_tensor_split(std::string_view name, const Extents& local,
                              std::optional<std::int64_t> width, std::uint32_t ranks) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return TensorSplit::kUnknown;
  const std::string_view parameter = name.substr(dot + 1);
  const std::string_view before = name.substr(0, dot);
  const std::string_view layer = before.substr(before.rfind('.') + 1);
  if (layer.ends_with("norm") || name == "rope.freqs") return TensorSplit::kReplicated;
  if (parameter != "weight") return TensorSplit::kUnknown;
  if (is_one_of(layer, kMetaRows)) return TensorSplit::kRows;
  if (is_one_of(layer, kMetaColumns)) return TensorSplit::kColumns;
  if (layer != "tok_embeddings" || !width || local.size() != 2) return TensorSplit::kUnknown;
  if (local[1] == *width) return TensorSplit::kRows;
  return local[1] <= *width && local[1] * std::int64_t{ranks} == *width ? TensorSplit::kColumns
                                                                        : TensorSplit::kUnknown;
}

OpenedCheckpoint open_meta_llama(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  MetaFiles files = meta_files(entries);
  if (files.empty())
    return fail(ErrorKind::kUnsupported, "holds no consolidated.NN.pth", {directory->name()});
  return MetaReading(std::move(directory), std::move(files)).run(progress);
}

constexpr FormatRow kMetaLlamaRow = {
    .format = &kMetaLlamaFormat,
    .sign = "consolidated.01.pth",
    .recognises = recognises_meta,
    .open = open_meta_llama,
};

}  // namespace shw
