// Writes a whole state dict as one torch.save file, "model.pt" or the name that the model's library
// looks for: every tensor gets its own storage. Parts of a pipeline get a file each. The CRCs are
// written after the storages' bytes.
#include "core/formats/torch_file/torch_file_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "core/base/words.h"
#include "core/formats/common/torch_archive.h"
#include "core/formats/common/torch_file_records.h"
#include "core/formats/library_names.h"
#include "core/formats/part_locations.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/plain_value.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/optimizer_state_dict.h"
#include "core/formats/torch_file/state_dict.h"
#include "core/formats/torch_file/state_dict_pickle.h"
#include "core/formats/zip/crc32.h"

namespace shw {
namespace {

constexpr const char* kModelFile = "model.pt";  // name in errors

// Quantised tensors have scales in addition to elements, which no opened checkpoint keeps.
bool has_torch_word(Dtype dtype) {
  return dtype != Dtype::kUnknown && !name(dtype).starts_with("q");
}

// The opcodes of every object; one error names all objects that cannot be written.
Result<std::vector<std::string>> values_of(const Outputs& outputs) {
  std::vector<std::string> values, refused;
  for (const OutputTensor& tensor : outputs.tensors) {
    if (!has_torch_word(tensor.dtype))
      refused.push_back(fmt::format("{} ({})", tensor.fqn, name(tensor.dtype)));
    else if (!is_whole(tensor) || !bytes_of(tensor, tensor.tiles[0]))
      refused.push_back(tensor.fqn + " (in pieces)");
  }
  for (const OutputObject& object : outputs.objects) {
    if (!object.plain.empty()) {
      values.push_back(object.plain);
      continue;
    }
    auto read = object.unsaid.empty() && object.place && outputs.source != nullptr
                    ? read_plain_opcodes(*outputs.source, *object.place)
                    : fail(ErrorKind::kUnsupported,
                           object.unsaid.empty() ? "no value is given" : object.unsaid);
    if (!read && read.error().kind == ErrorKind::kIo)
      return tl::unexpected<Error>(std::move(read).error());
    if (!read)
      refused.push_back(object.fqn + " (" + read.error().message + ")");
    else
      values.push_back(std::move(*read));
  }
  if (refused.empty()) return values;
  std::string names;
  for (const std::string& one : refused) names += (names.empty() ? "" : ", ") + one;
  return fail(ErrorKind::kUnsupported,
              fmt::format("{} cannot be written into a torch.save file: {}",
                          plural(refused.size(), "entry"), names));
}

// Visits the forms of every readable torch.save file of the checkpoint.
void for_each_state_form(const Checkpoint& checkpoint,
                         const std::function<void(StateForms&)>& take) {
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced) continue;
    auto state = open_state(*checkpoint.directory(), file.path);
    if (!state) continue;
    if (auto forms = state_forms(state->tree, file.path, state->whole)) take(*forms);
  }
}

// Types of keys, containers and attributes of a torch.save source: an optimizer finds its states by
// integer keys and silently ignores text keys. Parses the pickle again, as inlined_records.h does.
Result<StateForms> read_source_state_forms(const Outputs& outputs) {
  const Checkpoint* source = outputs.source;
  StateForms all;
  if (source == nullptr || source->directory() == nullptr ||
      source->format().writer != &kTorchFileWriter)
    return all;
  for_each_state_form(*source, [&](StateForms& forms) {
    all.numbers.merge(forms.numbers);
    all.words.merge(forms.words);
    all.keys.merge(forms.keys);
    all.apart.merge(forms.apart);
    all.ordered.merge(forms.ordered);
    all.parameters.merge(forms.parameters);
    all.attributes.merge(forms.attributes);
    all.not_plain.insert(all.not_plain.end(), forms.not_plain.begin(), forms.not_plain.end());
  });
  if (!all.not_plain.empty())
    return fail(ErrorKind::kUnsupported,
                fmt::format("the attributes of {} cannot be written into a torch.save file",
                            short_list_text(all.not_plain)));
  return all;
}

bool is_number_text(std::string_view text) {
  return !text.empty() && text.size() < 10 && (text == "0" || text.front() != '0') &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The parameters that a list of groups names by number: [{"params": [0, 1], ...}].
std::set<std::int64_t> numbered_parameters(const PickleTree& tree, NodeId groups) {
  std::set<std::int64_t> numbers;
  if (tree.kind(groups) != NodeKind::kList) return numbers;
  for (NodeId group : tree.items(groups)) {
    const NodeId parameters = tree.find(group, "params");
    for (NodeId one : tree.items(parameters))
      if (const auto number = tree.integer(one); tree.kind(one) == NodeKind::kInt && number)
        numbers.insert(*number);
  }
  return numbers;
}

// Adds the keys of states that torch.optim looks up by number, below `path` and in the dicts there.
// DCP records numbers and text alike.
void add_numbered_states(const PickleTree& tree, NodeId dict, std::vector<PathPart>& path,
                         StateForms::Paths& numbers) {
  constexpr std::size_t kDeepest = 4;
  if (tree.kind(dict) != NodeKind::kDict || path.size() > kDeepest) return;
  const std::set<std::int64_t> parameters =
      numbered_parameters(tree, tree.find(dict, "param_groups"));
  const auto items = tree.items(dict);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const auto key = tree.text(items[i]);
    if (!key) continue;
    path.emplace_back(std::string(*key));
    if (*key == "state" && !parameters.empty() && tree.kind(items[i + 1]) == NodeKind::kDict) {
      const auto states = tree.items(items[i + 1]);
      for (std::size_t k = 0; k + 1 < states.size(); k += 2) {
        const auto text = tree.text(states[k]);
        if (!text || !is_number_text(*text) || !parameters.contains(std::stoll(std::string(*text))))
          continue;
        path.emplace_back(std::string(*text));
        numbers.insert(path);
        path.pop_back();
      }
    } else {
      add_numbered_states(tree, items[i + 1], path, numbers);
    }
    path.pop_back();
  }
}

// The pickle of the state dict. From a source that records no types of keys, the keys of optimizer
// states get the type that their groups use for parameters.
Result<Bytes> pickle_of_model(const Outputs& outputs, const std::vector<std::string>& values) {
  SHW_TRY(StateForms forms, read_source_state_forms(outputs));
  SHW_TRY(Bytes pickle, pickle_state_dict(outputs, values, forms));
  const bool may_have_states = std::ranges::any_of(outputs.tensors, [](const OutputTensor& tensor) {
    return tensor.path.size() > 2 &&
           std::ranges::find(tensor.path, PathPart("state")) != tensor.path.end();
  });
  if (!may_have_states) return pickle;
  SHW_TRY(const PickleTree tree, decode_pickle(pickle, kModelFile));
  std::vector<PathPart> path;
  const std::size_t before = forms.numbers.size();
  add_numbered_states(tree, tree.root(), path, forms.numbers);
  if (forms.numbers.size() == before) return pickle;
  return pickle_state_dict(outputs, values, forms);
}

// Objects that a reader would not find under their names.
Result<std::set<std::string>> unreachable_objects(const Outputs& outputs, const PickleTree& tree,
                                                  const std::set<std::string>& whole) {
  SHW_TRY(std::vector<StateEntry> read, flatten_state_dict(tree, kModelFile, whole));
  std::unordered_set<std::string_view> names;
  for (const StateEntry& entry : read) names.insert(entry.fqn);
  std::set<std::string> apart;
  for (const OutputObject& object : outputs.objects) {
    if (!names.contains(object.fqn)) apart.insert(object.fqn);
  }
  return apart;
}

// Names of entries that are dicts (torch's flatten_state_dict=False) and that a reader would
// flatten into several entries. They are listed in a record next to the pickle, which torch
// ignores.
Result<std::set<std::string>> unflattened_entries(const Outputs& outputs, BytesView pickle) {
  if (outputs.objects.empty()) return std::set<std::string>();
  SHW_TRY(PickleTree tree, decode_pickle(pickle, kModelFile));
  auto whole = unreachable_objects(outputs, tree, {});
  if (whole && whole->empty()) return whole;
  // Reading fails if a flattened dict yields the name of another entry: then all objects are
  // listed.
  if (!whole) whole.emplace();
  if (whole->empty()) {
    for (const OutputObject& object : outputs.objects) whole->insert(object.fqn);
  }
  SHW_TRY(std::set<std::string> apart, unreachable_objects(outputs, tree, *whole));
  if (apart.empty()) return whole;
  return fail(
      ErrorKind::kUnsupported,
      fmt::format(
          "{} cannot be written into a torch.save file as {}: it would load as a different list",
          short_list_text(std::vector<std::string>(apart.begin(), apart.end())),
          apart.size() == 1 ? "one entry" : "one entry each"),
      {}, "exclude them (convert --leave-out PATTERN)");
}

// One output file and its tensors.
struct ModelFile {
  std::string path;
  Outputs outputs;
  std::vector<std::uint32_t> tensors = {};  // indices in the Outputs of all files
};

Outputs without_tensors(const Outputs& all) {
  Outputs outputs;
  outputs.source = all.source;
  outputs.filled_text = all.filled_text;
  outputs.attributes = all.attributes;
  return outputs;
}

// One file for each part with tensors. Entries that are not tensors belong to no part; with such
// entries there is only one file.
std::vector<ModelFile> model_files(const Outputs& all) {
  if (is_optimizer_state_dict(all)) return {{kTrainerOptimizerFile, nested_as_optimizer(all)}};
  const PartLocations homes = part_locations(all);
  if (homes.homes.size() == 1) return {{homes.homes.front().torch_file, all}};
  if (!all.objects.empty()) return {{weight_file_names(all.source).torch_file, all}};
  const std::set<std::string> filled(all.filled.begin(), all.filled.end());
  std::vector<ModelFile> files;
  for (const PartLocation& home : homes.homes)
    files.push_back({home.folder + home.torch_file, without_tensors(all)});
  for (std::uint32_t t = 0; t < all.tensors.size(); ++t) {
    ModelFile& file = files[homes.of_tensor[t]];
    if (filled.contains(all.tensors[t].fqn)) file.outputs.filled.push_back(all.tensors[t].fqn);
    file.tensors.push_back(t);
    file.outputs.tensors.push_back(all.tensors[t]);
    OutputTensor& tensor = file.outputs.tensors.back();
    const PartLocation& home = homes.of(t);
    if (home.prefix > 0) tensor.path.clear();
    tensor.fqn = name_in_file(tensor, home);
  }
  std::erase_if(files, [](const ModelFile& file) { return file.tensors.empty(); });
  return files;
}

// The archive as torch.save writes it: its top folder is the file's stem. Storages: those of the
// tensors, then those of values.
Result<TorchArchive> archive_of_model(const ModelFile& file, BytesView pickle) {
  const Outputs& outputs = file.outputs;
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  TorchArchive archive{.top = name.substr(0, name.rfind('.')),
                       .pickle = hole_payload(pickle.size(), crc32_of(pickle))};
  if (!outputs.filled.empty())
    archive.more.emplace_back(kFilledRecord, outputs.filled_text(outputs.filled));
  SHW_TRY(std::set<std::string> whole, unflattened_entries(outputs, pickle));
  if (!whole.empty()) archive.more.emplace_back(kWholeRecord, unflattened_names_record(whole));
  return archive;
}

void add_value_storages(const Outputs& outputs, TorchArchive& archive) {
  for (const OutputObject& object : outputs.objects) {
    for (const CarriedStorage& storage : object.storages)
      archive.storages.push_back(hole_payload(storage.length, storage.crc));
  }
}

// This writer only creates new files; keeping data in existing ones is not supported.
Status check_all_tiles_are_new(const Outputs& outputs) {
  for (const OutputTensor& tensor : outputs.tensors) {
    for (const OutputTile& tile : tensor.tiles) {
      if (tile.kept)
        return fail(ErrorKind::kUnsupported, "is in a torch.save file, which repair cannot write",
                    Place{.file = {}, .tensor = tensor.fqn},
                    "Convert it first: shardwright convert CHECKPOINT --to dcp.");
    }
  }
  return {};
}

void place_object_storages(const Outputs& outputs, std::uint32_t file,
                           std::span<const std::uint64_t> holes, LaidOut& out) {
  for (const OutputObject& object : outputs.objects) {
    for (const CarriedStorage& storage : object.storages) {
      place_storage(storage, file, holes.front(), out);
      holes = holes.subspan(1);
    }
  }
}

Status lay_out_file(const ModelFile& file, LaidOut& out) {
  const Outputs& outputs = file.outputs;
  const auto index = static_cast<std::uint32_t>(out.files.size());
  SHW_TRY(std::vector<std::string> values, values_of(outputs));
  SHW_TRY(Bytes pickle, pickle_of_model(outputs, values));
  SHW_TRY(TorchArchive archive, archive_of_model(file, pickle));
  for (const OutputTensor& tensor : outputs.tensors)
    archive.storages.push_back(hole_payload(*bytes_of(tensor, tensor.tiles[0]), 0));
  add_value_storages(outputs, archive);
  HoleSkippingSink around;
  SHW_CHECK(write_torch_archive(around, archive));
  out.files.push_back({file.path, around.position()});
  out.before.push_back({index, around.holes.front(), std::move(pickle)});
  for (std::uint32_t t = 0; t < outputs.tensors.size(); ++t) {
    std::uint64_t at = around.holes[t + 1], length = archive.storages[t].length;
    const std::uint32_t tensor = file.tensors.empty() ? t : file.tensors[t];
    out.made.push_back({tensor, 0, index, at, length, at, length});
  }
  place_object_storages(outputs, index, std::span(around.holes).subspan(outputs.tensors.size() + 1),
                        out);
  return {};
}

Result<LaidOut> lay_out_model(const Outputs& outputs) {
  SHW_CHECK(check_all_tiles_are_new(outputs));
  LaidOut out;
  for (const ModelFile& file : model_files(outputs)) SHW_CHECK(lay_out_file(file, out));
  std::sort(out.made.begin(), out.made.end(),
            [](const WrittenTile& a, const WrittenTile& b) { return a.tensor < b.tensor; });
  return out;
}

Result<std::vector<OutputBytes>> seal_model(const Outputs& outputs, const LaidOut& laid_out,
                                            std::uint32_t file,
                                            std::span<const std::uint32_t> checksums) {
  const std::vector<ModelFile> files = model_files(outputs);
  if (checksums.size() != laid_out.made.size() || file >= files.size() ||
      file >= laid_out.before.size())
    return fail(ErrorKind::kUsage, "every chunk needs its checksum");
  SHW_TRY(TorchArchive archive, archive_of_model(files[file], laid_out.before[file].bytes));
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    if (laid_out.made[i].file == file)
      archive.storages.push_back(hole_payload(laid_out.made[i].length, checksums[i]));
  }
  add_value_storages(files[file].outputs, archive);
  HoleSkippingSink around;
  SHW_CHECK(write_torch_archive(around, archive));
  std::vector<OutputBytes> bytes;
  for (HoleSkippingSink::Part& part : around.parts)
    bytes.push_back({file, part.offset, std::move(part.bytes)});
  return bytes;
}

Status seal_nothing(Outputs, const LaidOut&, const CreateFile&) {
  return {};
}

}  // namespace

std::vector<std::string> torch_only_names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  if (checkpoint.directory() == nullptr) return names;
  for_each_state_form(checkpoint, [&](StateForms& forms) {
    names.insert(names.end(), forms.own_names.begin(), forms.own_names.end());
  });
  return names;
}

constexpr FormatWriter kTorchFileWriter{lay_out_model, seal_model, seal_nothing};

}  // namespace shw
