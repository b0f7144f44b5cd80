#include "core/formats/tensor_parallel/parallel_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/rank_chunks.h"
#include "core/formats/tensor_parallel/parallel_model.h"
#include "core/formats/tensor_parallel/parallel_names.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

std::optional<std::uint32_t> rank_of_parallel_file(std::string_view path) {
  const auto name = parse_engine_file(path.substr(path.rfind('/') + 1));
  return name ? std::optional(name->rank) : std::nullopt;
}

constexpr Format kTensorParallelFormat = {
    .name = "tensor-parallel",
    .title = "files per tensor-parallel rank",
    .codec = &kRawCodec,
    .traits = {.writer_of_file = rank_of_parallel_file},
};

std::string_view engine_display_name(ParallelEngine engine) {
  switch (engine) {
    case ParallelEngine::kVllm:
      return "vLLM";
    case ParallelEngine::kTensorRt:
      return "TensorRT-LLM";
    case ParallelEngine::kDeepSeek:
      return "DeepSeek's convert.py";
  }
  return {};
}

class ParallelOpening {
 public:
  ParallelOpening(std::shared_ptr<const Directory> directory, ParallelFiles files)
      : directory_(*directory),
        files_(std::move(files)),
        model_(parallel_model(directory_, files_.engine, files_.ranks)),
        chunks_(builder_) {
    builder_.set_format(kTensorParallelFormat);
    builder_.set_directory(std::move(directory));
  }

  OpenedCheckpoint run(Progress* progress) {
    if (progress != nullptr) progress->begin(Phase::kOpening, files_.of_rank.size(), false);
    for (const auto& [rank, parts] : files_.of_rank) {
      if (is_cancelled(progress)) return cancelled_error();
      for (const auto& [part, path] : parts) read_file(rank, path, progress);
      if (progress != nullptr) progress->add(1);
    }
    if (pieces_.empty() && error_) return tl::unexpected<Error>(std::move(*error_));
    find_ranks();
    register_missing_files();
    for (const std::string& name : order_) add_tensor(name, pieces_.at(name));
    report_how_joined();
    return builder_.finish(progress);
  }

 private:
  void read_file(std::uint32_t rank, const std::string& path, const Progress* progress) {
    const FileId id = builder_.file(path);
    auto source = directory_.open(path);
    auto header = source ? read_safetensors_header(**source, progress)
                         : tl::unexpected<Error>(std::move(source).error());
    if (!header) {
      builder_.add_finding(unread_file_finding(path, header.error(), {}, "tensor"));
      if (!error_) error_ = std::move(header).error();
      return;
    }
    for (const SafetensorsEntry& entry : header->entries) {
      TorchFileTensor tensor;
      tensor.dtype = entry.dtype;
      tensor.sizes = entry.shape;
      tensor.strides = row_major_strides(entry.shape);
      tensor.payload_offset = entry.begin;
      tensor.payload_length = entry.end - entry.begin;
      add_piece(path, entry.name, {rank, id, std::move(tensor), &kRawCodec});
    }
    add_problems(path, *header);
  }

  void add_piece(const std::string& path, const std::string& name, RankPiece piece) {
    const auto whole_name = name_in_model(model_, name, piece.rank / model_.tensor_ranks);
    const std::string own_name = fmt::format("rank_{}.{}", piece.rank, name);
    const std::string& fqn = whole_name ? *whole_name : own_name;
    auto [known, is_new] = pieces_.try_emplace(fqn);
    if (is_new) order_.push_back(fqn);
    if (!whole_name) experts_without_number_.insert(fqn);
    const bool is_twice =
        std::any_of(known->second.begin(), known->second.end(),
                    [&](const RankPiece& other) { return other.rank == piece.rank; });
    if (!is_twice) return known->second.push_back(std::move(piece));
    builder_.add_finding(bad_record_finding(
        name, fmt::format("{} is in two files of rank {}; {} is the second, the first was read.",
                          name, piece.rank, path)));
  }

  void add_problems(const std::string& path, const SafetensorsHeader& header) {
    for (const SafetensorsProblem& problem : header.problems) {
      if (problem.is_file_truncated) continue;  // short-file reports the tensors there
      std::string cause = "In " + path + ": " + problem.message + ".";
      std::vector<std::string> subjects = {path};
      if (!problem.tensor.empty()) subjects.insert(subjects.begin(), problem.tensor);
      if (problem.is_unread) {
        builder_.add_finding(not_examined_finding(std::move(subjects), std::move(cause)));
        continue;
      }
      Finding finding = bad_record_finding(path, std::move(cause), problem.at);
      finding.subjects = std::move(subjects);
      builder_.add_finding(std::move(finding));
    }
  }

  // Files of higher ranks may be missing without a gap between those that are there.
  void find_ranks() {
    if (model_.is_mapped) files_.ranks = model_.tensor_ranks * model_.pipeline_ranks;
    knows_ranks_ = model_.is_mapped || files_.have_names_with_ranks;
    if (knows_ranks_) return;
    for (const std::string& name : order_) {
      const auto ranks = infer_ranks_from_part(model_, name, pieces_.at(name).front().tensor.sizes);
      if (ranks < files_.ranks) continue;
      model_.tensor_ranks = files_.ranks = ranks;
      knows_ranks_ = true;
      return;
    }
  }

  // The names themselves report what is missing. A rank that lacks names that others have, and
  // has fewer parts, lacks parts.
  void register_missing_files() {
    std::uint32_t parts = 0;
    for (const auto& [rank, paths] : files_.of_rank)
      parts = std::max(parts, paths.rbegin()->first + 1);
    for (std::uint32_t rank = 0; rank < files_.ranks; ++rank) {
      const auto found = files_.of_rank.find(rank);
      const bool is_there = found != files_.of_rank.end();
      const std::uint32_t last = !is_there           ? 1
                                 : lacks_names(rank) ? parts
                                                     : found->second.rbegin()->first;
      for (std::uint32_t part = 0; part < last; ++part) {
        if (!is_there || !found->second.contains(part))
          builder_.file(engine_file_name({files_.engine, rank, part, files_.ranks}));
      }
    }
  }

  bool lacks_names(std::uint32_t rank) const {
    if (files_.engine != ParallelEngine::kVllm) return false;
    return std::any_of(pieces_.begin(), pieces_.end(), [&](const auto& tensor) {
      const std::vector<RankPiece>& pieces = tensor.second;
      return std::none_of(pieces.begin(), pieces.end(),
                          [&](const RankPiece& piece) { return piece.rank == rank; });
    });
  }

  // DeepSeek's experts are whole with one rank each, but for those that every token takes.
  bool is_whole_on_one_rank(const std::string& name) const {
    return files_.engine == ParallelEngine::kDeepSeek &&
           name.find(".experts.") != std::string::npos;
  }

  std::uint32_t tensor_rank(const RankPiece& piece) const {
    return piece.rank % model_.tensor_ranks;
  }

  void add_tensor(const std::string& name, const std::vector<RankPiece>& pieces) {
    const TorchFileTensor& first = pieces.front().tensor;
    const bool are_alike = std::all_of(pieces.begin(), pieces.end(), [&](const RankPiece& piece) {
      return piece.tensor.sizes == first.sizes && piece.tensor.dtype == first.dtype;
    });
    const auto all = are_alike && !experts_without_number_.contains(name)
                         ? parallel_part(model_, name, first.dtype, first.sizes, 0)
                         : std::nullopt;
    if (!all || is_whole_on_one_rank(name)) {
      for (const RankPiece& piece : pieces) add_piece_as_tensor(name, piece, pieces.size());
      return;
    }
    builder_.add_tensor(name, first.dtype, all->shape);
    chunks_.begin_tensor();
    for (const RankPiece& piece : pieces) {
      const auto part = parallel_part(model_, name, first.dtype, first.sizes, tensor_rank(piece));
      if (part) add_boxes(piece, part->boxes);
    }
    ++joined_;
  }

  // Rows of a part are bytes in a row: each box is a storage of its own, so that heads that several
  // ranks have are compared.
  void add_boxes(const RankPiece& piece, const std::vector<Box>& boxes) {
    if (boxes.size() == 1) return (void)chunks_.add(piece, boxes);
    const auto rows = static_cast<std::uint64_t>(piece.tensor.sizes[0]);
    RankPiece own = piece;
    for (const Box& box : boxes) {
      own.tensor.sizes = box.sizes;
      own.tensor.payload_length =
          piece.tensor.payload_length / rows * static_cast<std::uint64_t>(box.sizes[0]);
      (void)chunks_.add(own, {box});
      own.tensor.payload_offset += own.tensor.payload_length;
    }
  }

  // A name that one rank alone has is that tensor's own.
  void add_piece_as_tensor(const std::string& name, const RankPiece& piece, std::size_t count) {
    const bool are_all_there = files_.of_rank.size() == files_.ranks;
    const bool has_name = count == 1 && (are_all_there || is_whole_on_one_rank(name));
    const std::string own = has_name ? name : fmt::format("rank_{}.{}", piece.rank, name);
    if (!has_name || experts_without_number_.contains(name)) unjoined_tensors_.push_back(own);
    builder_.add_tensor(own, piece.tensor.dtype, piece.tensor.sizes);
    chunks_.begin_tensor();
    (void)chunks_.add(piece, {whole(piece.tensor.sizes)});
  }

  void report_how_joined() {
    const std::string& subject = files_.of_rank.begin()->second.begin()->second;
    const bool is_by_names = files_.engine == ParallelEngine::kDeepSeek;
    if (joined_ != 0)
      builder_.add_finding(how_read_finding(
          subject,
          fmt::format(
              "{} of {} ranks were joined along the sharding axis of {}, chosen by tensor names{}: "
              "the files do not record it.{}",
              plural(joined_, "tensor"), files_.ranks, engine_display_name(files_.engine),
              is_by_names ? "" : " and the sizes in config.json",
              knows_ranks_ ? "" : " It is not known whether a file of a higher rank is missing.")));
    if (!unjoined_tensors_.empty())
      builder_.add_finding(how_read_finding(
          unjoined_tensors_.front(),
          fmt::format("{} {} not joined, because their names and sizes do not show how: {}. Each "
                      "rank's part is listed as a separate tensor (rank_0.NAME).",
                      plural(unjoined_tensors_.size(), "part"),
                      unjoined_tensors_.size() == 1 ? "was" : "were",
                      short_list_text(unjoined_tensors_))));
  }

  const Directory& directory_;
  ParallelFiles files_;
  ParallelModel model_;
  CheckpointBuilder builder_;
  RankChunks chunks_;
  std::unordered_map<std::string, std::vector<RankPiece>> pieces_;
  std::set<std::string> experts_without_number_;
  std::vector<std::string> order_, unjoined_tensors_;
  std::optional<Error> error_;
  std::size_t joined_ = 0;
  bool knows_ranks_ = false;
};

Result<bool> has_parallel_files(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  const auto files = parallel_files(entries);
  if (!files) return false;
  // An index, or a whole model next to them, is what loaders go by.
  return std::none_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.path == "model.safetensors" || entry.path == "model.safetensors.index.json";
  });
}

}  // namespace

OpenedCheckpoint open_tensor_parallel(std::shared_ptr<const Directory> directory,
                                      Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  auto files = parallel_files(entries);
  if (!files)
    return fail(ErrorKind::kUnsupported, "holds no files of several ranks", {directory->name()});
  return ParallelOpening(std::move(directory), std::move(*files)).run(progress);
}

constexpr FormatRow kTensorParallelRow = {
    .format = &kTensorParallelFormat,
    .sign = "model-rank-0-part-0.safetensors",
    .recognises = has_parallel_files,
    .open = open_tensor_parallel,
};

}  // namespace shw
