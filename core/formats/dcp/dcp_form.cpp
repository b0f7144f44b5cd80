#include "core/formats/dcp/dcp_form.h"

#include <algorithm>

#include "core/formats/dcp/dcp_names.h"
#include "core/formats/dcp/dcp_rows.h"
#include "core/formats/dcp/dcp_shortcut.h"
#include "core/formats/pickle/pickle.h"
#include "core/io/read_whole.h"
#include "core/model/builder.h"

namespace shw {
namespace {

constexpr const char* kOldProperties = "torch.distributed._shard.sharded_tensor.metadata";
constexpr const char* kBackport = "nemo_automodel.components.checkpoint._backports.filesystem";

// Keeps only known class names, because the output is unpickled again.
PickledForm form_of(const PickleTree& tree) {
  NodeId attributes = tree.attributes(tree.root());
  auto field = [&](std::string_view name, NodeKind given) {
    NodeKind kind = tree.kind(tree.find(attributes, name));
    return kind == given               ? PickledForm::Field::kSubmitted
           : kind == NodeKind::kAbsent ? PickledForm::Field::kAbsent
                                       : PickledForm::Field::kNone;
  };
  PickledForm form;
  form.planner_data = field("planner_data", NodeKind::kDict);
  form.storage_meta = field("storage_meta", NodeKind::kObject);
  form.version = field("version", NodeKind::kString);
  form.version_text = tree.text(tree.find(attributes, "version")).value_or("").substr(0, 256);
  NodeId storage_meta = tree.attributes(tree.find(attributes, "storage_meta"));
  std::erase_if(form.storage_meta_fields, [&](const std::string& name) {
    return tree.find(storage_meta, name) == NodeId::kAbsent;
  });
  for (const PickleGlobal& made_of : tree.globals()) {
    if (made_of.module == kOldProperties && made_of.name == "TensorProperties") {
      form.properties_module = kOldProperties;
      form.memory_format = "MEM_FORMAT_ENCODING";
    }
    if (made_of.module == kBackport && made_of.name == "_StorageInfo")
      form.storage_module = kBackport;
  }
  return form;
}

// Records of millions of chunks are parsed by the shortcut and dropped; only their surroundings are
// inspected.
Result<PickleTree> decode(const ByteSource& source, BytesView bytes) {
  CheckpointBuilder builder;
  NameTable names;
  DcpRows rows;
  DcpShortcut shortcut(builder, names, rows);
  // Releases memory that has been parsed: with millions of chunks the file has 600 MB.
  std::uint64_t consumed = 0;
  shortcut.on_consumed = [&](std::uint64_t done) {
    source.forget(consumed, done - consumed);
    consumed = done;
    return true;
  };
  PickleMachine<DcpShortcut> machine(bytes, source.name(), 0, {}, shortcut);
  auto ran = machine.run();
  if (shortcut.is_shortcut_abandoned()) return decode_pickle(bytes, source.name());
  SHW_CHECK(ran);
  return machine.take();
}

}  // namespace

Result<PickledForm> read_pickled_form(const Directory& directory) {
  std::string path(kDcpMetadataName);
  if (directory.stat(path).kind == EntryKind::kMissing) {
    SHW_TRY(auto entries, directory.list());
    auto ranks = rank_local_metadata(entries);
    if (!ranks.empty()) path = rank_local_name(ranks.front());
  }
  SHW_TRY(auto source, directory.open(path));
  Bytes read;
  BytesView bytes = source->mapped();
  if (bytes.empty()) {
    SHW_TRY(read, read_whole(*source, kMaxIndexFile));
    bytes = read;
  }
  SHW_TRY(PickleTree tree, decode(*source, bytes));
  return form_of(tree);
}

}  // namespace shw
