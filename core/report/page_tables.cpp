#include "core/report/page_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/report/statistics_cells.h"
#include "core/report/svg_map.h"

namespace shw {
namespace {

constexpr std::size_t kMostMeshes = 50;

// It scrolls in itself where the page is narrow.
std::string wide_table(const std::string& rows) {
  return "<div class=\"wide\"><table>" + rows + "</table></div>\n";
}

std::string quiet_line(const std::string& text) {
  return text.empty() ? "" : "<p class=\"quiet\">" + text + "</p>\n";
}

std::string number_cell(const std::string& text) {
  return "<td class=\"n\">" + text + "</td>";
}

// Tiles and the bytes of their items, a rank.
struct Written {
  std::uint64_t tiles = 0, bytes = 0;
};

std::map<std::uint32_t, Written> written_by_rank(const Checkpoint& checkpoint) {
  std::map<std::uint32_t, Written> ranks;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    const std::uint64_t element = size_of(checkpoint.dtype(TensorId{t}));
    for (ChunkId chunk : checkpoint.chunks(TensorId{t})) {
      auto rank = checkpoint.writer(chunk);
      if (!rank) continue;
      Written& written = ranks[*rank];
      ++written.tiles;
      auto elements = volume(checkpoint.sizes(chunk));
      written.bytes += elements ? static_cast<std::uint64_t>(*elements) * element : 0;
    }
  }
  return ranks;
}

// "8 ranks wrote tiles: 1.2 MiB to 1.4 MiB of elements each"
std::string ranks_line(const Checkpoint& checkpoint) {
  auto ranks = written_by_rank(checkpoint);
  if (ranks.empty()) return "Nothing says which ranks wrote the tiles";
  auto fewer = [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; };
  auto [least, most] = std::minmax_element(ranks.begin(), ranks.end(), fewer);
  std::string text = plural(ranks.size(), "rank") + " wrote tiles: ";
  if (least->second.bytes == most->second.bytes) return text + human_bytes(most->second.bytes);
  return text + fmt::format("from {} (rank {}) to {} (rank {})", human_bytes(least->second.bytes),
                            least->first, human_bytes(most->second.bytes), most->first);
}

// How many tensors have each mesh and its placements, in the words of the spec.
std::map<std::pair<std::string, std::string>, std::size_t> laid_out(const Spec& spec) {
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  for (const auto& [fqn, entry] : spec.entries) {
    if (entry.mesh) ++counts[{to_text(*entry.mesh), to_text(entry.placements)}];
  }
  return counts;
}

std::string state_of(const FileRow& file, const FormatTraits& traits) {
  if (!file.safe) return "leaves the checkpoint, never opened";
  if (file.kind == EntryKind::kMissing) return "is not there";
  if (file.kind != EntryKind::kFile) return "is no file";
  if (traits.has_index && file.path == traits.index_file) return "the index";
  return file.referenced ? "" : "nothing points to it";
}

bool is_grave(const FileRow& file) {
  return !file.safe || file.kind != EntryKind::kFile;
}

std::vector<std::uint64_t> tiles_by_file(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> tiles(checkpoint.file_count());
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i) {
    auto item = checkpoint.item(ChunkId{i});
    if (item && item->file != FileId::kNone) ++tiles[index_of(item->file)];
  }
  return tiles;
}

// Bars over the powers of two, positive numbers upwards and negative ones downwards, as high as the
// logarithm of their count.
std::string histogram_svg(const std::vector<PowerBucket>& buckets) {
  if (buckets.empty()) return "";
  auto by_power = [](const auto& a, const auto& b) { return a.exponent < b.exponent; };
  auto [low, high] = std::minmax_element(buckets.begin(), buckets.end(), by_power);
  std::uint64_t most = 1;
  for (const PowerBucket& bucket : buckets) most = std::max(most, bucket.count);
  const double step = 120.0 / (high->exponent - low->exponent + 1);
  std::string path;
  for (const PowerBucket& bucket : buckets) {
    double part = std::log2(1.0 + static_cast<double>(bucket.count)) /
                  std::log2(1.0 + static_cast<double>(most));
    path += fmt::format("M{:.1f} 12v{:.1f}", (bucket.exponent - low->exponent + 0.5) * step,
                        -12.0 * part * bucket.sign);
  }
  return fmt::format(
      "<svg class=\"bars\" role=\"img\" aria-label=\"2^{0} to 2^{1}\" width=\"120\" "
      "height=\"24\" viewBox=\"0 0 120 24\"><title>2^{0} to 2^{1}</title>"
      "<path d=\"{2}\" stroke-width=\"{3:.1f}\"/></svg>",
      low->exponent, high->exponent, path, std::max(0.6, step * 0.8));
}

std::string statistics_row(const TensorStatistics& tensor) {
  StatisticsCells cells = statistics_cells(tensor);
  const bool is_sick = sickness(tensor) < 3;
  std::string name = "<code>" + escaped(clipped(tensor.fqn)) + "</code>";
  if (std::string why = statistics_caveat(tensor); !why.empty())
    name += "<br><span class=\"bad\">" + escaped(clipped(why)) + "</span>";
  std::string html =
      "<tr" + std::string(is_sick ? " class=\"bad\"" : "") + "><td>" + name + "</td>";
  for (StatisticsColumn column : {kElements, kNan, kInf, kZero, kMin, kMax, kMean, kStd})
    html += number_cell(escaped(cells[column]));
  return html + "<td>" + histogram_svg(tensor.statistics.histogram) + "</td></tr>\n";
}

std::string fates_line(const Certificate& certificate) {
  std::size_t lost = 0, moved = 0, cast = 0;
  std::uint64_t elements = 0;
  for (const TensorCertificate& tensor : certificate.tensors) {
    lost += tensor.lost != 0;
    cast += tensor.is_cast;
    moved += tensor.before != tensor.after;
    elements += static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.lost, 0));
  }
  std::string text = plural(certificate.tensors.size(), "tensor") + ", " + human_count(moved) +
                     " of them written anew";
  if (cast != 0) text += ", " + human_count(cast) + " rounded to another dtype";
  if (lost != 0)
    text += "; " + plural(elements, "element") + " of " + plural(lost, "tensor") + " lost";
  return text;
}

std::string seal_badge(const Certificate& certificate) {
  if (certificate.seal == Certificate::Seal::kBroken)
    return "<span class=\"badge bad\">changed after it was written</span>";
  return certificate.lossless ? "<span class=\"badge good\">nothing was lost</span>"
                              : "<span class=\"badge bad\">lost data</span>";
}

}  // namespace

std::string mesh_section(const ReportInput& input) {
  std::string html =
      "<h2>Ranks and mesh</h2>\n<p>" + escaped(ranks_line(input.checkpoint)) + ".</p>\n";
  if (input.spec == nullptr) return html;
  auto counts = laid_out(*input.spec);
  if (counts.empty()) return html + quiet_line("The spec names no mesh.");
  std::string rows =
      "<tr><th>mesh of the spec</th><th>placements</th><th class=\"n\">tensors</th></tr>\n";
  std::size_t shown = 0;
  for (const auto& [words, count] : counts) {
    if (++shown > kMostMeshes) break;
    rows += "<tr><td><code>" + escaped(clipped(words.first)) + "</code></td><td><code>" +
            escaped(clipped(words.second)) + "</code></td>" + number_cell(human_count(count)) +
            "</tr>\n";
  }
  html += wide_table(rows);
  if (counts.size() > kMostMeshes)
    html += quiet_line(human_count(counts.size() - kMostMeshes) + " more ways are not listed.");
  return html;
}

std::string files_section(const ReportInput& input) {
  auto files = input.checkpoint.files();
  if (files.empty()) return "";
  std::vector<std::size_t> order(files.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return is_grave(files[i]); });
  const std::vector<std::uint64_t> tiles = tiles_by_file(input.checkpoint);
  std::string rows =
      "<tr><th>file</th><th class=\"n\">rank</th><th class=\"n\">tiles</th>"
      "<th class=\"n\">bytes</th><th></th></tr>\n";
  for (std::size_t k = 0; k < std::min(order.size(), kMostRows); ++k) {
    const FileRow& file = files[order[k]];
    const bool is_there = file.kind == EntryKind::kFile;
    rows += "<tr><td><code>" + escaped(clipped(file.path)) + "</code></td>" +
            number_cell(file.rank ? std::to_string(*file.rank) : "") +
            number_cell(human_count(tiles[order[k]])) +
            number_cell(is_there ? human_bytes(file.size) : "") + "<td class=\"" +
            (is_grave(file) ? "bad" : "quiet") + "\">" +
            state_of(file, input.checkpoint.format().traits) + "</td></tr>\n";
  }
  std::string html = "<h2>Files</h2>\n" + wide_table(rows);
  if (order.size() > kMostRows)
    html += quiet_line(human_count(kMostRows) + " of " + human_count(order.size()) +
                       " files are listed, those that are not there first.");
  return html;
}

std::string statistics_section(const ReportInput& input) {
  if (input.statistics.empty()) return "";
  std::string rows = "<tr><th>tensor</th>";
  for (StatisticsColumn column : {kElements, kNan, kInf, kZero, kMin, kMax, kMean, kStd})
    rows += std::string("<th class=\"n\">") + kStatisticsTitles[column] + "</th>";
  rows += "<th>powers of two</th></tr>\n";
  std::vector<std::size_t> order = gravest_first(input.statistics);
  for (std::size_t k = 0; k < std::min(order.size(), kMostRows); ++k)
    rows += statistics_row(input.statistics[order[k]]);
  std::string html = "<h2>Statistics</h2>\n" + wide_table(rows);
  if (order.size() > kMostRows)
    html += quiet_line(human_count(kMostRows) + " of " + human_count(order.size()) +
                       " tensors are listed; <code>stats --json</code> has all.");
  return html;
}

std::string certificate_section(const ReportInput& input) {
  if (input.certificate == nullptr) return "";
  const Certificate& certificate = *input.certificate;
  std::string html = "<h2>How it was made</h2>\n<p>" + seal_badge(certificate) +
                     "<code>certificate.json</code> says: made of <code>" +
                     escaped(clipped(certificate.source)) + "</code> by Shardwright " +
                     escaped(clipped(certificate.version)) + "; " + fates_line(certificate) +
                     ". <code>verify</code> proves it.</p>\n";
  std::string rows;
  std::size_t all = 0;
  auto add = [&](const std::string& what, const std::string& text) {
    if (++all > kMostFindings) return;
    rows += "<tr><td class=\"o\"><code>" + escaped(what) + "</code></td><td>" +
            escaped(clipped(text)) + "</td></tr>\n";
  };
  for (const Operation& operation : certificate.operations)
    add(std::string(name(operation.kind)), operation.text);
  for (const std::string& step : certificate.steps) add("step", step);
  for (const std::string& dropped : certificate.dropped) add("dropped", dropped);
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (tensor.lost > 0)
      add("lost", plural(static_cast<std::uint64_t>(tensor.lost), "element") + " of " + tensor.fqn);
  }
  if (!rows.empty()) html += wide_table(rows);
  return html + quiet_line(all > kMostFindings
                               ? human_count(all - kMostFindings) + " more lines are not listed."
                               : "");
}

}  // namespace shw
