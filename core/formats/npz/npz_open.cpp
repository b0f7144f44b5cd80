#include "core/formats/npz/npz_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/common/numpy_dtype.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/zip_check.h"
#include "core/formats/npz/npy_header.h"
#include "core/formats/npz/npz_codec.h"
#include "core/formats/zip/zip.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Limit for a file of many small arrays.
constexpr std::size_t kMaxNpyArrays = std::size_t{1} << 20;

// An array before it is added as a tensor.
struct NpzArray {
  std::string name;
  NpyHeader header;
  std::uint64_t offset = 0, length = 0;  // of the elements, or of the deflated record
  std::uint64_t whole = 0;               // inflated bytes of the array, header included
  bool is_deflated = false;
  std::optional<Error> error = {};
};

struct NpzFile {
  std::string path;
  std::vector<NpzArray> arrays;
};

std::string stem_of(std::string_view path, std::string_view suffix) {
  if (path.ends_with(suffix)) path.remove_suffix(suffix.size());
  return std::string(path);
}

// Parses the array at byte `begin` of `bytes`, whose byte 0 is at `offset` of its file.
NpzArray read_npy(std::string name, const ByteSource& bytes, std::uint64_t offset,
                  std::uint64_t begin = 0) {
  const std::uint64_t left = bytes.size() - begin;
  NpzArray array{std::move(name), {}, offset + begin, 0, left};
  auto head = read_bytes(bytes, begin, std::min(left, kMaxNpyHeader));
  auto header = head ? parse_npy_header(*head) : tl::unexpected<Error>(std::move(head).error());
  if (!header) {
    array.error = std::move(header).error();
    return array;
  }
  array.header = std::move(*header);
  array.offset += array.header.length;
  array.length = left - array.header.length;
  return array;
}

// numpy lacks bfloat16: MLX and ml_dtypes save it as the unnamed 2-byte type "V2".
NumpyDtype npy_dtype(const NpzArray& array) {
  if (array.header.descr.size() == 3 && array.header.descr.ends_with("V2"))
    return {Dtype::kBfloat16, false};
  return numpy_dtype(array.header.descr);
}

// The bytes of all elements; nullopt if the type is unknown or the number is too large.
std::optional<std::uint64_t> bytes_of_elements(const NpzArray& array) {
  const NumpyDtype type = npy_dtype(array);
  const auto elements = volume(array.header.shape);
  if (type.dtype == Dtype::kUnknown || !elements) return std::nullopt;
  return checked_mul(static_cast<std::uint64_t>(*elements), std::uint64_t{size_of(type.dtype)});
}

// Arrays that several calls of np.save wrote into one open file follow each other without a gap,
// named by their number: "arrays.0", "arrays.1".
std::vector<NpzArray> read_npy_series(const std::string& stem, const ByteSource& bytes,
                                      std::uint64_t begin = 0) {
  std::vector<NpzArray> arrays;
  while (arrays.size() < kMaxNpyArrays) {
    NpzArray& array = arrays.emplace_back(read_npy(stem, bytes, 0, begin));
    const auto length = array.error ? std::nullopt : bytes_of_elements(array);
    if (!length || *length >= array.length) break;
    const std::uint64_t next = array.offset + *length;
    auto magic = read_bytes(bytes, next, std::min<std::uint64_t>(bytes.size() - next, 6));
    if (!magic || !begins_as_npy(*magic)) break;
    array.length = *length;
    array.whole = array.header.length + *length;
    begin = next;
  }
  if (arrays.size() > 1) {
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].name = fmt::format("{}.{}", stem, i);
  }
  return arrays;
}

// The byte after the line of JSON with which programs begin an .eqx file; 0 if there is none.
Result<std::uint64_t> end_of_json_line(const ByteSource& bytes) {
  SHW_TRY(const Bytes head, read_bytes(bytes, 0, std::min(bytes.size(), kMaxNpyHeader)));
  if (head.empty() || head.front() != std::byte{'{'}) return std::uint64_t{0};
  const auto line = std::find(head.begin(), head.end(), std::byte{'\n'});
  return line == head.end() ? std::uint64_t{0}
                            : static_cast<std::uint64_t>(line - head.begin()) + 1;
}

Result<NpzFile> read_npz_file(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  SHW_CHECK(check_is_no_lfs_pointer(*source));
  NpzFile file{path, {}};
  if (!path.ends_with(kNpzSuffix)) {
    SHW_TRY(const std::uint64_t begin,
            path.ends_with(kEqxSuffix) ? end_of_json_line(*source) : Result<std::uint64_t>(0));
    file.arrays = read_npy_series(path.substr(0, path.size() - kNpySuffix.size()), *source, begin);
    if (file.arrays[0].error) return tl::unexpected<Error>(*file.arrays[0].error);
    return file;
  }
  SHW_TRY(ZipReader archive, ZipReader::open(source, 0, source->size()));
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kNpySuffix)) continue;
    std::string name = stem_of(entry.name, kNpySuffix);
    auto at = archive.data_offset(entry);
    auto bytes = at ? archive.source_of(entry) : tl::unexpected<Error>(at.error());
    if (!bytes) {
      NpzArray& unread = file.arrays.emplace_back();
      unread.name = std::move(name);
      unread.error = std::move(bytes).error();
      continue;
    }
    NpzArray array = read_npy(std::move(name), **bytes, *at);
    if (entry.deflated) {
      array.is_deflated = true;
      array.offset = *at;
      array.length = entry.stored_length;
    }
    file.arrays.push_back(std::move(array));
  }
  return file;
}

Extents fortran_strides(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t d = 1; d < shape.size(); ++d)
    strides[d] = checked_mul(strides[d - 1], std::max<std::int64_t>(shape[d - 1], 1)).value_or(1);
  return strides;
}

void report_unread_npy(CheckpointBuilder& builder, const NpzFile& file, const NpzArray& array,
                       std::string why, bool is_damaged) {
  builder.add_unclaimed_record({array.name, std::nullopt, {builder.file(file.path), 0, 0}});
  Finding finding = bad_record_finding(
      array.name, fmt::format("{} in {} {}.", array.name, file.path, why), array.offset);
  finding.subjects.push_back(file.path);
  if (!is_damaged) {
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
  }
  builder.add_finding(std::move(finding));
}

void add_npy(CheckpointBuilder& builder, const NpzFile& file, const NpzArray& array) {
  if (array.error)
    return report_unread_npy(builder, file, array, array.error->message,
                             array.error->kind != ErrorKind::kUnsupported);
  const NumpyDtype type = npy_dtype(array);
  if (type.dtype == Dtype::kUnknown) {
    const bool is_object = array.header.descr.find('O') != std::string::npos;
    return report_unread_npy(
        builder, file, array,
        is_object ? std::string("holds pickled objects, which are not supported")
                  : fmt::format("has elements of the numpy type {}, which is not supported",
                                array.header.descr.empty() ? "of fields" : array.header.descr),
        false);
  }
  const auto bytes = bytes_of_elements(array);
  if (!bytes || *bytes != array.whole - array.header.length)
    return report_unread_npy(
        builder, file, array,
        fmt::format("is {} of {} by its header, but has {} bytes", to_text(array.header.shape),
                    name(type.dtype), array.whole - array.header.length),
        true);
  builder.add_tensor(array.name, type.dtype, array.header.shape);
  const ChunkId chunk =
      builder.add_chunk(Extents(array.header.shape.size(), 0), array.header.shape);
  const ItemPlace place{builder.file(file.path), static_cast<std::int64_t>(array.offset),
                        static_cast<std::int64_t>(array.length)};
  builder.set_view(chunk,
                   builder.add_storage(place, &npz_codec(array.is_deflated, type.is_big_endian)), 0,
                   array.header.is_column_major ? fortran_strides(array.header.shape)
                                                : row_major_strides(array.header.shape));
}

// The archives in the folder; if there are none, the single arrays.
Result<std::vector<std::string>> npz_paths(const Directory& directory) {
  SHW_TRY(auto entries, directory.list());
  std::vector<std::string> archives, arrays;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    if (entry.path.ends_with(kNpzSuffix))
      archives.push_back(entry.path);
    else if (is_numpy_file(entry.path))
      arrays.push_back(entry.path);
  }
  std::vector<std::string>& paths = archives.empty() ? arrays : archives;
  if (paths.empty()) return fail(ErrorKind::kIo, "holds no numpy array", {directory.name()});
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

bool is_numpy_file(std::string_view path) {
  return path.ends_with(kNpzSuffix) || path.ends_with(kNpySuffix) || path.ends_with(kEqxSuffix);
}

OpenedCheckpoint open_npz(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(std::vector<std::string> paths, npz_paths(*directory));
  CheckpointBuilder builder;
  builder.set_format(kNpzFormat);
  builder.set_directory(directory);
  std::unordered_map<std::string, std::string> seen;
  std::optional<Error> first;
  bool any = false;
  for (const std::string& path : paths) {
    if (is_cancelled(progress)) return cancelled_error();
    builder.file(path);
    auto file = read_npz_file(*directory, path);
    if (!file) {
      builder.add_finding(unread_file_finding(path, file.error(), {}, "tensor"));
      if (!first) first = std::move(file).error();
      continue;
    }
    any = true;
    for (const NpzArray& array : file->arrays) {
      const auto [other, is_new] = seen.try_emplace(array.name, path);
      if (!is_new)
        return fail(ErrorKind::kUnsupported,
                    fmt::format("holds several checkpoints: {} and {} both hold {}", other->second,
                                path, array.name),
                    {directory->name()},
                    "Give the path of one of them. " + advice_to_open(*directory, path));
      add_npy(builder, *file, array);
    }
  }
  if (!any && first) return tl::unexpected<Error>(std::move(*first));
  return builder.finish(progress);
}

Result<DataCheck> check_npz(const std::shared_ptr<const ByteSource>& file, Progress* progress) {
  if (!file->name().ends_with(kNpzSuffix)) return DataCheck{};
  return check_zip_records(file, progress);
}

}  // namespace shw
