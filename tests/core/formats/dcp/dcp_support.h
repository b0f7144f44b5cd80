// Helpers of DCP metadata tests: fixtures, a sink in memory, and a comparison that tells where two
// checkpoints differ.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "core/formats/dcp/dcp_read.h"
#include "core/formats/dcp/dcp_write.h"
#include "core/formats/open.h"
#include "core/memory_sink.h"

namespace shw::test {

inline Bytes bytes_of(std::string_view text) {
  auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

// Every `.metadata` of the fixtures, and every `__R.metadata`.
inline std::vector<std::string> metadata_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SHW_TEST_DATA)) {
    std::string name = entry.path().filename();
    if (name == ".metadata" || (name.starts_with("__") && name.ends_with(".metadata")))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline Bytes read_file(const std::string& path) {
  auto source = open_file(path, path);
  REQUIRE(source);
  auto bytes = read_bytes(**source, 0, (*source)->size());
  REQUIRE(bytes);
  return *bytes;
}

inline Result<std::shared_ptr<const Checkpoint>> open_bytes(Bytes bytes, bool shortcuts = true) {
  DcpReadOptions options;
  options.shortcuts = shortcuts;
  return read_dcp_metadata(*memory_source(".metadata", std::move(bytes)), nullptr, nullptr,
                           options);
}

inline void put(std::ostream& out, std::span<const PathPart> path) {
  for (const PathPart& part : path) {
    if (const auto* text = std::get_if<std::string>(&part)) {
      out << "/'" << *text << "'";
    } else {
      out << "/" << std::get<std::int64_t>(part);
    }
  }
}

inline void put(std::ostream& out, const Checkpoint& c, const std::optional<ItemPlace>& item) {
  if (!item) {
    out << " nowhere";
  } else {
    out << " " << c.file(item->file).path << "@" << item->offset << "+" << item->length;
  }
}

// All contents of a checkpoint as text. Offsets inside findings are left out, since rows that were
// read in one step do not keep theirs.
inline std::string describe(const Checkpoint& c) {
  std::ostringstream out;
  const Provenance& p = c.provenance();
  out << p.torch << "|" << p.path_class << "|" << p.version << "|" << p.properties_arity << "|"
      << p.save_id << "|" << p.has_planner_data << p.has_storage_meta;
  for (const auto& extra : p.extra_attributes) out << "|" << extra;
  out << "\n";
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    TensorId tensor{t};
    out << c.fqn(tensor) << " " << name(c.dtype(tensor)) << " " << to_text(c.shape(tensor)) << " "
        << c.requires_grad(tensor) << " ";
    put(out, c.path(tensor));
    out << "\n";
    for (ChunkId chunk : c.chunks(tensor)) {
      out << "  " << to_text(c.offsets(chunk)) << to_text(c.sizes(chunk));
      put(out, c, c.item(chunk));
      for (const auto& transform : c.transforms(chunk)) out << " " << transform;
      out << "\n";
    }
  }
  for (std::size_t o = 0; o < c.objects().size(); ++o) {
    out << c.objects()[o].fqn;
    put(out, c, c.objects()[o].item);
    for (const auto& transform : c.objects()[o].transforms) out << " " << transform;
    put(out, c.object_path(o));
    out << "\n";
  }
  for (const UnclaimedStorageRecord& unclaimed : c.unclaimed_records()) {
    out << "stray " << unclaimed.fqn << (unclaimed.offsets ? to_text(*unclaimed.offsets) : "");
    put(out, c, unclaimed.item);
    out << "\n";
  }
  for (const Finding& f : c.opening_findings()) {
    out << f.rule << " " << static_cast<int>(f.severity) << " " << f.subjects.front() << " "
        << f.cause << "\n";
  }
  return out.str();
}

inline DcpMetadata metadata_of(const Checkpoint& c) {
  DcpMetadata metadata;
  metadata.checkpoint_id = "/somewhere/else";
  metadata.save_id = "00000000-0000-0000-0000-000000000405";
  auto item_of = [&](const std::optional<ItemPlace>& item) {
    if (!item) return DcpItem{};
    return DcpItem{c.file(item->file).path, static_cast<std::uint64_t>(item->offset),
                   static_cast<std::uint64_t>(item->length)};
  };
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    TensorId id{t};
    DcpTensor tensor{std::string(c.fqn(id)), c.dtype(id), c.requires_grad(id),
                     copy_of(c.shape(id)),   {},          {c.path(id).begin(), c.path(id).end()}};
    for (ChunkId chunk : c.chunks(id)) {
      DcpItem item = item_of(c.item(chunk));
      item.transforms = {c.transforms(chunk).begin(), c.transforms(chunk).end()};
      tensor.chunks.push_back({copy_of(c.offsets(chunk)), copy_of(c.sizes(chunk)), item});
    }
    metadata.tensors.push_back(std::move(tensor));
  }
  for (std::size_t o = 0; o < c.objects().size(); ++o) {
    DcpItem item = item_of(c.objects()[o].item);
    item.transforms = c.objects()[o].transforms;
    metadata.objects.push_back(
        {c.objects()[o].fqn, std::move(item), {c.object_path(o).begin(), c.object_path(o).end()}});
  }
  return metadata;
}

}  // namespace shw::test
