#include "core/formats/weight_list/weight_list_table.h"

#include <fmt/core.h>

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/base/checked.h"
#include "core/base/printable.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/top_file.h"
#include "core/formats/single_file_directory.h"
#include "core/formats/weight_list/weight_list.h"
#include "core/model/builder.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

constexpr Format kCtranslate2Format = {
    .name = "ctranslate2",
    .title = "CTranslate2 model",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};
constexpr Format kMindsporeFormat = {
    .name = "mindspore",
    .title = "MindSpore checkpoint",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};

constexpr Format kOnnxFormat = {
    .name = "onnx",
    .title = "ONNX model",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};
constexpr Format kOpenvinoFormat = {
    .name = "openvino",
    .title = "OpenVINO model",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
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
            path_, fmt::format("{} lists {} as an alias of {}, which it does not hold.", path_,
                               alias, name)));
        continue;
      }
      if (by_name.try_emplace(alias, named->second).second) add(alias, *named->second);
      // In CTranslate2 an alias of a quantised weight is also an alias of its scale.
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
    for (const std::string& sentence : list.left_out)
      builder_.add_finding(not_examined_finding({path_}, sentence));
    if (!repeated_.empty()) {
      std::string cause = fmt::format(
          "{} in {} {} more than once, and only the first was checked. (MindSpore cuts an array "
          "of more than 512 MB into slices of one name.)",
          short_list_text(repeated_), path_, repeated_.size() == 1 ? "occurs" : "occur");
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
          fmt::format("{} in {} is {} of {} by its header, but has {} bytes.", name, path_,
                      to_text(array.sizes), shw::name(array.dtype), array.length),
          array.offset));
      return;
    }
    if (!array.file.empty() && !is_safe_relative_path(array.file)) {
      builder_.add_unclaimed_record({name, std::nullopt, {file_, 0, 0}});
      builder_.add_finding(bad_record_finding(
          name,
          fmt::format("{} in {} names \"{}\" as the file of its elements, which is not in this "
                      "folder. It was not opened.",
                      name, path_, printable(array.file))));
      return;
    }
    builder_.add_tensor(name, array.dtype, array.sizes);
    const ChunkId chunk = builder_.add_chunk(Extents(array.sizes.size(), 0), array.sizes);
    const FileId file = array.file.empty() ? file_ : builder_.file(array.file);
    const std::tuple range(file, array.offset, array.length);
    auto known = storages_.find(range);
    if (known == storages_.end()) {
      const ItemPlace place{file, static_cast<std::int64_t>(array.offset),
                            static_cast<std::int64_t>(array.length)};
      known = storages_.emplace(range, builder_.add_storage(place)).first;
    }
    builder_.set_view(chunk, known->second);
  }

  CheckpointBuilder builder_;
  std::string path_;
  FileId file_ = FileId::kNone;
  // By file, offset and length: an array without elements begins where the next one does.
  std::map<std::tuple<FileId, std::uint64_t, std::uint64_t>, StorageId> storages_;
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
               "Give the path of one .xml file."};
}
FileRole openvino_file_role(std::string_view file) {
  const bool is_layers = file.starts_with("openvino_") || file == "model.xml";
  return is_layers && file.ends_with(kXml) ? FileRole::kCheckpoint : FileRole::kNothing;
}

// "model.onnx", or the only model there is.
constexpr std::string_view kOnnx = ".onnx";
Result<std::string> onnx_model(const DirectoryContents& look) {
  const std::string usual = "model.onnx";
  SHW_TRY(const Bytes first, look.first_bytes(usual, 64));
  if (begins_as_onnx(first)) return usual;
  return listed_file(look, kOnnx, begins_as_onnx);
}
std::vector<std::string> onnx_models(std::span<const Entry> entries) {
  std::vector<std::string> models;
  for (const Entry& entry : entries) {
    if (is_top_file(entry) && entry.path.ends_with(kOnnx)) models.push_back(entry.path);
  }
  return models;
}
// True for several too, such as an encoder and a decoder, of which none is opened.
Result<bool> has_onnx(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  for (const std::string& path : onnx_models(entries)) {
    SHW_TRY(const Bytes first, look.first_bytes(path, 64));
    if (begins_as_onnx(first)) return true;
  }
  return false;
}
OpenedCheckpoint open_onnx(std::shared_ptr<const Directory> directory, Progress* progress) {
  const DirectoryContents look(*directory);
  SHW_TRY(const std::string path, onnx_model(look));
  SHW_TRY(auto entries, look.entries());
  std::vector<std::string> others = onnx_models(entries);
  if (path.empty() && others.size() > 1)
    return fail(ErrorKind::kUnsupported, "holds several ONNX models: " + short_list_text(others),
                {directory->name()}, "Give the path of one of them.");
  if (path.empty())
    return fail(ErrorKind::kUnsupported, "holds no ONNX model: the file does not begin as one",
                {directory->name()}, "Compare it with the original: it may be damaged or renamed.");
  std::erase(others, path);
  SHW_TRY(auto source, directory->open(path));
  SHW_TRY(WeightList list, read_onnx(*source));
  if (!others.empty())
    list.left_out.push_back(
        fmt::format("{} in the same folder {} not opened, because {} is the usual name. To check "
                    "{} as well, give "
                    "{}.",
                    short_list_text(others), others.size() == 1 ? "was" : "were", path,
                    others.size() == 1 ? "it" : "one of them",
                    others.size() == 1 ? "its path" : "the path of one"));
  if (const auto* alone = dynamic_cast<const SingleFileDirectory*>(directory.get())) {
    std::set<std::string> files;
    for (const ListedWeight& array : list.arrays) {
      if (is_safe_relative_path(array.file)) files.insert(array.file);
    }
    directory = alone->with_companions({files.begin(), files.end()});
  }
  return WeightListOpening(kOnnxFormat, std::move(directory), path).run(list, progress);
}
FileRole onnx_file_role(std::string_view file) {
  return file.ends_with(kOnnx) ? FileRole::kSingleFile : FileRole::kNothing;
}

}  // namespace

// The first two are recognised by contents: torch.save files have these names too.
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
constexpr FormatRow kOnnxRow = {
    .format = &kOnnxFormat,
    .sign = "model.onnx",
    .recognises = has_onnx,
    .open = open_onnx,
    .named = onnx_file_role,
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
