#include "core/formats/torch_file/torch_file_writer.h"

#include "core/fixtures.h"
#include "core/formats/items/item_check.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/state_dict.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/formats/written.h"
#include "core/formats/zip/zip.h"

using namespace shw;
using namespace shw::test;

namespace {

OutputTensor whole_tensor(std::string fqn, Dtype dtype, Extents shape,
                          std::vector<PathPart> path = {}) {
  Box box{Extents(shape.size(), 0), shape};
  return {std::move(fqn), dtype, false, std::move(shape), {{std::move(box), 0}}, std::move(path)};
}

// Every tensor of a checkpoint as one new tile, and every object by its item or its value.
Outputs whole_outputs(const Checkpoint& checkpoint, std::vector<Bytes>& bytes) {
  Outputs out;
  out.source = &checkpoint;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    auto path = checkpoint.path(tensor);
    out.tensors.push_back(whole_tensor(std::string(checkpoint.fqn(tensor)),
                                       checkpoint.dtype(tensor), copy_of(checkpoint.shape(tensor)),
                                       {path.begin(), path.end()}));
    auto values = read_tensor(checkpoint, tensor);
    REQUIRE_MESSAGE(values.has_value(), values.error().message);
    bytes.push_back(std::move(values->bytes));
  }
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    const NonTensorEntry& row = checkpoint.objects()[i];
    auto path = checkpoint.object_path(i);
    out.objects.push_back({.fqn = row.fqn,
                           .place = row.item,
                           .path = {path.begin(), path.end()},
                           .plain = row.inlined ? row.inlined->opcodes : ""});
  }
  return out;
}

// The written parts of a file; the rest is a hole.
class PartsSource final : public ByteSource {
 public:
  PartsSource(std::uint64_t size, std::map<std::uint64_t, Bytes> parts)
      : size_(size), parts_(std::move(parts)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), std::byte{0});
    for (const auto& [at, bytes] : parts_) {
      std::uint64_t first = std::max(at, offset);
      std::uint64_t last = std::min(at + bytes.size(), offset + out.size());
      for (std::uint64_t i = first; i < last; ++i) out[i - offset] = bytes[i - at];
    }
    return {};
  }
  std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const override {
    bool hole = length > std::uint64_t{1} << 30;
    return {{offset, length, hole}};
  }

 private:
  std::string name_ = "model.pt";
  std::uint64_t size_;
  std::map<std::uint64_t, Bytes> parts_;
};

class OneSource final : public Directory {
 public:
  explicit OneSource(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<Entry>> list(std::size_t) const override {
    return std::vector<Entry>{stat(source_->name())};
  }
  Entry stat(const std::string& path) const override {
    if (path != source_->name()) return Entry{path};
    return Entry{path, EntryKind::kFile, source_->size()};
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string&) const override {
    return source_;
  }

 private:
  std::string name_ = "ckpt";
  std::shared_ptr<const ByteSource> source_;
};

// A file that is laid out and complete, with only zeros in its tensors.
std::shared_ptr<const ByteSource> hollow_file(const Outputs& outputs) {
  auto laid_out = kTorchFileWriter.lay_out(outputs);
  REQUIRE_MESSAGE(laid_out.has_value(), laid_out.error().message);
  std::vector<std::uint32_t> checksums;
  for (const WrittenTile& made : laid_out->made)
    checksums.push_back(crc32_of_zeros(0, made.length));
  auto sealed = kTorchFileWriter.seal_file(outputs, *laid_out, 0, checksums);
  REQUIRE(sealed.has_value());
  std::map<std::uint64_t, Bytes> parts;
  for (const OutputBytes& part : laid_out->before) parts[part.offset] = part.bytes;
  for (const OutputBytes& part : *sealed) parts[part.offset] = part.bytes;
  return std::make_shared<PartsSource>(laid_out->files[0].size, std::move(parts));
}

}  // namespace

TEST_CASE("a state dict is written nested as its paths say and read again as it was") {
  Outputs outputs;
  outputs.tensors.push_back(whole_tensor("model.w", Dtype::kBfloat16, {2, 3}, {"model", "w"}));
  outputs.tensors.push_back(whole_tensor("plain.dotted", Dtype::kFloat8E4m3fn, {5}));
  outputs.tensors.push_back(whole_tensor("l.2", Dtype::kInt64, {}, {"l", std::int64_t{2}}));
  outputs.tensors.push_back(
      whole_tensor("l.0.e", Dtype::kBool, {0, 4}, {"l", std::int64_t{0}, "e"}));
  outputs.tensors[0].requires_grad = true;
  outputs.objects.push_back({.fqn = "step", .plain = "K\7"});
  outputs.objects.push_back({.fqn = "model.names", .path = {"model", "names"}, .plain = "](K\1e"});
  std::vector<Bytes> bytes = {rising_bytes(12, 1), rising_bytes(5, 50), rising_bytes(8, 90), {}};
  auto made = written(kTorchFileWriter, outputs, bytes);
  CHECK(made->format().name == "torch");
  CHECK(made->opening_findings().empty());
  CHECK(made->file(FileId{0}).path == "model.pt");
  for (std::uint32_t t = 0; t < 4; ++t) {
    const OutputTensor& wanted = outputs.tensors[t];
    CAPTURE(wanted.fqn);
    auto tensor = made->find(wanted.fqn);
    REQUIRE(tensor.has_value());
    CHECK(made->dtype(*tensor) == wanted.dtype);
    CHECK(same(made->shape(*tensor), wanted.shape));
    CHECK(made->requires_grad(*tensor) == wanted.requires_grad);
    CHECK(read_tensor(*made, *tensor)->bytes == bytes[t]);
    ChunkId chunk = made->chunks(*tensor)[0];
    CHECK(made->item(chunk)->offset % 64 == 0);
    CHECK(check_item_data(*made, chunk, nullptr)->crc == DataCheck::Crc::kMatches);
    auto path = made->path(*tensor);
    std::vector<PathPart> wanted_path = wanted.path;
    if (wanted_path.empty()) wanted_path = {wanted.fqn};
    CHECK(std::vector<PathPart>(path.begin(), path.end()) == wanted_path);
  }
  // A list has no holes: None fills indices without an entry.
  CHECK(names_of(*made).ends_with("| model.names l.1 step"));
  CHECK(to_text(*read_plain_value(*made, object_named(*made, "step"), 99)) == "7");
  CHECK(to_text(*read_plain_value(*made, object_named(*made, "l.1"), 99)) == "None");
}

// torch.load stops at a tensor that _rebuild_tensor_v3 is to make with a gradient.
TEST_CASE("a tensor without a storage class that requires grad is written as a Parameter") {
  Outputs outputs;
  outputs.tensors.push_back(whole_tensor("w", Dtype::kFloat8E4m3fn, {5}));
  outputs.tensors.push_back(whole_tensor("v", Dtype::kFloat32, {1}));
  outputs.tensors.push_back(whole_tensor("frozen", Dtype::kFloat8E5m2, {1}));
  outputs.tensors[0].requires_grad = outputs.tensors[1].requires_grad = true;
  auto made =
      written(kTorchFileWriter, outputs, {rising_bytes(5, 1), rising_bytes(4, 1), Bytes(1)});
  CHECK(made->opening_findings().empty());
  CHECK(made->requires_grad(*made->find("w")));
  CHECK(made->dtype(*made->find("w")) == Dtype::kFloat8E4m3fn);
  auto state = open_state(*made->directory(), "model.pt");
  REQUIRE(state.has_value());
  auto forms = state_forms(state->tree, "model.pt");
  REQUIRE(forms.has_value());
  CHECK(forms->parameters == StateForms::Paths{{"w"}});
}

TEST_CASE("keys that were numbers and parameters are that in the file that is made of theirs") {
  auto source = open_checkpoint(torch_file_path("training.pt"));
  REQUIRE(source.has_value());
  std::vector<Bytes> bytes;
  Outputs outputs = whole_outputs(**source, bytes);
  std::erase_if(outputs.objects, [](const OutputObject& object) { return object.plain.empty(); });
  auto made = written(kTorchFileWriter, outputs, bytes);
  CHECK(values_by_name(*made) == values_by_name(**source));
  auto forms_in = [](const Directory& directory, const std::string& file) {
    auto state = open_state(directory, file);
    REQUIRE(state.has_value());
    auto forms = state_forms(state->tree, file);
    REQUIRE(forms.has_value());
    return *forms;
  };
  const StateForms forms = forms_in(*made->directory(), "model.pt");
  const StateForms before = forms_in(*(*source)->directory(), (*source)->file(FileId{0}).path);
  CHECK(forms.numbers.contains({"optimizer", "state", "0"}));
  CHECK(forms.numbers == before.numbers);
  CHECK_FALSE(forms.parameters.empty());
  CHECK(forms.ordered == before.ordered);
  CHECK(forms.parameters == before.parameters);
}

TEST_CASE("healthy checkpoints become one file and a checkpoint of many again") {
  std::size_t objects = 0;
  for (const std::string& folder : fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto source = open_checkpoint(folder + "/ckpt");
    REQUIRE(source.has_value());
    std::vector<Bytes> bytes;
    Outputs outputs = whole_outputs(**source, bytes);
    auto laid_out = kTorchFileWriter.lay_out(outputs);
    if (!laid_out) {  // has classes, or elements that need scales
      CHECK(laid_out.error().kind == ErrorKind::kUnsupported);
      continue;
    }
    auto file = written(kTorchFileWriter, outputs, bytes);
    CHECK(file->opening_findings().empty());
    CHECK(values_by_name(*file) == values_by_name(**source));
    std::vector<Bytes> again;
    Outputs back = whole_outputs(*file, again);
    auto dcp = written(*format_named("dcp").writer, back, again);
    CHECK(values_by_name(*dcp) == values_by_name(**source));
    for (std::size_t i = 0; i < (*source)->objects().size(); ++i) {
      std::size_t there = object_named(*dcp, (*source)->objects()[i].fqn);
      CHECK(*read_plain_opcodes(*dcp, there) == *read_plain_opcodes(**source, i));
      auto path = dcp->object_path(there), was = (*source)->object_path(i);
      CHECK(std::vector<PathPart>(path.begin(), path.end()) ==
            std::vector<PathPart>(was.begin(), was.end()));
      ++objects;
    }
  }
  CHECK(objects > 20);
}

TEST_CASE("entries that contradict each other and all that cannot be said are refused by name") {
  auto refused = [](Outputs outputs) {
    auto laid_out = kTorchFileWriter.lay_out(outputs);
    REQUIRE_FALSE(laid_out.has_value());
    CHECK(laid_out.error().kind == ErrorKind::kUnsupported);
    return laid_out.error();
  };
  auto pair = [](std::vector<PathPart> a, std::vector<PathPart> b) {
    Outputs outputs;
    outputs.tensors.push_back(whole_tensor("a", Dtype::kInt8, {1}, std::move(a)));
    outputs.tensors.push_back(whole_tensor("b", Dtype::kInt8, {1}, std::move(b)));
    return outputs;
  };
  CHECK(refused(pair({"x"}, {"x"})).place.tensor == "b");
  CHECK(refused(pair({"x"}, {"x", "y"})).place.tensor == "b");
  CHECK(refused(pair({"x", "y"}, {"x"})).place.tensor == "b");
  CHECK(refused(pair({"x", std::int64_t{0}}, {"x", "y"})).place.tensor == "b");
  CHECK(refused(pair({"x", std::int64_t{0}}, {"x", std::int64_t{-1}})).place.tensor == "b");
  CHECK(refused(pair({"x", std::int64_t{0}}, {"x", std::int64_t{1} << 40})).message.find("gaps") !=
        std::string::npos);
  CHECK(refused(pair({"y"}, std::vector<PathPart>(200, "x"))).message.find("deep") !=
        std::string::npos);
  CHECK(kTorchFileWriter.lay_out(pair({"x", "y"}, {"x", std::int64_t{0}})).has_value());

  Outputs outputs = pair({"a"}, {"b"});
  outputs.tensors.push_back(whole_tensor("coded", Dtype::kQint8, {1}));
  outputs.tensors[0].tiles = {OutputTile{{{0}, {0}}, 0}};
  outputs.objects.push_back({.fqn = "thing"});
  std::string message = refused(outputs).message;
  for (const char* name : {"a (", "coded (qint8)", "thing ("})
    CHECK(message.find(name) != std::string::npos);
  CHECK(message.find("b (") == std::string::npos);

  Outputs kept = pair({"a"}, {"b"});
  OutputTile tile = kept.tensors[1].tiles[0];
  tile.kept = ChunkId{0};
  kept.tensors[1].tiles = {tile};
  CHECK(refused(kept).place.tensor == "b");
  CHECK_FALSE(refused(kept).advice.empty());

  Outputs none = pair({"a"}, {"b"});
  auto laid_out = kTorchFileWriter.lay_out(none);
  CHECK_FALSE(kTorchFileWriter.seal_file(none, *laid_out, 0, {}).has_value());
}

// torch saves such entries with flatten_state_dict=False.
TEST_CASE("a dict that is one entry is written as it is and read as one entry again") {
  using namespace std::string_literals;
  const std::string dict = "}X\x04\0\0\0lastK\x03s"s;
  Outputs outputs;
  std::vector<Bytes> bytes{Bytes(1)};
  outputs.tensors.push_back(whole_tensor("w", Dtype::kInt8, {1}));
  outputs.objects.push_back({.fqn = "empty", .path = {"empty"}, .plain = "}"});
  outputs.objects.push_back({.fqn = "list",
                             .path = {"list"},
                             .plain = "]K\x01"
                                      "a"});
  outputs.objects.push_back({.fqn = "tuple", .path = {"tuple"}, .plain = "(" + dict + "t"});
  auto plain = written(kTorchFileWriter, outputs, bytes);
  CHECK(names_of(*plain) == "w | empty list tuple");
  auto whole_of = [](const Checkpoint& checkpoint) {
    return open_state(*checkpoint.directory(), "model.pt")->whole;
  };
  CHECK(whole_of(*plain).empty());
  outputs.objects.push_back({.fqn = "scheduler", .path = {"scheduler"}, .plain = dict});
  outputs.objects.push_back({.fqn = "groups", .path = {"groups"}, .plain = "]" + dict + "a"});
  auto made = written(kTorchFileWriter, outputs, bytes);
  CHECK(names_of(*made) == "w | empty list tuple scheduler groups");
  CHECK(whole_of(*made) == std::set<std::string>{"groups", "scheduler"});
  CHECK(to_text(*find(*read_plain_value(*made, object_named(*made, "scheduler"), 4096), "last")) ==
        "3");
  // A key inside one entry has the name of another entry.
  outputs.objects.push_back({.fqn = "scheduler.last", .path = {"scheduler.last"}, .plain = "N"});
  auto both = written(kTorchFileWriter, outputs, bytes);
  CHECK(names_of(*both) == "w | empty list tuple scheduler groups scheduler.last");
}

TEST_CASE("tensors and files beyond 4 GiB are written and read") {
  Outputs outputs;
  outputs.tensors.push_back(whole_tensor("huge", Dtype::kFloat32, {std::int64_t{5} << 28}));
  outputs.tensors.push_back(whole_tensor("far", Dtype::kFloat32, {3}));
  outputs.tensors.push_back(whole_tensor("more", Dtype::kUint8, {std::int64_t{5} << 30}));
  auto source = hollow_file(outputs);
  CHECK(source->size() > std::uint64_t{10} << 30);
  auto zip = ZipReader::open(source, 0, source->size());
  REQUIRE_MESSAGE(zip.has_value(), zip.error().message);
  for (const ZipEntry& entry : zip->entries()) CHECK(zip->crc_of(entry, nullptr) == entry.crc);
  auto opened = open_checkpoint(std::make_shared<OneSource>(source));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK((*opened)->opening_findings().empty());
  REQUIRE((*opened)->tensor_count() == 3);
  for (std::uint32_t c = 0; c < 3; ++c) {
    auto header = read_item_header(**opened, ChunkId{c});
    REQUIRE(header.has_value());
    CHECK(header->payload_offset % 64 == 0);
    CHECK(header->payload_crc.has_value());
    CHECK(check_item_data(**opened, ChunkId{c}, nullptr)->crc == DataCheck::Crc::kMatches);
  }
}

TEST_CASE("a file holds more tensors than zip without zip64 can count") {
  constexpr std::uint32_t kMany = 66'000;
  Outputs outputs;
  for (std::uint32_t i = 0; i < kMany; ++i)
    outputs.tensors.push_back(whole_tensor("t" + std::to_string(i), Dtype::kInt8, {1}));
  auto made = written(kTorchFileWriter, outputs, std::vector<Bytes>(kMany, rising_bytes(1, 7)));
  CHECK(made->opening_findings().empty());
  REQUIRE(made->tensor_count() == kMany);
  CHECK(read_tensor(*made, *made->find("t65999"))->bytes == rising_bytes(1, 7));
}

TEST_CASE("what repairs filled goes into the file and comes out of it") {
  Outputs outputs;
  outputs.tensors.push_back(whole_tensor("w", Dtype::kInt8, {1}));
  outputs.filled = {"w"};
  outputs.filled_text = [](const std::vector<std::string>& fqns) { return "filled " + fqns[0]; };
  auto made = written(kTorchFileWriter, outputs, {rising_bytes(1, 7)});
  const auto& attributes = made->provenance().plain_attributes;
  REQUIRE(attributes.size() == 1);
  CHECK(attributes[0].first == "shardwright_filled");
  CHECK(attributes[0].second == pickled_text("filled w"));
}

TEST_CASE("attributes of an OrderedDict and of tensors are copied where they are data") {
  const std::string ordered = "ccollections\nOrderedDict\n)R", call = tensor_call({});
  const std::string function = "ctorch._utils\n_rebuild_tensor_v2\n";
  const std::string arguments = call.substr(function.size(), call.size() - function.size() - 1);
  const std::string tagged = pickled_dict({{"tag", "K\1"}, {"names", "](K\2K\3e"}});
  const std::string versions = pickled_dict(
      {{"_metadata", ordered + "(" + pickled_text("") + pickled_dict({{"version", "K\1"}}) + "u"}});
  auto file_of = [&](const std::string& attributes) {
    const std::string typed = "ctorch._tensor\n_rebuild_from_type_v2\n(" + function +
                              "ctorch\nTensor\n" + arguments + attributes + "tR";
    const std::string parameter = "ctorch._utils\n_rebuild_parameter_with_state\n(" + call +
                                  "\x88" + ordered + attributes + "tR";
    const std::string items = pickled_text("plain") + call + pickled_text("typed") + typed +
                              pickled_text("parameter") + parameter + pickled_text("empty") +
                              ordered + versions + "b";
    return state_dict_file(ordered + "(" + items + "u" + versions + "b",
                           {{"m/data/0", std::string(24, '\1')}});
  };
  auto forms_in = [](const Checkpoint& checkpoint) {
    auto state = open_state(*checkpoint.directory(), "model.pt");
    REQUIRE(state.has_value());
    auto forms = state_forms(state->tree, "model.pt");
    REQUIRE(forms.has_value());
    return *forms;
  };
  auto source = open_model(file_of(tagged));
  REQUIRE_MESSAGE(source.has_value(), source.error().message);
  std::vector<Bytes> bytes;
  Outputs outputs = whole_outputs(**source, bytes);
  auto made = written(kTorchFileWriter, outputs, bytes);
  CHECK(made->opening_findings().empty());
  CHECK(values_by_name(*made) == values_by_name(**source));
  const StateForms before = forms_in(**source), after = forms_in(*made);
  CHECK(before.attributes.size() == 4);
  CHECK(before.attributes == after.attributes);
  CHECK(before.ordered == after.ordered);
  CHECK(before.ordered.contains({"empty"}));
  CHECK(before.parameters == after.parameters);

  const std::string thing = pickled_dict({{"tag", "cargparse\nNamespace\n)\x81"}});
  auto other = open_model(file_of(thing));
  REQUIRE(other.has_value());
  bytes.clear();
  outputs = whole_outputs(**other, bytes);
  auto refused = kTorchFileWriter.lay_out(outputs);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("typed (argparse.Namespace)") != std::string::npos);
}

TEST_CASE("keys that are True, False or None are that in the file that is made of theirs") {
  const std::string call = tensor_call({});
  const std::string value = "}(\x88" + call + "\x89}(N" + call + "u" + pickled_text("text") + "}(" +
                            pickled_text("True") + call + "uu";
  auto source = open_model(state_dict_file(value, {{"m/data/0", std::string(24, '\1')}}));
  REQUIRE_MESSAGE(source.has_value(), source.error().message);
  std::vector<Bytes> bytes;
  Outputs outputs = whole_outputs(**source, bytes);
  auto made = written(kTorchFileWriter, outputs, bytes);
  auto state = open_state(*made->directory(), "model.pt");
  REQUIRE(state.has_value());
  const PickleTree& tree = state->tree;
  auto root = tree.items(tree.root());
  REQUIRE(root.size() == 6);
  CHECK(tree.kind(root[0]) == NodeKind::kBool);
  CHECK(*tree.integer(root[0]) == 1);
  CHECK(tree.kind(root[2]) == NodeKind::kBool);
  CHECK(*tree.integer(root[2]) == 0);
  CHECK(tree.kind(tree.items(root[3])[0]) == NodeKind::kNone);
  CHECK(tree.text(tree.items(root[5])[0]) == "True");
}

TEST_CASE("keys that are floats or tuples are that in the file that is made of theirs") {
  const std::string call = tensor_call({});
  const std::string half = std::string("G\x3f\xe0", 3) + std::string(6, '\0');
  const std::string pair = "(K\1" + pickled_text("a") + "t";
  const std::string value = "}(" + half + call + pair + "}(" + pickled_text("inner") + call + "u" +
                            pickled_text("0.5 ") + call + "u";
  auto source = open_model(state_dict_file(value, {{"m/data/0", std::string(24, '\1')}}));
  REQUIRE_MESSAGE(source.has_value(), source.error().message);
  CHECK(names_of(**source) == "0.5 (1, 'a').inner 0.5  |");
  std::vector<Bytes> bytes;
  Outputs outputs = whole_outputs(**source, bytes);
  auto made = written(kTorchFileWriter, outputs, bytes);
  auto state = open_state(*made->directory(), "model.pt");
  REQUIRE(state.has_value());
  const PickleTree& tree = state->tree;
  auto root = tree.items(tree.root());
  REQUIRE(root.size() == 6);
  CHECK(tree.real(root[0]) == 0.5);
  REQUIRE(tree.kind(root[2]) == NodeKind::kTuple);
  CHECK(tree.integer(tree.items(root[2])[0]) == 1);
  CHECK(tree.text(root[4]) == "0.5 ");
}
