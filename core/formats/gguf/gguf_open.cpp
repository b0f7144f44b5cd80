#include "core/formats/gguf/gguf_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/gguf/gguf_files.h"
#include "core/formats/gguf/gguf_keys.h"
#include "core/formats/single_file_directory.h"
#include "core/model/builder.h"

namespace shw {
namespace {

// Tensor names, each with the file that has it.
using FilesByName = std::unordered_map<std::string, std::string>;

void report_not_read(CheckpointBuilder& builder, const std::string& path, const GgufTensor& tensor,
                     std::string why) {
  Finding finding = bad_record_finding(
      tensor.name, fmt::format("{} in {} was not read: {}.", tensor.name, path, why),
      tensor.descriptor_offset);
  finding.rule = "not-looked-at";
  finding.severity = Severity::kInfo;
  finding.subjects.push_back(path);
  builder.add_finding(std::move(finding));
}

// Reports a tensor whose position is unknown.
void report_tensor_without_position(CheckpointBuilder& builder, const std::string& path,
                                    const GgufTensor& tensor) {
  builder.add_unclaimed_record({tensor.name,
                                std::nullopt,
                                {builder.file(path), static_cast<std::int64_t>(tensor.offset), 0}});
  if (tensor.type == nullptr)
    return report_not_read(builder, path, tensor,
                           fmt::format("its type number {} is unknown", tensor.type_id));
  Finding finding = bad_record_finding(
      tensor.name,
      fmt::format("{} in {} has rows of {} elements, and {} has blocks of {}. No loader can read "
                  "it.",
                  tensor.name, path, tensor.shape.empty() ? 1 : tensor.shape.back(),
                  tensor.type->name, tensor.type->elements),
      tensor.descriptor_offset);
  finding.subjects.push_back(path);
  builder.add_finding(std::move(finding));
}

void add_gguf_tensor(CheckpointBuilder& builder, const std::string& path, const GgufTensor& tensor,
                     FilesByName& seen) {
  if (auto [first, is_new] = seen.try_emplace(tensor.name, path); !is_new) {
    Finding finding =
        bad_record_finding(tensor.name,
                           fmt::format("{} is in {} and again in {}, at byte {}. llama.cpp refuses "
                                       "such a file; here the first one was read.",
                                       tensor.name, first->second, path, tensor.offset),
                           tensor.descriptor_offset);
    finding.subjects.push_back(path);
    builder.add_finding(std::move(finding));
    return;
  }
  if (!tensor.length || !narrow<std::int64_t>(*tensor.length))
    return report_tensor_without_position(builder, path, tensor);
  builder.add_tensor(tensor.name, tensor.type->dtype, tensor.shape);
  const ItemPlace place{builder.file(path), static_cast<std::int64_t>(tensor.offset),
                        static_cast<std::int64_t>(*tensor.length)};
  const Extents origin(tensor.shape.size(), 0);
  if (tensor.type->codec == &kRawCodec) {
    builder.add_chunk(origin, tensor.shape, place);
  } else {
    const ChunkId chunk = builder.add_chunk(origin, tensor.shape);
    builder.set_view(chunk, builder.add_storage(place, tensor.type->codec));
  }
}

// Checks the loader's requirement that tensors follow each other, padded to the alignment.
void check_offsets(CheckpointBuilder& builder, const GgufFile& file) {
  const GgufHeader& header = *file.header;
  std::uint64_t expected = header.data_begin;
  std::vector<std::string> names;
  std::string first;
  std::optional<std::uint64_t> first_at;
  for (const GgufTensor& tensor : header.tensors) {
    if (tensor.offset != expected) {
      if (names.empty()) {
        const char* how = tensor.offset % header.alignment != 0 ? ", which is not aligned"
                          : tensor.offset < expected            ? ", inside another tensor"
                                                                : ", after a gap";
        first = fmt::format("{} begins at byte {}{}; expected byte {}", tensor.name, tensor.offset,
                            how, expected);
        first_at = tensor.descriptor_offset;
      }
      names.push_back(tensor.name);
    }
    if (!tensor.length) return;  // the next tensor's expected begin is unknown
    const auto end = checked_add(tensor.offset, *tensor.length);
    const auto padded = end ? checked_add(*end, header.alignment - 1) : std::nullopt;
    if (!padded) return;
    expected = *padded / header.alignment * header.alignment;
  }
  if (names.empty()) return;
  Finding finding = bad_record_finding(
      file.path,
      fmt::format("{} of {} {} not begin at the end of the tensor before (aligned to {}): {}. "
                  "llama.cpp refuses the file.",
                  plural(names.size(), "tensor"), file.path, names.size() == 1 ? "does" : "do",
                  header.alignment, first),
      first_at);
  finding.subjects.insert(finding.subjects.end(), names.begin(), names.end());
  builder.add_finding(std::move(finding));
}

void report_split(CheckpointBuilder& builder, const std::string& path, std::string cause) {
  builder.add_finding(bad_record_finding(path, std::move(cause)));
}

// Compares the metadata of the parts of a split file.
void check_split(CheckpointBuilder& builder, const GgufFiles& found, std::size_t tensors,
                 bool is_alone) {
  std::size_t whole = 0;
  for (std::size_t i = 0; i < found.files.size(); ++i) {
    const GgufFile& file = found.files[i];
    if (!file.header) return;
    const auto count = file.header->number("split.count"), number = file.header->number("split.no");
    if (!count || *count < 2) continue;
    if (is_alone) {
      Finding finding{
          .rule = "not-looked-at", .severity = Severity::kInfo, .subjects = {file.path}};
      finding.cause = fmt::format(
          "{} is part {} of {}: the other parts were not read. To open all parts, give the folder.",
          file.path, number.value_or(0) + 1, *count);
      builder.add_finding(std::move(finding));
      return;
    }
    if (found.missing.empty() && (*count != found.files.size() || number != i))
      report_split(builder, file.path,
                   fmt::format("{} says that it is part {} of {}, but {} are here, and its name "
                               "makes it number {}. llama.cpp refuses the model.",
                               file.path, number.value_or(0) + 1, *count,
                               plural(found.files.size(), "part"), i + 1));
    whole = std::max<std::size_t>(whole, file.header->number("split.tensors.count").value_or(0));
  }
  if (whole != 0 && found.missing.empty() && whole != tensors)
    report_split(builder, found.files.front().path,
                 fmt::format("{} says that the model has {} tensors, but its files hold {}.",
                             found.files.front().path, whole, tensors));
}

void report_unopened_files(CheckpointBuilder& builder, const GgufFiles& found) {
  const std::vector<std::string>& aside = found.aside;
  if (aside.empty()) return;
  Finding finding = how_read_finding(
      aside.front(), fmt::format("Opened {}{}. Not opened: {}. To open one of them, give its path.",
                                 found.files.front().path,
                                 found.has_others ? ", the largest of several quantisations" : "",
                                 short_list_text(aside)));
  finding.subjects = aside;
  builder.add_finding(std::move(finding));
}

void add_gguf_file(CheckpointBuilder& builder, const GgufFile& file, FilesByName& seen) {
  builder.file(file.path);
  if (!file.header) {
    builder.add_finding(unread_file_finding(file.path, file.header.error(), {}, "tensor"));
    return;
  }
  for (const GgufTensor& tensor : file.header->tensors)
    add_gguf_tensor(builder, file.path, tensor, seen);
  check_offsets(builder, file);
}

}  // namespace

OpenedCheckpoint open_gguf(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(GgufFiles found, find_gguf_files(*directory, progress));
  const bool any = std::any_of(found.files.begin(), found.files.end(),
                               [](const GgufFile& file) { return file.header.has_value(); });
  if (!any) return tl::unexpected<Error>(std::move(found.files.front().header).error());
  CheckpointBuilder builder;
  builder.set_format(kGgufFormat);
  builder.set_directory(directory);
  FilesByName seen;
  for (const std::string& path : found.missing) builder.file(path);
  for (const GgufFile& file : found.files) add_gguf_file(builder, file, seen);
  const std::size_t tensors = seen.size();
  for (const GgufFile& file : found.beside) add_gguf_file(builder, file, seen);
  for (Finding& finding : compare_gguf_keys(found)) builder.add_finding(std::move(finding));
  check_split(builder, found, tensors, is_single_file_directory(*directory));
  report_unopened_files(builder, found);
  if (is_cancelled(progress)) return cancelled_error();
  return builder.finish(progress);
}

}  // namespace shw
