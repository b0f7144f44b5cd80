#include "core/maps/model_facts.h"

#include <charconv>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/zip/zip.h"
#include "core/io/read_whole.h"

namespace shw {
namespace {

using FactsJson = nlohmann::json;

constexpr std::uint64_t kMaxFactsBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxCommonBytes = std::uint64_t{64} << 20;
constexpr std::int64_t kLargestFact = std::int64_t{1} << 40;

void add_number(const std::string& key, std::int64_t value, ModelFacts::Sizes& sizes) {
  if (value >= 0 && value <= kLargestFact) sizes.emplace(key, value);
}

void add_sizes(const FactsJson& object, ModelFacts::Sizes& sizes) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_boolean())
      add_number(key, value.get<bool>() ? 1 : 0, sizes);
    else if (value.is_number_unsigned() &&
             value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kLargestFact))
      add_number(key, value.get<std::int64_t>(), sizes);
  }
}

std::string model_type_from_json(const FactsJson& object) {
  auto found = object.find("model_type");
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The dict of arguments, or the attributes of their argparse.Namespace.
NodeId megatron_args_node(const PickleTree& tree, NodeId common) {
  // megatron-core from 0.17 on keeps the dict in a list.
  if (tree.kind(common) == NodeKind::kList && !tree.items(common).empty())
    common = tree.items(common).front();
  const NodeId args = tree.find(common, "args");
  return tree.kind(args) == NodeKind::kDict ? args : tree.attributes(args);
}

void add_arguments(const PickleTree& tree, ModelFacts& facts) {
  const auto items = tree.items(megatron_args_node(tree, tree.root()));
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const auto key = tree.text(items[i]);
    const auto value = tree.integer(items[i + 1]);
    if (key && value) add_number(std::string(*key), *value, facts.args);
  }
  // Without grouped queries Megatron ignores num_query_groups, which then has a default.
  auto grouped = facts.args.find("group_query_attention");
  if (grouped != facts.args.end() && grouped->second == 0) facts.args.erase("num_query_groups");
}

Status add_facts_of_common_state(const std::shared_ptr<const ByteSource>& source,
                                 std::uint64_t offset, std::uint64_t length, ModelFacts& facts) {
  SHW_TRY(ZipReader zip, ZipReader::open(source, offset, length));
  SHW_TRY(Bytes pickle, read_pickle_record(zip, kMaxCommonBytes));
  SHW_TRY(PickleTree tree, decode_pickle(pickle, source->name()));
  add_arguments(tree, facts);
  return {};
}

Status read_common_file(const Directory& directory, ModelFacts& facts) {
  SHW_TRY(auto source, directory.open("common.pt"));
  return add_facts_of_common_state(source, 0, source->size(), facts);
}

Status read_common_object(const Checkpoint& checkpoint, ModelFacts& facts) {
  for (const NonTensorEntry& object : checkpoint.objects()) {
    if (!object.fqn.starts_with("common_state/") || !object.item ||
        object.item->file == FileId::kNone || !object.transforms.empty())
      continue;
    SHW_TRY(auto source, checkpoint.directory()->open(checkpoint.file(object.item->file).path));
    const auto offset = narrow<std::uint64_t>(object.item->offset);
    const auto length = narrow<std::uint64_t>(object.item->length);
    if (!offset || !length || *length > kMaxCommonBytes) continue;
    return add_facts_of_common_state(source, *offset, *length, facts);
  }
  return {};
}

Status read_config(const Directory& directory, const std::string& name, ModelFacts& facts) {
  SHW_TRY(auto source, directory.open(name));
  SHW_TRY(std::string text, read_whole_text(*source, kMaxFactsBytes));
  return add_config(text, name, facts);
}

}  // namespace

Status add_config(std::string_view text, const std::string& source, ModelFacts& facts) {
  auto parsed = parse_json<FactsJson>(text);
  if (!parsed.problem.empty() || !parsed.tree.is_object())
    return fail(ErrorKind::kDamaged, "is not the config.json of a model", {source});
  facts.model_type = model_type_from_json(parsed.tree);
  auto inner = parsed.tree.find("text_config");
  if (inner != parsed.tree.end() && inner->is_object()) {
    add_sizes(*inner, facts.config);
    if (auto type = model_type_from_json(*inner); !type.empty()) facts.model_type = std::move(type);
  }
  add_sizes(parsed.tree, facts.config);
  return {};
}

ModelFacts facts_in_folder(const Checkpoint& checkpoint) {
  ModelFacts facts;
  if (checkpoint.directory() == nullptr) return facts;
  const Directory& directory = *checkpoint.directory();
  if (!read_config(directory, "config.json", facts)) {
    // Training runs keep config.json next to their step folders.
    auto around = open_directory(directory.name() + "/..");
    if (around && (*around)->stat("config.json").kind == EntryKind::kFile)
      (void)read_config(**around, "config.json", facts);
  }
  if (!read_common_file(directory, facts)) (void)read_common_object(checkpoint, facts);
  return facts;
}

Status add_given_value(const std::string& text, ModelFacts& facts) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? std::string() : text.substr(equals + 1);
  if (!name.empty() && !value.empty()) {
    if (name == "model") {
      facts.model_type = value;
      return {};
    }
    if (name == "form") {
      facts.forms_named_by_user.push_back(value);
      return {};
    }
    std::int64_t number = 0;
    auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code == std::errc{} && end == value.data() + value.size() && number >= 0 &&
        number <= kLargestFact) {
      facts.said[name] = number;
      return {};
    }
  }
  return fail(ErrorKind::kUsage, "\"" + text + "\" is not a value of a map", {},
              "write --set NAME=NUMBER, as --set groups=8; or model=llama, form=local");
}

}  // namespace shw
