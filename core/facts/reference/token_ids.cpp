#include "core/facts/reference/token_ids.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/cancellable_range.h"
#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/io/read_whole.h"

namespace shw {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxConfig = std::uint64_t{16} << 20;
// Bytes read of tokenizer.json: it lists added tokens before its vocabulary.
constexpr std::uint64_t kMaxOfTokenizer = std::uint64_t{4} << 20;
constexpr std::size_t kMaxTokenIds = 1 << 16;

constexpr auto kEmbeddings =
    std::to_array<std::string_view>({"embed_tokens.weight", "wte.weight", "word_embeddings.weight",
                                     "embed_in.weight", "tok_embeddings.weight", "shared.weight"});
constexpr auto kSpecial = std::to_array<std::string_view>(
    {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"});

struct Embedding {
  TensorId tensor{};
  std::int64_t rows = 0;
};

std::optional<Embedding> largest_embedding(const Checkpoint& c, const Progress* progress) {
  std::optional<Embedding> largest;
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    const std::string_view fqn = c.fqn(tensor);
    const auto is_end = [&](std::string_view end) {
      return fqn.ends_with(end) &&
             (fqn.size() == end.size() || fqn[fqn.size() - end.size() - 1] == '.');
    };
    if (c.shape(tensor).size() != 2 || std::none_of(kEmbeddings.begin(), kEmbeddings.end(), is_end))
      continue;
    const std::int64_t rows = c.shape(tensor)[0];
    if (!largest || rows > largest->rows) largest = Embedding{tensor, rows};
  }
  return largest;
}

std::string begin_of_file(const Directory& directory, const std::string& path, std::uint64_t most) {
  const Entry entry = directory.stat(path);
  if (entry.kind != EntryKind::kFile) return "";
  auto source = directory.open(path);
  if (!source) return "";
  auto bytes = read_bytes(**source, 0, std::min((*source)->size(), most));
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

Json json_of_file(const Directory& directory, const std::string& path) {
  const Entry entry = directory.stat(path);
  if (entry.kind != EntryKind::kFile || entry.size > kMaxConfig) return nullptr;
  auto parsed = parse_json<Json>(begin_of_file(directory, path, kMaxConfig));
  return parsed.problem.empty() && parsed.tree.is_object() ? std::move(parsed.tree) : Json(nullptr);
}

// Adds the ids of a config; a key has one id or a list.
void add_special_token_ids(const Json& object, const std::string& file,
                           std::vector<NamedTokenId>& ids) {
  for (std::string_view key : kSpecial) {
    const auto found = object.find(std::string(key));
    if (found == object.end()) continue;
    if (auto id = json_integer(*found)) ids.push_back({file, std::string(key), *id});
    if (!found->is_array()) continue;
    for (const Json& one : *found) {
      auto id = json_integer(one);
      if (id && ids.size() < kMaxTokenIds) ids.push_back({file, std::string(key), *id});
    }
  }
}

// Reads "added_tokens": [{"id": 32000, "content": "<pad>", ...}, ...], and stops after it.
class AddedTokens : public nlohmann::json_sax<Json> {
 public:
  explicit AddedTokens(std::vector<NamedTokenId>& ids) : ids_(ids) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return set_token_id(value); }
  bool number_unsigned(number_unsigned_t value) override {
    const auto id = narrow<std::int64_t>(value);
    return !id || set_token_id(*id);
  }
  bool number_float(number_float_t, const std::string&) override { return true; }
  bool string(std::string& value) override {
    if (is_inside() && key_ == "content") token_.name = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (is_inside()) token_ = {"tokenizer.json", "", -1};
    return ++depth_ < kDeepestJson;
  }
  bool end_object() override {
    --depth_;
    if (is_inside() && token_.id >= 0) ids_.push_back(std::move(token_));
    return ids_.size() < kMaxTokenIds;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 1 && key_ == "added_tokens") begins_ = depth_ + 1;
    return ++depth_ < kDeepestJson;
  }
  bool end_array() override {
    const bool is_last = is_inside();
    --depth_;
    return !is_last || depth_ != 1;
  }
  bool key(std::string& key) override {
    key_ = std::move(key);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool is_inside() const { return begins_ != 0 && depth_ >= begins_; }
  bool set_token_id(std::int64_t value) {
    if (is_inside() && key_ == "id") token_.id = value;
    return true;
  }

  std::vector<NamedTokenId>& ids_;
  NamedTokenId token_;
  std::string key_;
  std::size_t depth_ = 0, begins_ = 0;
};

std::vector<NamedTokenId> added_tokens(const Directory& directory) {
  std::vector<NamedTokenId> ids;
  const std::string begin = begin_of_file(directory, "tokenizer.json", kMaxOfTokenizer);
  AddedTokens events(ids);
  if (!begin.empty()) (void)Json::sax_parse(begin, &events);
  const Json added = json_of_file(directory, "added_tokens.json");
  for (auto one = added.begin(); added.is_object() && one != added.end(); ++one) {
    if (auto id = json_integer(*one)) ids.push_back({"added_tokens.json", one.key(), *id});
    if (ids.size() >= kMaxTokenIds) break;
  }
  return ids;
}

bool is_replaced(const std::string& token) {
  std::string small = token;
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr auto kReplaced =
      std::to_array<std::string_view>({"image", "audio", "video", "vision", "img"});
  return std::any_of(kReplaced.begin(), kReplaced.end(),
                     [&](std::string_view word) { return small.find(word) != std::string::npos; });
}

}  // namespace

std::optional<TokenIdsBeyond> token_ids_beyond_embedding(const Checkpoint& checkpoint,
                                                         const Progress* progress) {
  if (checkpoint.directory() == nullptr) return std::nullopt;
  const auto embedding = largest_embedding(checkpoint, progress);
  if (!embedding) return std::nullopt;
  const Directory& directory = *checkpoint.directory();
  TokenIdsBeyond out{embedding->tensor, embedding->rows};
  const Json config = json_of_file(directory, "config.json");
  if (config.is_object()) {
    add_special_token_ids(config, "config.json", out.special);
    for (const Json& part : config) {
      if (part.is_object()) add_special_token_ids(part, "config.json", out.special);
    }
  }
  const Json generation = json_of_file(directory, "generation_config.json");
  if (generation.is_object())
    add_special_token_ids(generation, "generation_config.json", out.special);
  out.added = added_tokens(directory);
  std::erase_if(out.special, [&](const NamedTokenId& one) { return one.id < out.rows; });
  std::erase_if(out.added, [&](const NamedTokenId& one) {
    return one.id < out.rows || is_replaced(one.name);
  });
  if (out.special.empty() && out.added.empty()) return std::nullopt;
  return out;
}

}  // namespace shw
