#include "core/formats/torch_file/bare_pickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/legacy_torch_file.h"
#include "core/formats/common/nested_storage.h"
#include "core/formats/common/not_examined_finding.h"
#include "core/formats/common/open_advice.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/pickle/pickle_safety.h"
#include "core/formats/pickle/plain_pickle.h"
#include "core/formats/torch_file/latin1_codec.h"
#include "core/formats/torch_file/module_findings.h"
#include "core/formats/torch_file/pickled_arrays.h"
#include "core/formats/torch_file/state_dict.h"
#include "core/model/builder.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr Format kBarePickleFormat = {
    .name = "pickle",
    .title = "bare pickle",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};
constexpr std::uint64_t kMaxBarePickle = std::uint64_t{4} << 30;
constexpr PickleLimits kBareLimits{1u << 26, 200, 1u << 14};

bool begins_as_pickle(BytesView first) {
  return first.size() > 1 && first[0] == std::byte{0x80} && first[1] >= std::byte{2} &&
         first[1] <= std::byte{5} && !is_legacy_torch_file(first);
}

// The bytes of a file and the tree of its pickle, whose texts point into them.
struct BarePickle {
  std::shared_ptr<const ByteSource> source;
  Bytes held;
  BytesView bytes;
  PickleTree tree;
};

Result<BarePickle> read_bare_pickle(const Directory& directory, const std::string& path) {
  SHW_TRY(auto source, directory.open(path));
  BarePickle pickle;
  pickle.bytes = source->mapped();
  if (pickle.bytes.empty() && source->size() > kMaxBarePickle)
    return fail(ErrorKind::kUnsupported, "is a pickle of more than 4 GiB, which is not supported",
                {path});
  if (pickle.bytes.empty()) {
    SHW_TRY(pickle.held, read_bytes(*source, 0, source->size()));
    pickle.bytes = pickle.held;
  }
  SHW_TRY(pickle.tree, decode_pickle(pickle.bytes, source->name(), 0, kBareLimits));
  if (pickle.tree.refused())
    return fail(ErrorKind::kDamaged,
                std::string("Python cannot load it: ") + pickle.tree.refused()->what,
                {path, pickle.tree.refused()->at});
  pickle.source = std::move(source);
  return pickle;
}

bool contains_arrays(const PickleTree& tree) {
  for (std::uint32_t i = 0; i < tree.node_count(); ++i) {
    if (is_array_call(tree, NodeId{i})) return true;
  }
  return false;
}

// Of a damaged one the first names tell. Arrays of joblib are between the opcodes, where no pickle
// has any.
bool names_arrays(BytesView bytes) {
  constexpr std::size_t kReach = std::size_t{64} << 10;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), kReach));
  if (text.find("joblib.numpy_pickle") != std::string_view::npos) return false;
  return text.find("numpy") != std::string_view::npos ||
         text.find("torch._utils") != std::string_view::npos;
}

// Top-level pickles with arrays: files with a pickle's name, or the only file of the folder.
Result<std::vector<std::string>> bare_pickles(const DirectoryContents& look) {
  constexpr std::uint64_t kBegin = 64;
  SHW_TRY(auto entries, look.entries());
  std::vector<std::string> found;
  for (const Entry& entry : entries) {
    const bool is_named = entries.size() == 1 || entry.path.ends_with(".pkl") ||
                          entry.path.ends_with(".pickle") || entry.path.ends_with(".p") ||
                          entry.path.ends_with(".pdparams");
    if (!is_top_file(entry) || !is_named || trainer_file(entry.path) != TrainerFile::kNone)
      continue;
    SHW_TRY(Bytes first, look.first_bytes(entry.path, kBegin));
    if (!begins_as_pickle(first)) continue;
    auto pickle = read_bare_pickle(look.directory(), entry.path);
    bool holds = pickle && contains_arrays(pickle->tree);
    if (!pickle && pickle.error().kind == ErrorKind::kDamaged) {
      SHW_TRY(Bytes begin, look.first_bytes(entry.path, std::uint64_t{64} << 10));
      holds = names_arrays(begin);
    }
    if (holds) found.push_back(entry.path);
  }
  return found;
}

class BarePickleOpening {
 public:
  BarePickleOpening(std::shared_ptr<const Directory> directory, std::string path,
                    const BarePickle& pickle)
      : path_(std::move(path)),
        pickle_(pickle),
        tree_(pickle.tree),
        arrays_(pickle.tree, pickle.bytes, path_),
        plain_left_(16 * pickle.tree.end() + (1 << 20)) {
    builder_.set_format(kBarePickleFormat);
    builder_.set_directory(std::move(directory));
    file_ = builder_.file(path_);
  }

  OpenedCheckpoint run(Progress* progress) {
    SHW_TRY(std::vector<StateEntry> entries, entries_of_root_or_array());
    for (StateEntry& entry : entries) {
      if (is_cancelled(progress)) return cancelled_error();
      if (entry.module != NodeId::kAbsent) ++modules_[entry.module];
      add(std::move(entry));
    }
    for (Finding& finding : module_findings(tree_, modules_, path_))
      builder_.add_finding(std::move(finding));
    add_imports();
    add_unreadable();
    note_end();
    return builder_.finish(progress);
  }

 private:
  Result<std::vector<StateEntry>> entries_of_root_or_array() const {
    if (is_array_call(tree_, tree_.root()))
      return std::vector<StateEntry>{{"array", {std::string("array")}, tree_.root()}};
    return flatten_state_dict(tree_, path_, {}, is_array_call);
  }

  void add(StateEntry entry) {
    if (!is_array_call(tree_, entry.value)) return add_value(std::move(entry), {});
    auto array = arrays_.read(entry.value);
    if (array) return add_array(std::move(entry), *array);
    unreadable_[{array.error().kind, array.error().message}].push_back(entry.fqn);
    add_value(std::move(entry), "an array that " + array.error().message);
  }

  // Findings about imports; nested torch.save files have been read and need none.
  void add_imports() {
    const bool are_plain = are_nested_storages_plain(tree_) && arrays_.storages_are_plain();
    for (Finding& finding : unsafe_pickle_findings(tree_, path_, PickleFileContent::kPrograms)) {
      const bool is_nested =
          std::any_of(finding.evidence.begin(), finding.evidence.end(), [](const auto& evidence) {
            const auto* text = std::get_if<std::string>(&evidence.second);
            return text != nullptr && *text == "torch.storage._load_from_bytes";
          });
      if (!is_nested || !are_plain) builder_.add_finding(std::move(finding));
    }
  }

  // `not_plain`: why no value is kept; empty where one may be.
  void add_value(StateEntry entry, std::string not_plain) {
    InlinedValue value;
    auto opcodes = not_plain.empty() ? plain_pickle(tree_, entry.value, plain_left_) : std::nullopt;
    if (opcodes) {
      plain_left_ -= opcodes->size();
      value.opcodes = std::move(*opcodes);
    } else {
      value.not_plain =
          not_plain.empty() ? non_plain_value_reason(tree_, entry.value) : std::move(not_plain);
    }
    builder_.add_object({.fqn = std::move(entry.fqn), .item = {}, .inlined = std::move(value)},
                        std::move(entry.path));
  }

  void add_array(StateEntry entry, const PickledArray& array) {
    const TensorId id =
        builder_.add_tensor(std::move(entry.fqn), array.dtype, array.sizes, array.requires_grad);
    builder_.set_path(id, std::move(entry.path));
    const ChunkId chunk = builder_.add_chunk(Extents(array.sizes.size(), 0), array.sizes);
    const Codec* codec = array.is_latin1 && array.is_big_endian ? &kLatin1BigCodec
                         : array.is_latin1                      ? &kLatin1Codec
                         : array.is_big_endian                  ? &kBytesBigCodec
                                                                : &kRawCodec;
    const ItemPlace place{file_, static_cast<std::int64_t>(array.offset),
                          static_cast<std::int64_t>(array.length)};
    auto known = storages_.find(array.offset);
    if (known == storages_.end())
      known = storages_.emplace(array.offset, builder_.add_storage(place, codec)).first;
    const bool is_dense = is_row_major(array.sizes, array.strides);
    builder_.set_view(chunk, known->second, array.first,
                      is_dense ? ExtentsView{} : ExtentsView(array.strides));
  }

  // One finding per reason.
  void add_unreadable() {
    for (auto& [reason, names] : unreadable_) {
      const auto& [kind, message] = reason;
      std::string cause =
          fmt::format("{} in {} cannot be read: {}.", short_list_text(names), path_, message);
      if (kind != ErrorKind::kDamaged) {
        builder_.add_finding(not_examined_finding(std::move(names), std::move(cause)));
        continue;
      }
      Finding finding = bad_record_finding(path_, std::move(cause));
      finding.subjects = std::move(names);
      builder_.add_finding(std::move(finding));
    }
  }

  void note_end() {
    if (tree_.end() >= pickle_.bytes.size()) return;
    builder_.add_finding(not_examined_finding(
        {path_}, fmt::format("{} has {} bytes after its first pickle, which were not read: "
                             "pickle.load takes one pickle at a time.",
                             path_, human_count(pickle_.bytes.size() - tree_.end()))));
  }

  CheckpointBuilder builder_;
  std::string path_;
  const BarePickle& pickle_;
  const PickleTree& tree_;
  PickledArrays arrays_;
  std::uint64_t plain_left_;
  FileId file_ = FileId::kNone;
  std::map<std::uint64_t, StorageId> storages_;  // by offset
  std::map<NodeId, std::size_t> modules_;
  std::map<std::pair<ErrorKind, std::string>, std::vector<std::string>> unreadable_;
};

Result<bool> has_bare_pickle(const DirectoryContents& look) {
  SHW_TRY(auto paths, bare_pickles(look));
  return !paths.empty();
}

}  // namespace

OpenedCheckpoint open_bare_pickle(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto paths, bare_pickles(DirectoryContents(*directory)));
  if (paths.empty())
    return fail(ErrorKind::kUnsupported, "holds no pickle of arrays", {directory->name()});
  if (paths.size() > 1)
    return fail(ErrorKind::kUnsupported,
                fmt::format("holds {} pickles of arrays: {}", paths.size(), short_list_text(paths)),
                {directory->name()},
                "Give the path of one of them. " + advice_to_open(*directory, paths.front()));
  SHW_TRY(BarePickle pickle, read_bare_pickle(*directory, paths.front()));
  return BarePickleOpening(std::move(directory), paths.front(), pickle).run(progress);
}

// Training leaves other pickles next to its checkpoints: vocabularies, configurations.
constexpr FormatRow kBarePickleRow = {
    .format = &kBarePickleFormat,
    .sign = ".pkl",
    .recognises = has_bare_pickle,
    .open = open_bare_pickle,
    .names_are_common = true,
};

}  // namespace shw
