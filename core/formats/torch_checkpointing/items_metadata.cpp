#include "core/formats/torch_checkpointing/items_metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/words.h"
#include "core/formats/pickle/pickle.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxMetadata = std::uint64_t{1} << 30;
constexpr PickleLimits kItemsLimits{1u << 27, 64, 64};
constexpr std::int64_t kMaxItemRanks = 1 << 20;
constexpr std::size_t kMaxProblems = 32;

// Converts '["state",0,"exp_avg"]' to "state.0.exp_avg"; nullopt for other text.
std::optional<std::string> dotted_name_from_json_path(std::string_view text) {
  const auto keys = nlohmann::json::parse(text, nullptr, false);
  if (!keys.is_array()) return std::nullopt;
  std::string dotted;
  for (const auto& key : keys) {
    if (!dotted.empty()) dotted += '.';
    // A tuple key became a list in JSON, which the library cannot convert back.
    dotted += key.is_string() ? key.get<std::string>() : key.is_structured() ? "?" : key.dump();
  }
  return dotted;
}

class ItemsReader {
 public:
  ItemsReader(const PickleTree& tree, const std::string& file) : tree_(tree), file_(file) {}

  Result<ItemsMetadata> run() {
    SHW_CHECK(check_plain());
    const NodeId root = tree_.root(), all = tree_.find(root, "metadata");
    const auto ranks = tree_.integer(tree_.find(root, "world_size"));
    if (tree_.kind(all) != NodeKind::kDict || !ranks || *ranks < 1 || *ranks > kMaxItemRanks)
      return damaged(root, "holds no dict with 'metadata' and 'world_size'");
    out_.ranks = static_cast<std::uint32_t>(*ranks);
    const auto version = tree_.text(tree_.find(root, "version")).value_or("1.0");
    if (version == "2.0") {
      SHW_CHECK(read_items(all));
    } else if (version == "1.0") {
      SHW_CHECK(read_first_version(all, tree_.find(root, "rank_to_layout_info_mappings")));
    } else {
      return fail(
          ErrorKind::kUnsupported,
          fmt::format("has torch_checkpointing metadata version {}; 1.0 and 2.0 are supported",
                      std::string(version.substr(0, 40))),
          {file_, tree_.at(root)});
    }
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> damaged(NodeId node, std::string what) const {
    return fail(ErrorKind::kDamaged, std::move(what), {file_, tree_.at(node)});
  }
  void problem(std::string text) {
    if (out_.problems.size() < kMaxProblems) out_.problems.push_back(std::move(text));
  }

  // The library's own file contains no class. Every rank that reshards reads it with pickle.loads.
  Status check_plain() const {
    if (tree_.globals().empty()) return {};
    const PickleGlobal& first = tree_.globals().front();
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("imports {}.{}, but torch_checkpointing metadata never imports anything: every "
                    "rank that reshards would run that code. Shardwright runs nothing",
                    first.module, first.name),
        {file_, first.at}, "Do not load this checkpoint until you know who wrote it.");
  }

  Status read_items(NodeId all) {
    const auto items = tree_.items(all);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const auto name = tree_.text(items[i]);
      if (!name) return damaged(items[i], "has an item whose name is not text");
      SavedItem& item = out_.items[std::string(*name)];
      SHW_CHECK(read_paths(tree_.find(items[i + 1], "nested_path_to_metadata"), &item));
      const auto layouts = tree_.items(tree_.find(items[i + 1], "rank_to_layout_info"));
      std::uint32_t count = 0;
      for (std::size_t k = 0; k + 1 < layouts.size(); k += 2)
        count += read_layout(layouts[k], layouts[k + 1], item) ? 1 : 0;
      if (count != out_.ranks)
        problem(
            fmt::format("item {} has a layout for {} of {} ranks: the library refuses to "
                        "reshard it",
                        *name, count, out_.ranks));
    }
    return {};
  }

  // In version 1.0 the first key of each path is the item.
  Status read_first_version(NodeId all, NodeId by_rank) {
    SHW_CHECK(read_paths(all, nullptr));
    const auto ranks = tree_.items(by_rank);
    for (std::size_t i = 0; i + 1 < ranks.size(); i += 2) {
      const auto layouts = tree_.items(ranks[i + 1]);
      for (std::size_t k = 0; k + 1 < layouts.size(); k += 2) {
        if (const auto name = tree_.text(layouts[k]))
          read_layout(ranks[i], layouts[k + 1], out_.items[std::string(*name)]);
      }
    }
    return {};
  }

  Status read_paths(NodeId paths, SavedItem* own) {
    const auto items = tree_.items(paths);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const auto text = tree_.text(items[i]);
      auto dotted = text ? dotted_name_from_json_path(*text) : std::nullopt;
      if (!dotted) return damaged(items[i], "has a path that is not a JSON list of keys");
      SavedItem* item = own;
      if (item == nullptr) {
        const std::size_t dot = dotted->find('.');
        item = &out_.items[dotted->substr(0, dot)];
        *dotted = dot == std::string::npos ? std::string() : dotted->substr(dot + 1);
      }
      auto [known, is_new] = item->tensors.try_emplace(*dotted);
      if (!is_new) item->twice.push_back(*dotted);
      for (NodeId group : tree_.items(items[i + 1])) read_group(group, *dotted, known->second);
    }
    return {};
  }

  void read_group(NodeId node, const std::string& name, std::vector<ItemGroup>& groups) {
    ItemGroup group;
    for (NodeId rank : tree_.items(tree_.find(node, "ranks")))
      group.ranks.push_back(tree_.integer(rank).value_or(-1));
    const NodeId sharding = tree_.find(node, "sharding_metadata"),
                 data = tree_.find(sharding, "data");
    group.is_known = tree_.text(tree_.find(sharding, "type")) == "DTensorShardingMetadata";
    group.sharding.global_shape = numbers(tree_.find(data, "global_shape"));
    auto dtype = tree_.text(tree_.find(data, "dtype")).value_or("");
    if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
    group.dtype = dtype_from_torch(dtype).value_or(Dtype::kUnknown);
    const NodeId mesh = tree_.find(data, "mesh_spec");
    group.sharding.mesh.shape = numbers(tree_.find(mesh, "mesh_shape"));
    const Extents ranks = numbers(tree_.find(mesh, "mesh_data"));
    group.sharding.mesh.ranks.assign(ranks.begin(), ranks.end());
    for (NodeId item : tree_.items(tree_.find(mesh, "mesh_dim_names")))
      group.sharding.mesh.dim_names.emplace_back(tree_.text(item).value_or(""));
    for (NodeId item : tree_.items(tree_.find(data, "placements")))
      group.sharding.placements.push_back(placement(item));
    if (group.is_known) check_mesh(group, name);
    groups.push_back(std::move(group));
  }

  void check_mesh(const ItemGroup& group, const std::string& name) {
    const DTensorMesh& mesh = group.sharding.mesh;
    const auto cells = volume(mesh.shape);
    const std::set<std::int64_t> own(mesh.ranks.begin(), mesh.ranks.end());
    if (!cells || static_cast<std::uint64_t>(*cells) != mesh.ranks.size())
      problem(fmt::format("the mesh of {} has the shape {} and lists {} ranks", name,
                          to_text(mesh.shape), mesh.ranks.size()));
    else if (own.size() != mesh.ranks.size() || *own.begin() < 0 || *own.rbegin() >= out_.ranks)
      problem(fmt::format("the mesh of {} names a rank twice, or one that is not among {}", name,
                          out_.ranks));
    else if (group.sharding.placements.size() != mesh.shape.size())
      problem(fmt::format("{} has {} placements on a mesh of {} axes", name,
                          group.sharding.placements.size(), mesh.shape.size()));
  }

  std::string placement(NodeId node) const {
    const auto type = tree_.text(tree_.find(node, "type")).value_or("");
    const auto dim = tree_.integer(tree_.find(node, "dim")).value_or(-1);
    const auto factor = tree_.integer(tree_.find(node, "split_factor")).value_or(-1);
    if (type == "Replicate") return "Replicate()";
    if (type == "Shard") return fmt::format("Shard({})", dim);
    if (type == "StridedShard") return fmt::format("_StridedShard(dim={}, sf={})", dim, factor);
    return std::string(type.substr(0, 80));
  }

  Extents numbers(NodeId node) const {
    Extents out;
    for (NodeId item : tree_.items(node)) out.push_back(tree_.integer(item).value_or(-1));
    return out;
  }

  // False if the node is not a rank.
  bool read_layout(NodeId rank_node, NodeId node, SavedItem& item) {
    const auto rank = tree_.integer(rank_node);
    if (!rank || *rank < 0 || *rank >= out_.ranks) return false;
    const auto path = tree_.text(tree_.find(node, "file_path"));
    if (!path) return true;
    const NodeId form = tree_.find(node, "serialization_format");
    const NodeId cls = tree_.find(form, "cls");
    item.layouts[static_cast<std::uint32_t>(*rank)] = {
        std::string(*path), std::string(tree_.text(tree_.find(form, "type")).value_or("")),
        tree_.kind(cls) == NodeKind::kString};
    return true;
  }

  const PickleTree& tree_;
  const std::string& file_;
  ItemsMetadata out_;
};

constexpr const char* kInterruptedSave =
    "The save was probably interrupted. The rank files may be complete: the metadata.pkl of an "
    "earlier step of the same run describes the same layout.";

}  // namespace

bool is_items_metadata(BytesView first) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  return text.starts_with('\x80') && text.find("metadata") != std::string_view::npos &&
         text.size() > 1 && text[1] >= '\2' && text[1] <= '\5';
}

Result<ItemsMetadata> read_items_metadata(const Directory& directory) {
  SHW_TRY(auto source, directory.open(kItemsMetadata));
  if (source->size() > kMaxMetadata)
    return fail(ErrorKind::kUnsupported, "is larger than the limit for metadata.pkl",
                {kItemsMetadata});
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  auto decoded = decode_pickle(bytes, kItemsMetadata, 0, kItemsLimits);
  if (!decoded && decoded.error().kind == ErrorKind::kDamaged && decoded.error().advice.empty())
    decoded.error().advice = kInterruptedSave;
  SHW_TRY(const PickleTree tree, std::move(decoded));
  if (tree.refused())
    return fail(ErrorKind::kDamaged, std::string("Python cannot load it: ") + tree.refused()->what,
                {kItemsMetadata, tree.refused()->at});
  const std::string file = kItemsMetadata;
  return ItemsReader(tree, file).run();
}

std::optional<ItemFileName> parse_item_file(std::string_view name) {
  const std::size_t dot = name.rfind('.'), mark = name.substr(0, dot).rfind('_');
  if (dot == std::string_view::npos || mark == std::string_view::npos || mark == 0)
    return std::nullopt;
  if (name.substr(dot) != ".pt" && name.substr(dot) != ".safetensors") return std::nullopt;
  std::string_view number = name.substr(mark + 1, dot - mark - 1);
  const auto rank = consume_number(number);
  if (!rank || !number.empty() || *rank >= kMaxItemRanks) return std::nullopt;
  return ItemFileName{std::string(name.substr(0, mark)), *rank};
}

}  // namespace shw
