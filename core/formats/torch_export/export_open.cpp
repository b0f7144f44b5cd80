#include "core/formats/torch_export/export_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/top_file.h"
#include "core/formats/joined_folders.h"
#include "core/formats/open_nested.h"
#include "core/formats/single_file_directory.h"
#include "core/formats/subfolder_directory.h"
#include "core/formats/torch_export/export_config.h"
#include "core/formats/zip/zip.h"
#include "core/formats/zip/zip_directory.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Size limit: the config of 100,000 tensors takes some 40 MB.
constexpr std::uint64_t kMaxExportConfigBytes = std::uint64_t{256} << 20;
constexpr std::string_view kWeights = "data/weights/", kConstants = "data/constants/";

// The name without the archive's top folder, if it is in `folder`; otherwise empty.
std::string_view name_in_folder(std::string_view entry, std::string_view folder) {
  const std::size_t top = entry.find('/');
  if (entry.starts_with(folder)) return entry.substr(folder.size());
  if (top == entry.npos || !entry.substr(top + 1).starts_with(folder)) return {};
  return entry.substr(top + 1 + folder.size());
}

struct ExportConfig {
  const ZipEntry* entry = nullptr;
  std::string_view folder;
  std::string model;  // "model" for "model_weights_config.json"
};

std::vector<ExportConfig> configs_in(const ZipReader& archive) {
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {kWeights, "_weights_config.json"}, {kConstants, "_constants_config.json"}};
  std::vector<ExportConfig> configs;
  for (const auto& [folder, ending] : kForms) {
    for (const ZipEntry& entry : archive.entries()) {
      const std::string_view name = name_in_folder(entry.name, folder);
      if (name.ends_with(ending) && name.size() > ending.size())
        configs.push_back(
            {&entry, folder, std::string(name.substr(0, name.size() - ending.size()))});
    }
  }
  return configs;
}

class ExportReader {
 public:
  ExportReader(CheckpointBuilder& builder, const ZipReader& archive, std::string path)
      : builder_(builder), archive_(archive), path_(std::move(path)), file_(builder.file(path_)) {}

  // `prefix`: put before the names of one of several models.
  Status read(const ExportConfig& config, const std::string& prefix) {
    SHW_TRY(Bytes bytes, archive_.read(*config.entry, kMaxExportConfigBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    SHW_TRY(auto tensors, parse_export_config(text, path_ + ": " + config.entry->name));
    for (ExportedTensor& tensor : tensors) {
      tensor.fqn.insert(0, prefix);
      if (!names_.insert(tensor.fqn).second) {
        builder_.add_finding(bad_record_finding(
            path_, fmt::format("In {} two tensors have the name {}.", path_, tensor.fqn)));
      } else if (tensor.not_read.empty()) {
        add_tensor(tensor, std::string(config.folder) + tensor.record);
      } else {
        not_read_[tensor.not_read].push_back(tensor.fqn);
      }
    }
    return {};
  }

  void add_findings(std::size_t models) {
    for (auto& [why, names] : not_read_) {
      std::string cause =
          fmt::format("{} in {} cannot be read: each {}.", short_list_text(names), path_, why);
      builder_.add_finding(not_examined_finding(std::move(names), std::move(cause)));
    }
    builder_.add_finding(how_read_finding(
        path_, fmt::format("{} holds {} that torch.export saved. The weights and constants are "
                           "read; the graph and the sample inputs are not.",
                           path_, models == 1 ? "a program" : plural(models, "program"))));
  }

 private:
  void add_tensor(const ExportedTensor& tensor, const std::string& record) {
    const ZipEntry* entry = archive_.find(record);
    auto place = entry == nullptr
                     ? archive_.damaged(0, "the archive has no record " + record.substr(0, 200))
                     : place_of(*entry, tensor);
    builder_.add_tensor(tensor.fqn, tensor.dtype, tensor.sizes, tensor.requires_grad);
    const ChunkId chunk = builder_.add_chunk(Extents(tensor.sizes.size(), 0), tensor.sizes);
    if (!place) {
      builder_.add_finding(bad_record_finding(
          tensor.fqn, fmt::format("{} in {}: {}.", tensor.fqn, path_, place.error().message),
          place.error().place.offset));
      return;
    }
    auto [known, is_new] = storages_.try_emplace(record);
    if (is_new) known->second = builder_.add_storage(*place);
    const bool dense = is_row_major(tensor.sizes, tensor.strides);
    builder_.set_view(chunk, known->second, tensor.offset,
                      dense ? ExtentsView{} : ExtentsView(tensor.strides));
  }

  Result<ItemPlace> place_of(const ZipEntry& entry, const ExportedTensor& tensor) const {
    if (entry.deflated)
      return archive_.unsupported(entry.header_offset,
                                  fmt::format("the record {} is compressed", entry.name));
    const auto needed = storage_needed(tensor.sizes, tensor.strides, tensor.offset);
    const std::uint64_t there = entry.length / size_of(tensor.dtype);
    if (!needed || static_cast<std::uint64_t>(*needed) > there)
      return archive_.damaged(
          entry.header_offset,
          fmt::format("the tensor of sizes {}, strides {} and storage offset {} reaches beyond its "
                      "record of {} elements",
                      to_text(tensor.sizes), to_text(tensor.strides), tensor.offset, there));
    SHW_TRY(std::uint64_t at, archive_.data_offset(entry));
    return ItemPlace{file_, static_cast<std::int64_t>(at), static_cast<std::int64_t>(entry.length)};
  }

  CheckpointBuilder& builder_;
  const ZipReader& archive_;
  std::string path_;
  FileId file_;
  std::set<std::string> names_;
  std::unordered_map<std::string, StorageId> storages_;
  std::map<std::string, std::vector<std::string>> not_read_;  // by reason
};

// The files of torch.save with weights and constants in an archive of torch 2.8 and before.
std::vector<std::string> saved_files_in(const Directory& inside) {
  std::vector<std::string> weights, constants;
  const auto entries = inside.list();
  if (!entries) return weights;
  for (const Entry& entry : *entries) {
    const std::string& path = entry.path;
    const auto is_saved_in = [&](std::string_view folder) {
      return path.ends_with(".pt") && !name_in_folder(path, folder).empty();
    };
    if (path.ends_with("serialized_state_dict.pt") || is_saved_in(kWeights))
      weights.push_back(path);
    else if (path.ends_with("serialized_constants.pt") || is_saved_in(kConstants))
      constants.push_back(path);
  }
  weights.insert(weights.end(), constants.begin(), constants.end());
  return weights;
}

tl::unexpected<Error> no_tensors_error(const ZipReader& archive, const std::string& path) {
  const bool is_compiled =
      std::any_of(archive.entries().begin(), archive.entries().end(),
                  [](const ZipEntry& entry) { return entry.name.ends_with(".so"); });
  if (is_compiled)
    return fail(
        ErrorKind::kUnsupported,
        "is an AOTInductor package: its weights are in a compiled library, which is not supported",
        {path}, "Open the checkpoint from which it was compiled.");
  return fail(ErrorKind::kUnsupported, "is a torch.export archive without weights", {path});
}

OpenedCheckpoint open_saved_files(const ZipReader& archive,
                                  const std::shared_ptr<const ByteSource>& source,
                                  const std::string& path, Progress* progress) {
  SHW_TRY(auto inside, open_zip_directory(source, path));
  const std::vector<std::string> files = saved_files_in(*inside);
  std::vector<JoinedPart> parts;
  for (const std::string& file : files) {
    const std::size_t slash = file.rfind('/');
    const std::string folder = slash == file.npos ? "" : file.substr(0, slash);
    std::shared_ptr<const Directory> around = inside;
    if (!folder.empty()) around = std::make_shared<SubfolderDirectory>(inside, folder);
    auto opened = open_nested(std::make_shared<SingleFileDirectory>(around, file.substr(slash + 1)),
                              progress);
    if (opened) {
      parts.push_back({std::move(*opened), folder, ""});
    } else if (opened.error().kind != ErrorKind::kUnsupported) {
      return opened;
    }
  }
  if (parts.empty()) return no_tensors_error(archive, path);
  return join_folders(inside, parts);
}

Result<std::string> export_path(const Directory& directory) {
  SHW_TRY(auto entries, directory.list());
  std::vector<std::string> paths;
  for (const Entry& entry : entries) {
    if (is_top_file(entry) && (entry.path.ends_with(kExportSuffix) || entries.size() == 1))
      paths.push_back(entry.path);
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) return fail(ErrorKind::kIo, "holds no .pt2 file", {directory.name()});
  if (paths.size() == 1) return paths.front();
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("holds {} programs of torch.export: {}", paths.size(), short_list_text(paths)),
      {directory.name()},
      "Give the path of one of them. " + advice_to_open(directory, paths.front()));
}

}  // namespace

OpenedCheckpoint open_torch_export(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(std::string path, export_path(*directory));
  SHW_TRY(auto source, directory->open(path));
  SHW_TRY(ZipReader archive, ZipReader::open(source, 0, source->size()));
  const std::vector<ExportConfig> configs = configs_in(archive);
  if (configs.empty()) return open_saved_files(archive, source, path, progress);
  std::set<std::string> models;
  for (const ExportConfig& config : configs) models.insert(config.model);
  CheckpointBuilder builder;
  builder.set_format(kTorchExportFormat);
  builder.set_directory(directory);
  ExportReader reader(builder, archive, path);
  for (const ExportConfig& config : configs) {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_CHECK(reader.read(config, models.size() == 1 ? std::string() : config.model + "."));
  }
  reader.add_findings(models.size());
  return builder.finish(progress);
}

}  // namespace shw
