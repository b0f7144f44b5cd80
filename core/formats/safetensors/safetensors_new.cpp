#include "core/formats/safetensors/safetensors_new.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/formats/safetensors/safetensors_header.h"

namespace shw {
namespace {

// All of them: whoever converts has to know what is in the way, not the first of it.
std::string joined_all(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::uint64_t tensor_bytes(const OutputTensor& tensor) {
  std::uint64_t bytes = 0;
  for (const OutputTile& tile : tensor.tiles) bytes += bytes_of(tensor, tile).value_or(0);
  return bytes;
}

// As the enum of safetensors 0.8 has them (tensor.rs).
constexpr auto kOrder = std::to_array<std::string_view>(
    {"BOOL",    "F4",          "F6_E2M3",     "F6_E3M2", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
     "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",     "U16", "F16", "BF16",    "I32",
     "U32",     "F32",         "C64",         "F64",     "I64", "U64"});

}  // namespace

std::string_view safetensors_word(Dtype dtype) {
  // torch packs two elements of F4 into one of its own.
  return dtype == Dtype::kFloat4E2m1fnX2 ? "F4" : info(dtype).safetensors;
}

std::size_t safetensors_order(std::string_view dtype_text) {
  auto found = std::find(kOrder.begin(), kOrder.end(), dtype_text);
  return found == kOrder.end() ? 0 : static_cast<std::size_t>(found - kOrder.begin());
}

Status check_safetensors_can_say(const Outputs& outputs, bool sharded) {
  std::vector<std::string> wordless, others, pieces, unspellable, reserved;
  for (const OutputTensor& tensor : outputs.tensors) {
    if (safetensors_word(tensor.dtype).empty())
      wordless.push_back(fmt::format("{} ({})", tensor.fqn, name(tensor.dtype)));
    if (!sharded && !is_whole(tensor)) pieces.push_back(tensor.fqn);
    // Python pickles lone surrogates, JSON has none.
    if (!is_utf8(tensor.fqn)) unspellable.push_back(tensor.fqn);
    if (tensor.fqn == kSafetensorsMetadata) reserved.push_back(tensor.fqn);
  }
  for (const OutputObject& object : outputs.objects) others.push_back(object.fqn);
  std::string what;
  auto add = [&](const std::vector<std::string>& names, std::string_view why) {
    if (names.empty()) return;
    what += fmt::format("{}{} {} {}: {}", what.empty() ? "" : "; ", plural(names.size(), "entry"),
                        names.size() == 1 ? "is" : "are", why, joined_all(names));
  };
  add(wordless, "of a dtype that safetensors has no word for");
  add(others, "no tensor, and safetensors holds nothing else");
  add(unspellable, "named in what is no UTF-8, and a header of safetensors is");
  add(reserved, "named as a header of safetensors names its own metadata");
  add(pieces, "in pieces, and a safetensors file holds whole tensors");
  // No file would be written, and a folder without one opens as nothing.
  if (what.empty() && outputs.tensors.empty()) what = "there is no tensor";
  if (what.empty()) return {};
  return fail(
      ErrorKind::kUnsupported, "cannot be written as safetensors: " + what, {},
      "convert --weights-only leaves out all that is not a weight of the model, --leave-out "
      "PATTERN what the pattern fits; or write another format");
}

namespace {

// Cuts the tensors of one folder, in their order, into files of at most `most` bytes.
void split_one(const Outputs& outputs, const PartHome& home, std::vector<std::size_t> tensors,
               std::vector<std::string>& paths) {
  const std::uint64_t most = outputs.shard_bytes == 0 ? UINT64_MAX : outputs.shard_bytes;
  std::vector<std::vector<std::size_t>> shards;
  std::vector<std::size_t> open;
  std::uint64_t filled = 0;
  auto close = [&] {
    if (!open.empty()) shards.push_back(std::exchange(open, {}));
    filled = 0;
  };
  for (std::size_t t : tensors) {
    std::uint64_t bytes = tensor_bytes(outputs.tensors[t]);
    if (bytes > most) {  // alone, and the file that is being filled goes on
      shards.push_back({t});
      continue;
    }
    if (bytes > most - filled) close();
    open.push_back(t);
    filled += bytes;
  }
  close();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (std::size_t t : shards[i]) {
      paths[t] =
          home.folder + home.stem +
          (shards.size() == 1 ? ".safetensors"
                              : fmt::format("-{:05}-of-{:05}.safetensors", i + 1, shards.size()));
    }
  }
}

}  // namespace

std::vector<std::string> split_into_files(const Outputs& outputs, const PartHomes& homes) {
  std::vector<std::string> paths(outputs.tensors.size());
  for (std::size_t home = 0; home < homes.homes.size(); ++home) {
    std::vector<std::size_t> own;
    for (std::size_t t = 0; t < outputs.tensors.size(); ++t) {
      if (homes.of_tensor[t] == home) own.push_back(t);
    }
    split_one(outputs, homes.homes[home], std::move(own), paths);
  }
  return paths;
}

std::string new_safetensors_index(const Outputs& outputs, const LaidOut& laid_out,
                                  const PartHomes& homes, const PartHome& home) {
  std::uint64_t total = 0, elements = 0;
  std::set<std::uint32_t> files;
  nlohmann::json places = nlohmann::json::object();
  for (const MadeTile& made : laid_out.made) {
    if (&homes.of(made.tensor) != &home) continue;
    const OutputTensor& tensor = outputs.tensors[made.tensor];
    total += made.length;
    elements += static_cast<std::uint64_t>(volume(tensor.shape).value_or(0));
    files.insert(made.file);
    places[name_in_file(tensor, home)] = laid_out.files[made.file].path.substr(home.folder.size());
  }
  if (files.size() < 2) return {};
  nlohmann::json index = {{"metadata", {{"total_parameters", elements}, {"total_size", total}}},
                          {"weight_map", std::move(places)}};
  return index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace shw
