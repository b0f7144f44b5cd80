#include "core/formats/weight_list/weight_list_table.h"

#include <fmt/core.h>

#include <map>
#include <unordered_map>
#include <utility>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/top_file.h"
#include "core/formats/weight_list/weight_list.h"
#include "core/model/builder.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

constexpr Format kCtranslate2Format = {
    .name = "ctranslate2",
    .title = "CTranslate2 model",
    .codec = &kRawCodec,
    .traits = {.one_piece = true},
};
constexpr Format kMindsporeFormat = {
    .name = "mindspore",
    .title = "MindSpore checkpoint",
    .codec = &kRawCodec,
    .traits = {.one_piece = true},
};

constexpr Format kOpenvinoFormat = {
    .name = "openvino",
    .title = "OpenVINO model",
    .codec = &kRawCodec,
    .traits = {.one_piece = true},
};

using BeginsAs = bool (*)(BytesView first);

// The only file at the top with this suffix that begins so; empty if there is none or several.
Result<std::string> listed_file(const DirectoryContents& look, std::string_view suffix,
                                BeginsAs begins) {
  constexpr std::uint64_t kBegin = 256;
  SHW_TRY(auto entries, look.entries());
  std::string found;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry) || !entry.path.ends_with(suffix)) continue;
    SHW_TRY(Bytes first, look.first_bytes(entry.path, kBegin));
    if (!begins(first)) continue;
    if (!found.empty()) return std::string();
    found = entry.path;
  }
  return found;
}

class WeightListOpening {
 public:
  WeightListOpening(const Format& format, std::shared_ptr<const Directory> directory,
                    std::string path)
      : path_(std::move(path)) {
    builder_.set_format(format);
    builder_.set_directory(std::move(directory));
    file_ = builder_.file(path_);
  }

  OpenedCheckpoint run(const WeightList& list, Progress* progress) {
    std::unordered_map<std::string_view, const ListedWeight*> by_name;
    for (const ListedWeight& array : list.arrays) {
      if (is_cancelled(progress)) return cancelled_error();
      if (by_name.try_emplace(array.name, &array).second)
        add(array.name, array);
      else
        repeated_.push_back(array.name);
    }
    for (const auto& [alias, name] : list.aliases) {
      const auto named = by_name.find(name);
      if (named == by_name.end()) {
        builder_.add_finding(bad_record_finding(
            path_, fmt::format("{} names {} as another name of {}, which it does not hold.", path_,
                               alias, name)));
        continue;
      }
      if (by_name.try_emplace(alias, named->second).second) add(alias, *named->second);
      // CTranslate2 takes the scale of a quantised weight along.
      const auto scale = by_name.find(name + "_scale");
      const std::string alias_of_scale = alias + "_scale";
      if (scale != by_name.end() && !by_name.contains(alias_of_scale))
        add(alias_of_scale, *scale->second);
    }
    if (!unread_.empty()) {
      builder_.add_finding(not_examined_finding(
          {path_}, fmt::format("{} in {} {} not read: elements of {} type are not decoded.",
                               short_list_text(unread_), path_, unread_.size() == 1 ? "is" : "are",
                               unread_.size() == 1 ? "its" : "their")));
    }
    if (!repeated_.empty()) {
      std::string cause = fmt::format(
          "{} in {} are there more than once: MindSpore cuts an array of more than 512 MB into "
          "slices. Only the first was checked.",
          short_list_text(repeated_), path_);
      builder_.add_finding(not_examined_finding(std::move(repeated_), std::move(cause)));
    }
    return builder_.finish(progress);
  }

 private:
  void add(const std::string& name, const ListedWeight& array) {
    if (array.dtype == Dtype::kUnknown) {
      unread_.push_back(name);
      return;
    }
    const auto elements = volume(array.sizes);
    const auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                              std::uint64_t{size_of(array.dtype)})
                                : std::nullopt;
    if (bytes != array.length) {
      builder_.add_unclaimed_record({name, std::nullopt, {file_, 0, 0}});
      builder_.add_finding(bad_record_finding(
          name,
          fmt::format("{} in {} says that it is {} of {}, and {} bytes are there.", name, path_,
                      to_text(array.sizes), shw::name(array.dtype), array.length),
          array.offset));
      return;
    }
    builder_.add_tensor(name, array.dtype, array.sizes);
    const ChunkId chunk = builder_.add_chunk(Extents(array.sizes.size(), 0), array.sizes);
    const std::pair range(array.offset, array.length);
    auto known = storages_.find(range);
    if (known == storages_.end()) {
      const ItemPlace place{file_, static_cast<std::int64_t>(array.offset),
                            static_cast<std::int64_t>(array.length)};
      known = storages_.emplace(range, builder_.add_storage(place)).first;
    }
    builder_.set_view(chunk, known->second);
  }

  CheckpointBuilder builder_;
  std::string path_;
  FileId file_ = FileId::kNone;
  // By offset and length: an array without elements begins where the next one does.
  std::map<std::pair<std::uint64_t, std::uint64_t>, StorageId> storages_;
  std::vector<std::string> unread_, repeated_;
};

OpenedCheckpoint open_list(const Format& format, std::shared_ptr<const Directory> directory,
                           std::string_view suffix, BeginsAs begins,
                           Result<WeightList> (*read)(const ByteSource& source),
                           Progress* progress) {
  SHW_TRY(std::string path, listed_file(DirectoryContents(*directory), suffix, begins));
  if (path.empty())
    return fail(ErrorKind::kUnsupported, fmt::format("holds no {}", format.title),
                {directory->name()});
  SHW_TRY(auto source, directory->open(path));
  SHW_TRY(WeightList list, read(*source));
  return WeightListOpening(format, std::move(directory), std::move(path)).run(list, progress);
}

constexpr std::string_view kModelBin = "model.bin", kCkpt = ".ckpt";

Result<bool> has_ctranslate2(const DirectoryContents& look) {
  SHW_TRY(std::string path, listed_file(look, kModelBin, begins_as_ctranslate2));
  return !path.empty();
}
OpenedCheckpoint open_ctranslate2(std::shared_ptr<const Directory> directory, Progress* progress) {
  return open_list(kCtranslate2Format, std::move(directory), kModelBin, begins_as_ctranslate2,
                   read_ctranslate2, progress);
}
Result<bool> has_mindspore(const DirectoryContents& look) {
  SHW_TRY(std::string path, listed_file(look, kCkpt, begins_as_mindspore));
  return !path.empty();
}
OpenedCheckpoint open_mindspore(std::shared_ptr<const Directory> directory, Progress* progress) {
  return open_list(kMindsporeFormat, std::move(directory), kCkpt, begins_as_mindspore,
                   read_mindspore, progress);
}

// The layers of a model; next to others "openvino_model.xml" is meant, because a tokenizer is a
// model of its own.
constexpr std::string_view kXml = ".xml";
Result<std::string> openvino_layers(const DirectoryContents& look) {
  for (const std::string name : {"openvino_model.xml", "model.xml"}) {
    SHW_TRY(const Bytes first, look.first_bytes(name, 256));
    if (begins_as_openvino(first)) return name;
  }
  return listed_file(look, kXml, begins_as_openvino);
}
Result<bool> has_openvino(const DirectoryContents& look) {
  SHW_TRY(std::string path, openvino_layers(look));
  return !path.empty();
}
std::string openvino_elements(std::string_view layers) {
  if (layers.ends_with(kXml)) layers.remove_suffix(kXml.size());
  return std::string(layers) + ".bin";
}
OpenedCheckpoint open_openvino(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(std::string path, openvino_layers(DirectoryContents(*directory)));
  if (path.empty())
    return fail(ErrorKind::kUnsupported, "holds no layers of an OpenVINO model",
                {directory->name()});
  SHW_TRY(auto source, directory->open(path));
  SHW_TRY(WeightList list, read_openvino(*source));
  const std::string elements = openvino_elements(path);
  return WeightListOpening(kOpenvinoFormat, std::move(directory), elements).run(list, progress);
}
// Names of layers, of which none is the model's: a network in two parts, for example.
std::optional<Error> several_openvino(std::span<const Entry> entries) {
  std::vector<std::string> layers;
  for (const Entry& entry : entries) {
    if (is_top_file(entry) && entry.path.starts_with("openvino_") && entry.path.ends_with(kXml))
      layers.push_back(entry.path);
  }
  if (layers.size() < 2) return std::nullopt;
  return Error{ErrorKind::kUnsupported,
               "holds several OpenVINO models: " + short_list_text(layers),
               {},
               "Open one by its .xml."};
}
FileRole openvino_file_role(std::string_view file) {
  const bool is_layers = file.starts_with("openvino_") || file == "model.xml";
  return is_layers && file.ends_with(kXml) ? FileRole::kCheckpoint : FileRole::kNothing;
}

}  // namespace

// Both are recognised by contents: torch.save files have these names too.
constexpr FormatRow kCtranslate2Row = {
    .format = &kCtranslate2Format,
    .sign = "model.bin",
    .recognises = has_ctranslate2,
    .open = open_ctranslate2,
    .names_are_common = true,
};
constexpr FormatRow kMindsporeRow = {
    .format = &kMindsporeFormat,
    .sign = ".ckpt",
    .recognises = has_mindspore,
    .open = open_mindspore,
    .names_are_common = true,
};
constexpr FormatRow kOpenvinoRow = {
    .format = &kOpenvinoFormat,
    .sign = "openvino_model.xml",
    .recognises = has_openvino,
    .open = open_openvino,
    .named = openvino_file_role,
    .companion = openvino_elements,
    .unfinished = several_openvino,
    .names_are_common = true,
};

}  // namespace shw
