#include "core/base/checked.h"
#include "core/base/utf8.h"
#include "core/formats/dcp/dcp_form.h"
#include "core/formats/pickle/pickle_writer.h"

namespace shw {
namespace {

constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";

void write_properties(PickleWriter& out, const PickledForm& form, const DcpTensor& tensor) {
  out.object(form.properties_module, "TensorProperties");
  out.raw("(");
  out.global("torch", name(tensor.dtype));
  out.global("torch.serialization", "_get_layout");
  out.text("torch.strided");
  out.raw("\x85R");
  out.raw(tensor.requires_grad ? "\x88" : "\x89");
  out.global(form.properties_module, form.memory_format);
  out.integer(0);
  out.raw("\x85R\x89tb");
}

// The chunks of a tensor: its own list, or created in `made`.
Result<std::span<const DcpChunk>> chunks_in(const DcpMetadata& metadata, std::size_t tensor,
                                            std::vector<DcpChunk>& made) {
  if (metadata.chunks_of == nullptr) return metadata.tensors[tensor].chunks;
  SHW_TRY(made, metadata.chunks_of(tensor));
  return made;
}

Status write_tensor(PickleWriter& out, const PickledForm& form, const DcpTensor& tensor,
                    std::span<const DcpChunk> chunks) {
  out.object(kMetadataModule, "TensorStorageMetadata");
  out.raw("}(");
  out.text("properties");
  write_properties(out, form, tensor);
  out.text("size");
  out.size(tensor.shape);
  out.text("chunks");
  out.raw("](");
  std::uint64_t count = 0;
  for (const DcpChunk& chunk : chunks) {
    out.batch(count++, 'e');
    out.object(kMetadataModule, "ChunkStorageMetadata");
    out.raw("}(");
    out.text("offsets");
    out.size(chunk.offsets);
    out.text("sizes");
    out.size(chunk.sizes);
    out.raw("ub");
    SHW_CHECK(out.flush_if_full());
  }
  out.raw("eub");
  return {};
}

void write_path(PickleWriter& out, const std::string& fqn, const std::vector<PathPart>& path) {
  out.text(fqn);
  out.raw("(");
  if (path.empty()) out.text(fqn);
  for (const PathPart& part : path) {
    if (const auto* text = std::get_if<std::string>(&part)) {
      out.text(*text);
    } else {
      out.integer(std::get<std::int64_t>(part));
    }
  }
  out.raw("t");
}

Status write_record(PickleWriter& out, const PickledForm& form, const std::string& fqn,
                    std::optional<std::uint64_t> index, const Extents* offsets,
                    const DcpItem& item) {
  auto offset = narrow<std::int64_t>(item.offset);
  auto length = narrow<std::int64_t>(item.length);
  if (!offset || !length)
    return fail(ErrorKind::kUsage, "an item's offset does not fit in 63 bits",
                {item.path, {}, fqn});
  out.object(kMetadataModule, "MetadataIndex");
  out.raw("}(");
  out.text("fqn");
  out.text(fqn);
  out.text("index");
  if (index) {
    out.integer(static_cast<std::int64_t>(*index));
  } else {
    out.raw("N");
  }
  if (offsets != nullptr) {
    out.text("offset");
    out.size(*offsets);
  }
  out.raw("ub");
  out.object(form.storage_module, "_StorageInfo");
  out.raw("}(");
  out.text("relative_path");
  out.text(item.path);
  out.text("offset");
  out.integer(*offset);
  out.text("length");
  out.integer(*length);
  if (!item.transforms.empty()) {
    out.text("transform_descriptors");
    out.raw("](");
    for (const std::string& transform : item.transforms) out.text(transform);
    out.raw("e");
  }
  out.raw("ub");
  return out.flush_if_full();
}

Status write_entries(PickleWriter& out, const PickledForm& form, const DcpMetadata& metadata) {
  std::uint64_t count = 0;
  std::vector<DcpChunk> made;
  out.raw("}(");
  for (std::size_t t = 0; t < metadata.tensors.size(); ++t) {
    const DcpTensor& tensor = metadata.tensors[t];
    if (tensor.dtype == Dtype::kUnknown)
      return fail(ErrorKind::kUnsupported, "has a dtype that torch does not have",
                  {{}, {}, tensor.fqn});
    out.batch(count++, 'u');
    out.text(tensor.fqn);
    SHW_TRY(auto chunks, chunks_in(metadata, t, made));
    SHW_CHECK(write_tensor(out, form, tensor, chunks));
  }
  for (const DcpObject& object : metadata.objects) {
    out.batch(count++, 'u');
    out.text(object.fqn);
    out.object(kMetadataModule, "BytesStorageMetadata");
    SHW_CHECK(out.flush_if_full());
  }
  out.raw("u");
  return {};
}

Status write_paths(PickleWriter& out, const DcpMetadata& metadata) {
  std::uint64_t count = 0;
  out.raw("}(");
  for (const DcpTensor& tensor : metadata.tensors) {
    out.batch(count++, 'u');
    write_path(out, tensor.fqn, tensor.path);
    SHW_CHECK(out.flush_if_full());
  }
  for (const DcpObject& object : metadata.objects) {
    out.batch(count++, 'u');
    write_path(out, object.fqn, object.path);
    SHW_CHECK(out.flush_if_full());
  }
  for (const std::string& fqn : metadata.only_in_planner) {
    out.batch(count++, 'u');
    write_path(out, fqn, {});
    SHW_CHECK(out.flush_if_full());
  }
  out.raw("u");
  return {};
}

Status write_records(PickleWriter& out, const PickledForm& form, const DcpMetadata& metadata) {
  std::uint64_t count = 0;
  std::vector<DcpChunk> made;
  out.raw("}(");
  for (const DcpObject& object : metadata.objects) {
    out.batch(count++, 'u');
    SHW_CHECK(write_record(out, form, object.fqn, std::nullopt, nullptr, object.item));
  }
  for (std::size_t t = 0; t < metadata.tensors.size(); ++t) {
    SHW_TRY(auto chunks, chunks_in(metadata, t, made));
    for (std::uint64_t i = 0; i < chunks.size(); ++i) {
      out.batch(count++, 'u');
      SHW_CHECK(
          write_record(out, form, metadata.tensors[t].fqn, i, &chunks[i].offsets, chunks[i].item));
    }
  }
  for (const DcpUnclaimedRecord& unclaimed : metadata.unclaimed_records) {
    out.batch(count++, 'u');
    SHW_CHECK(write_record(out, form, unclaimed.fqn, std::nullopt,
                           unclaimed.offsets ? &*unclaimed.offsets : nullptr, unclaimed.item));
  }
  out.raw("u");
  return {};
}

void write_text_or_none(PickleWriter& out, const std::string& text) {
  if (text.empty()) return out.raw("N");
  out.text(text);
}

void write_storage_meta(PickleWriter& out, const PickledForm& form, const DcpMetadata& metadata) {
  out.object(kMetadataModule, "StorageMeta");
  out.raw("}(");
  for (const std::string& field : form.storage_meta_fields) {
    out.text(field);
    if (field == "checkpoint_id") {
      write_text_or_none(out, python_path_text(metadata.checkpoint_id));
    } else if (field == "save_id") {
      write_text_or_none(out, metadata.save_id);
    } else {
      out.raw(field == "modules" ? "]" : "N");  // load_id is always None on disk
    }
  }
  out.raw("ub");
}

// Writes a field of Metadata that only some torch versions have; `given` writes its value.
template <class Given>
Status write_field(PickleWriter& out, PickledForm::Field field, std::string_view name,
                   Given given) {
  if (field == PickledForm::Field::kAbsent) return {};
  out.text(name);
  if (field == PickledForm::Field::kSubmitted) return given();
  out.raw("N");
  return {};
}

}  // namespace

Status write_dcp_metadata(const DcpMetadata& metadata, ByteSink& sink) {
  return write_dcp_metadata_as({}, metadata, sink);
}

Status write_dcp_metadata_as(const PickledForm& form, const DcpMetadata& metadata, ByteSink& sink) {
  PickleWriter out(sink);
  out.raw("\x80\x02");
  out.object(kMetadataModule, "Metadata");
  out.raw("}(");
  out.text("state_dict_metadata");
  SHW_CHECK(write_entries(out, form, metadata));
  SHW_CHECK(write_field(out, form.planner_data, "planner_data",
                        [&] { return write_paths(out, metadata); }));
  out.text("storage_data");
  SHW_CHECK(write_records(out, form, metadata));
  SHW_CHECK(write_field(out, form.storage_meta, "storage_meta", [&]() -> Status {
    write_storage_meta(out, form, metadata);
    return {};
  }));
  SHW_CHECK(write_field(out, form.version, "version", [&]() -> Status {
    out.text(form.version_text);
    return {};
  }));
  if (!metadata.reordered.empty()) {
    out.text(kReorderedAttribute);
    out.raw("](");
    for (const std::string& fqn : metadata.reordered) out.text(fqn);
    out.raw("e");
  }
  for (const auto& [name, value] : metadata.plain_attributes) {
    out.text(name);
    out.raw(value);
    SHW_CHECK(out.flush_if_full());
  }
  out.raw("ub.");
  return out.flush();
}

}  // namespace shw
