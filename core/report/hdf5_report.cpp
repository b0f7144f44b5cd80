#include "core/report/hdf5_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/version.h"
#include "core/hdf5/hdf5_writer.h"
#include "core/io/output_file.h"
#include "core/io/publish.h"
#include "core/io/source.h"
#include "core/report/page_parts.h"

namespace shw {
namespace {

using Kind = Hdf5Field::Kind;

// Dimensions with columns of their own; further ones are only in the tensor's shape.
constexpr std::size_t kDimsTold = 8;

std::int64_t count_or_minus_one(std::optional<std::int64_t> count) {
  return count.value_or(-1);
}
std::int64_t row_of(FileId file) {
  return file == FileId::kNone ? -1 : static_cast<std::int64_t>(index_of(file));
}
std::int64_t capped_count(std::uint64_t count) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(count, kMost));
}

Hdf5Table tensors_table(const Checkpoint& checkpoint) {
  auto fill = [&checkpoint](std::uint64_t row, Hdf5Row& cells) {
    TensorId tensor{static_cast<std::uint32_t>(row)};
    ExtentsView shape = checkpoint.shape(tensor);
    auto elements = volume(shape);
    cells.put(std::string(checkpoint.fqn(tensor)));
    cells.put(std::string(name(checkpoint.dtype(tensor))));
    cells.put(to_text(shape));
    cells.put(static_cast<std::int64_t>(shape.size()));
    cells.put(count_or_minus_one(elements));
    cells.put(elements ? capped_count(static_cast<std::uint64_t>(*elements) *
                                      size_of(checkpoint.dtype(tensor)))
                       : std::int64_t{-1});
    cells.put(static_cast<std::int64_t>(checkpoint.chunks(tensor).size()));
    cells.put(static_cast<std::int64_t>(checkpoint.chunks(tensor).first));
  };
  return {"/tensors",
          {{Kind::kText, "fqn"},
           {Kind::kText, "dtype"},
           {Kind::kText, "shape"},
           {Kind::kWhole, "ndim"},
           {Kind::kWhole, "elements"},
           {Kind::kWhole, "bytes", "B"},
           {Kind::kWhole, "chunks"},
           {Kind::kWhole, "first_chunk"}},
          checkpoint.tensor_count(),
          fill};
}

std::size_t dims_listed(const Checkpoint& checkpoint) {
  std::size_t most = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    most = std::max(most, checkpoint.shape(TensorId{t}).size());
  return std::min(most, kDimsTold);
}

void put_extents(ExtentsView extents, std::size_t dims, Hdf5Row& cells) {
  for (std::size_t d = 0; d < dims; ++d) cells.put(d < extents.size() ? extents[d] : -1);
}

Hdf5Table chunks_table(const Checkpoint& checkpoint) {
  const std::size_t dims = dims_listed(checkpoint);
  std::vector<Hdf5Field> fields{{Kind::kWhole, "tensor"},      {Kind::kWhole, "file"},
                                {Kind::kWhole, "offset", "B"}, {Kind::kWhole, "length", "B"},
                                {Kind::kWhole, "writer"},      {Kind::kWhole, "elements"}};
  for (const char* what : {"offset", "size"}) {
    for (std::size_t d = 0; d < dims; ++d)
      fields.push_back({Kind::kWhole, fmt::format("{}_{}", what, d), "elements"});
  }
  // Rows are requested in order, so the tensor advances with them.
  auto fill = [&checkpoint, dims, tensor = std::uint32_t{0}](std::uint64_t row,
                                                             Hdf5Row& cells) mutable {
    while (checkpoint.chunks(TensorId{tensor}).last <= row) ++tensor;
    ChunkId chunk{static_cast<std::uint32_t>(row)};
    auto item = checkpoint.item(chunk).value_or(ItemPlace{FileId::kNone, -1, -1});
    auto writer = checkpoint.writer(chunk);
    cells.put(std::int64_t{tensor});
    cells.put(row_of(item.file));
    cells.put(item.offset);
    cells.put(item.length);
    cells.put(writer ? std::int64_t{*writer} : -1);
    cells.put(count_or_minus_one(volume(checkpoint.sizes(chunk))));
    put_extents(checkpoint.offsets(chunk), dims, cells);
    put_extents(checkpoint.sizes(chunk), dims, cells);
  };
  return {"/chunks", std::move(fields), checkpoint.chunk_count(), fill};
}

Hdf5Table files_table(const Checkpoint& checkpoint) {
  auto fill = [&checkpoint](std::uint64_t row, Hdf5Row& cells) {
    const FileRow& file = checkpoint.files()[row];
    cells.put(file.path);
    cells.put(capped_count(file.size));
    cells.put(file.rank ? std::int64_t{*file.rank} : -1);
    cells.put(std::int64_t{file.kind == EntryKind::kFile});
    cells.put(std::int64_t{file.referenced});
  };
  return {"/files",
          {{Kind::kText, "path"},
           {Kind::kWhole, "bytes", "B"},
           {Kind::kWhole, "rank"},
           {Kind::kWhole, "is_there"},
           {Kind::kWhole, "is_referenced"}},
          checkpoint.file_count(),
          fill};
}

Hdf5Table findings_table(const std::vector<Finding>& findings) {
  auto fill = [&findings](std::uint64_t row, Hdf5Row& cells) {
    const Finding& finding = findings[row];
    cells.put(finding.rule);
    const bool is_note = finding.severity == Severity::kInfo;
    cells.put(std::string(is_note ? "info" : word_of(finding.severity)));
    cells.put(std::string(name(finding.consequence)));
    cells.put(finding.cause);
    cells.put(finding.remedy ? finding.remedy->text : std::string());
    cells.put(static_cast<std::int64_t>(finding.subjects.size()));
  };
  return {"/findings",
          {{Kind::kText, "rule"},
           {Kind::kText, "severity"},
           {Kind::kText, "consequence"},
           {Kind::kText, "cause"},
           {Kind::kText, "remedy"},
           {Kind::kWhole, "subjects"}},
          findings.size(),
          fill};
}

// Rows of a relation: finding and subject, or tensor and histogram bucket.
using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

Hdf5Table subjects_table(const std::vector<Finding>& findings, Pairs& pairs) {
  for (std::uint32_t i = 0; i < findings.size(); ++i) {
    for (std::uint32_t k = 0; k < findings[i].subjects.size(); ++k) pairs.emplace_back(i, k);
  }
  auto fill = [&findings, &pairs](std::uint64_t row, Hdf5Row& cells) {
    auto [finding, subject] = pairs[row];
    cells.put(std::int64_t{finding});
    cells.put(findings[finding].subjects[subject]);
  };
  return {"/subjects", {{Kind::kWhole, "finding"}, {Kind::kText, "name"}}, pairs.size(), fill};
}

Hdf5Table statistics_table(std::span<const TensorStatistics> tensors) {
  auto fill = [tensors](std::uint64_t row, Hdf5Row& cells) {
    const Statistics& told = tensors[row].statistics;
    cells.put(tensors[row].fqn);
    for (std::uint64_t count : {told.elements, told.nan, told.infinite, told.zero, told.denormal})
      cells.put(capped_count(count));
    cells.put(told.least);
    cells.put(told.greatest);
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    cells.put(told.mean.value_or(kNone));
    cells.put(told.std.value_or(kNone));
    cells.put(tensors[row].missing);
    cells.put(tensors[row].unread);
    cells.put(tensors[row].repeated);
    cells.put(tensors[row].error ? tensors[row].error->message : std::string());
  };
  return {"/statistics",
          {{Kind::kText, "fqn"},
           {Kind::kWhole, "elements"},
           {Kind::kWhole, "nan"},
           {Kind::kWhole, "inf"},
           {Kind::kWhole, "zero"},
           {Kind::kWhole, "denormal"},
           {Kind::kText, "min"},
           {Kind::kText, "max"},
           {Kind::kReal, "mean"},
           {Kind::kReal, "std"},
           {Kind::kWhole, "missing"},
           {Kind::kWhole, "unread"},
           {Kind::kWhole, "repeated"},
           {Kind::kText, "error"}},
          tensors.size(),
          fill};
}

Hdf5Table histogram_table(std::span<const TensorStatistics> tensors, Pairs& pairs) {
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    for (std::uint32_t k = 0; k < tensors[i].statistics.histogram.size(); ++k)
      pairs.emplace_back(i, k);
  }
  auto fill = [tensors, &pairs](std::uint64_t row, Hdf5Row& cells) {
    auto [tensor, bucket] = pairs[row];
    const PowerBucket& power = tensors[tensor].statistics.histogram[bucket];
    cells.put(std::int64_t{tensor});
    cells.put(std::int64_t{power.sign});
    cells.put(std::int64_t{power.exponent});
    cells.put(capped_count(power.count));
  };
  return {"/histogram",
          {{Kind::kWhole, "statistics"},
           {Kind::kWhole, "sign"},
           {Kind::kWhole, "exponent"},
           {Kind::kWhole, "count"}},
          pairs.size(),
          fill};
}

Hdf5Attributes report_attributes(const ReportInput& input) {
  const Checkpoint& checkpoint = input.checkpoint;
  return {{"schema", std::string(kJsonSchema)},
          {"checkpoint", checkpoint.directory() ? checkpoint.directory()->name() : std::string()},
          {"format", std::string(checkpoint.format().name)},
          {"verdict", std::string(name(input.check.verdict))},
          {"depth", std::string(name(input.check.depth))},
          {"command", input.command}};
}

}  // namespace

Result<std::uint64_t> write_hdf5_report(const ReportInput& input,
                                        std::span<const TensorStatistics> statistics,
                                        const std::string& path, Progress* progress) {
  const Checkpoint& checkpoint = input.checkpoint;
  SHW_TRY(const OutputTarget target, output_target(path));
  if (target.is_special)
    return fail(ErrorKind::kUsage, "HDF5 tables need a file, and this is a device or a pipe",
                {path}, "name a file with --out");
  TempFile half_made(target.path);
  SHW_TRY(Hdf5Writer writer, Hdf5Writer::create(half_made.path(), path));
  SHW_CHECK(writer.set_attributes("/", report_attributes(input)));
  Pairs subjects, buckets;
  std::vector<Hdf5Table> tables{tensors_table(checkpoint), chunks_table(checkpoint),
                                files_table(checkpoint), findings_table(input.check.findings),
                                subjects_table(input.check.findings, subjects)};
  if (!statistics.empty()) {
    tables.push_back(statistics_table(statistics));
    tables.push_back(histogram_table(statistics, buckets));
  }
  std::uint64_t rows = 0;
  for (const Hdf5Table& table : tables) rows += table.rows;
  if (progress != nullptr) progress->begin(Phase::kReporting, rows, false);
  for (const Hdf5Table& table : tables) SHW_CHECK(writer.add_table(table, progress));
  SHW_CHECK(writer.close());
  SHW_CHECK(half_made.replace());
  SHW_TRY(auto made, open_file(path, path));
  return made->size();
}

}  // namespace shw
