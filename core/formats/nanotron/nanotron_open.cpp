#include "core/formats/nanotron/nanotron_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/common/torch_file_with_findings.h"
#include "core/formats/nanotron/nanotron_slices.h"
#include "core/formats/rank_chunks.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::string_view kNanotronMetadata = "checkpoint_metadata.json";
constexpr std::string_view kModelFolder = "model/", kModelFile = "model_";
constexpr std::string_view kOptimizerFile = "optimizer/optimizer_";
constexpr std::string_view kSafetensorsEnd = ".safetensors";
constexpr std::uint32_t kMaxNanotronRanks = 1 << 16;

// Parts of a name such as "model/decoder/0/model_weight_pp-rank-0-of-1_tp-rank-1-of-2.safetensors".
struct NanotronName {
  std::string fqn;
  std::string before;  // texts before and after the rank, to form names of other ranks
  std::string after;
  std::uint32_t rank = 0, ranks = 1;
};

bool consume_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<NanotronName> nanotron_name(std::string_view path) {
  if (!path.starts_with(kModelFolder) || !path.ends_with(kSafetensorsEnd)) return std::nullopt;
  const std::size_t slash = path.rfind('/');
  std::string_view file = path.substr(slash + 1);
  if (!consume_word(file, kModelFile)) return std::nullopt;
  file.remove_suffix(kSafetensorsEnd.size());
  NanotronName name;
  name.fqn = slash > kModelFolder.size()
                 ? std::string(path.substr(kModelFolder.size(), slash - kModelFolder.size())) + "."
                 : std::string();
  std::replace(name.fqn.begin(), name.fqn.end(), '/', '.');
  const std::size_t ranks = file.rfind("_pp-rank-");
  name.fqn += file.substr(0, ranks);
  if (ranks == std::string_view::npos) return name;
  constexpr std::string_view kTensorRank = "_tp-rank-";
  const std::size_t at = path.rfind(kTensorRank);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = path.substr(at + kTensorRank.size());
  name.before = std::string(path.substr(0, at + kTensorRank.size()));
  const auto rank = consume_number(rest);
  name.after = std::string(rest);
  if (!rank || !consume_word(rest, "-of-")) return std::nullopt;
  const auto count = consume_number(rest);
  if (!count || rest != kSafetensorsEnd || *rank >= *count || *count > kMaxNanotronRanks)
    return std::nullopt;
  name.rank = static_cast<std::uint32_t>(*rank);
  name.ranks = static_cast<std::uint32_t>(*count);
  return name;
}

class NanotronOpening {
 public:
  NanotronOpening(std::shared_ptr<const Directory> directory, const Format& format,
                  Progress* progress)
      : directory_(std::move(directory)), progress_(progress), chunks_(builder_) {
    builder_.set_format(format);
    builder_.set_directory(directory_);
  }

  OpenedCheckpoint run() {
    SHW_TRY(auto entries, directory_->list());
    std::map<std::string, std::vector<std::pair<NanotronName, std::string>>> tensors;
    for (const Entry& entry : entries) {
      if (entry.kind != EntryKind::kFile) continue;
      if (auto name = nanotron_name(entry.path))
        tensors[name->fqn].emplace_back(std::move(*name), entry.path);
      if (entry.path.starts_with(kOptimizerFile) && entry.path.ends_with(".pt"))
        optimizers_.push_back(entry.path);
    }
    if (progress_ != nullptr) progress_->begin(Phase::kOpening, tensors.size(), false);
    for (auto& [fqn, files] : tensors) {
      if (is_cancelled(progress_)) return cancelled_error();
      std::sort(files.begin(), files.end(),
                [](const auto& a, const auto& b) { return a.first.rank < b.first.rank; });
      add_parameter(fqn, files);
      if (progress_ != nullptr) progress_->add(1);
    }
    if (!any_ && first_) return tl::unexpected<Error>(std::move(*first_));
    for (const std::string& path : optimizers_) add_optimizer(path);
    for (Finding& finding : notes_.findings) builder_.add_finding(std::move(finding));
    return builder_.finish(progress_);
  }

 private:
  using Files = std::vector<std::pair<NanotronName, std::string>>;

  void note_unread(const std::string& path, Error error, std::vector<std::string> names) {
    builder_.file(path);
    builder_.add_finding(unread_file_finding(path, error, std::move(names), "tensor"));
    if (!first_) first_ = std::move(error);
  }

  void add_parameter(const std::string& fqn, const Files& files) {
    bool is_begun = false;
    Extents shape;
    for (const auto& [name, path] : files) {
      auto part = read_part(path);
      if (!part) {
        note_unread(path, std::move(part).error(), {fqn});
        continue;
      }
      any_ = true;
      if (!is_begun) {
        shape = part->shape;
        builder_.add_tensor(fqn, part->tensor.dtype, shape);
        chunks_.begin_tensor();
        is_begun = true;
      }
      add_part(fqn, shape, name, path, *part);
    }
    note_missing(files);
  }

  void note_missing(const Files& files) {
    const NanotronName& first = files.front().first;
    for (std::uint32_t rank = 0, next = 0; rank < first.ranks; ++rank) {
      while (next < files.size() && files[next].first.rank < rank) ++next;
      const bool is_there = next < files.size() && files[next].first.rank == rank;
      if (!is_there) builder_.file(first.before + std::to_string(rank) + first.after);
    }
  }

  // The part of a tensor in one file.
  struct Part {
    Extents shape;  // of the whole tensor
    TorchFileTensor tensor;
    std::vector<Box> boxes;
  };

  Result<Part> read_part(const std::string& path) {
    SHW_TRY(auto source, directory_->open(path));
    SHW_TRY(SafetensorsHeader header, read_safetensors_header(*source, progress_));
    auto entry = std::find_if(header.entries.begin(), header.entries.end(),
                              [](const SafetensorsEntry& one) { return one.name == "data"; });
    if (entry == header.entries.end())
      return fail(ErrorKind::kDamaged, "has no tensor \"data\", which nanotron writes", {path});
    Part part;
    part.tensor.dtype = entry->dtype;
    part.tensor.sizes = entry->shape;
    part.tensor.strides = row_major_strides(entry->shape);
    part.tensor.payload_offset = entry->begin;
    part.tensor.payload_length = entry->end - entry->begin;
    part.shape = entry->shape;
    part.boxes = {whole(entry->shape)};
    const std::string* pairs = header.find_metadata("local_global_slices_pairs");
    const std::string* shape = header.find_metadata("unsharded_shape");
    if (pairs == nullptr || shape == nullptr) return part;
    const auto all = nanotron_shape(*shape);
    if (!all || all->size() != entry->shape.size())
      return fail(ErrorKind::kDamaged, "has an invalid unsharded_shape", {path});
    auto boxes = nanotron_boxes(*pairs, entry->shape, *all);
    if (!boxes) return fail(ErrorKind::kDamaged, boxes.error().message, {path});
    part.shape = *all;
    part.boxes = std::move(*boxes);
    return part;
  }

  void add_part(const std::string& fqn, const Extents& shape, const NanotronName& name,
                const std::string& path, const Part& part) {
    Status added = fail(ErrorKind::kDamaged,
                        fmt::format("gives the global shape {}, but the first file {}",
                                    to_text(part.shape), to_text(shape)),
                        {path});
    if (part.shape == shape)
      added = chunks_.add({name.rank, builder_.file(path), part.tensor, &kRawCodec}, part.boxes);
    if (added) return;
    Finding finding = bad_record_finding(
        fqn, fmt::format("The part of {} in {} {}.", fqn, path, added.error().message));
    finding.subjects.push_back(path);
    builder_.add_finding(std::move(finding));
  }

  // "optimizer.pp-0-of-1_tp-0-of-2.state.0.exp_avg" for a tensor in optimizer/optimizer_pp-0....pt.
  static std::string state_name(const std::string& path, const std::vector<PathPart>& parts) {
    std::string name =
        "optimizer." + path.substr(kOptimizerFile.size(), path.size() - kOptimizerFile.size() - 3);
    for (const PathPart& part : parts) {
      const auto* text = std::get_if<std::string>(&part);
      name += "." + (text != nullptr ? *text : std::to_string(std::get<std::int64_t>(part)));
    }
    return name;
  }

  void add_optimizer(const std::string& path) {
    auto file = read_torch_file_with_findings(*directory_, path, notes_);
    if (!file) return note_unread(path, std::move(file).error(), {});
    for (TorchFileTensor& tensor : file->tensors) {
      const std::string name = state_name(path, tensor.path);
      if (!states_.insert(name).second) {
        builder_.add_finding(
            bad_record_finding(path, fmt::format("{} holds {} twice.", path, name)));
        continue;
      }
      builder_.add_tensor(name, tensor.dtype, tensor.sizes);
      chunks_.begin_tensor();
      const Box box = whole(tensor.sizes);
      const Codec* codec = tensor.big_endian ? &kZipRecordBigCodec : &kZipRecordCodec;
      auto added = chunks_.add({0, builder_.file(path), std::move(tensor), codec}, {box});
      if (!added)
        builder_.add_finding(bad_record_finding(
            path, fmt::format("{} in {} {}.", name, path, added.error().message)));
    }
    for (const UnreadableTensor& one : file->unreadable)
      builder_.add_finding(not_examined_finding(
          {path}, fmt::format("{} in {} cannot be read: {}.", state_name(path, one.path), path,
                              one.error.message)));
  }

  std::shared_ptr<const Directory> directory_;
  Progress* progress_;
  CheckpointBuilder builder_;
  RankChunks chunks_;
  std::vector<std::string> optimizers_;
  std::set<std::string> states_;
  PickleFindings notes_;
  std::optional<Error> first_;
  bool any_ = false;
};

constexpr Format kNanotronFormat = {
    .name = "nanotron",
    .title = "nanotron",
    .codec = &kRawCodec,
};

Result<bool> has_nanotron(const DirectoryContents& look) {
  if (look.entry(kNanotronMetadata).kind != EntryKind::kFile) return false;
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return nanotron_name(entry.path).has_value(); });
}

OpenedCheckpoint open_nanotron(std::shared_ptr<const Directory> directory, Progress* progress) {
  return NanotronOpening(std::move(directory), kNanotronFormat, progress).run();
}

FileRole role_of_nanotron_file(std::string_view file) {
  return file == kNanotronMetadata ? FileRole::kCheckpoint : FileRole::kNothing;
}

}  // namespace

constexpr FormatRow kNanotronRow = {
    .format = &kNanotronFormat,
    .sign = kNanotronMetadata,
    .recognises = has_nanotron,
    .open = open_nanotron,
    .named = role_of_nanotron_file,
};

}  // namespace shw
