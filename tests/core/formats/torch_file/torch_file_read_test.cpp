#include "core/formats/torch_file/torch_file.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/fixtures.h"
#include "core/formats/items/item_check.h"
#include "core/formats/torch_file/torch_file_support.h"
#include "core/model/reachable.h"
#include "core/tensor/strided_copy.h"

using namespace shw;
using namespace shw::test;

namespace {

// A list of pickled values.
std::string pickled_list(const std::string& values) {
  return "](" + values + "e";
}

const std::string kPayload(24, '\1');
const ZipRecord kStorage{"m/data/0", kPayload};

Error error_of_model(const std::string& bytes) {
  auto opened = open_model(bytes);
  REQUIRE_FALSE(opened.has_value());
  return opened.error();
}

}  // namespace

TEST_CASE("a file that torch saved holds what training held, whatever its strides") {
  auto opened = open_checkpoint(torch_file_path("model.pt"));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const Checkpoint& c = **opened;
  CHECK(c.format().name == "torch");
  CHECK(c.opening_findings().empty());
  CHECK(c.objects().empty());
  auto truth = read_truth(torch_file_path("truth.safetensors"));
  REQUIRE(truth.has_value());
  std::size_t compared = 0;
  for (const auto& [fqn, wanted] : *truth) {
    auto tensor = c.find(fqn);
    if (!tensor) continue;
    CAPTURE(fqn);
    auto values = read_tensor(c, *tensor);
    REQUIRE_MESSAGE(values.has_value(), values.error().message);
    CHECK(values->dtype == wanted.dtype);
    CHECK(values->shape == wanted.shape);
    CHECK(values->bytes == wanted.bytes);
    auto header = read_item_header(c, c.chunks(*tensor)[0]);
    CHECK(header->payload_crc.has_value() == (header->payload_length != 0));
    CHECK(check_item_data(c, c.chunks(*tensor)[0], nullptr)->crc == DataCheck::Crc::kMatches);
    ++compared;
  }
  CHECK(compared == 14);
  auto storage = [&](const char* fqn) { return c.storage(c.chunks(*c.find(fqn))[0]); };
  CHECK(storage("tied.a") == storage("tied.b"));
  CHECK(storage("slice") == storage("base"));
  CHECK(storage("base") != storage("tied.a"));
  auto slice = c.view(c.chunks(*c.find("slice"))[0]);
  REQUIRE(slice.has_value());
  CHECK(slice->offset == 5);
}

TEST_CASE("nested dicts and lists have the names that torch gives them") {
  auto opened = open_checkpoint(torch_file_path("training.pt"));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const Checkpoint& c = **opened;
  CHECK(c.requires_grad(*c.find("param")));
  CHECK_FALSE(c.requires_grad(*c.find("model.f32")));
  auto path = c.path(*c.find("optimizer.state.0.exp_avg"));
  REQUIRE(path.size() == 4);
  CHECK(path[2] == PathPart("0"));
  std::size_t lr = object_named(c, "optimizer.param_groups.0.lr");
  CHECK(c.object_path(lr)[2] == PathPart(std::int64_t{0}));
  CHECK(to_text(*read_plain_value(c, lr, 4096)) == "0.001");
  CHECK(to_text(*read_plain_value(c, object_named(c, "optimizer.param_groups.0.betas"), 4096)) ==
        "(0.9, 0.95)");
  CHECK(to_text(*read_plain_value(c, object_named(c, "epoch"), 4096)) == "3");
  // An object of a class is refused, not replaced by anything.
  std::size_t args = object_named(c, "args");
  CHECK(read_plain_value(c, args, 4096)->kind == PlainValue::Kind::kOther);
  auto opcodes = read_plain_opcodes(c, args);
  REQUIRE_FALSE(opcodes.has_value());
  CHECK(opcodes.error().message.find("argparse.Namespace") != std::string::npos);
  CHECK(opcodes.error().place.tensor == "args");
}

TEST_CASE("a list is taken apart where a tensor or a dict is in it, a tuple never") {
  const std::string tensor = tensor_call({}), one = "K\1";
  struct Case {
    std::string value, names;
  };
  const Case cases[] = {
      {pickled_dict({{"a", tensor}, {"b", pickled_dict({{"c", one}})}}), "a | b.c"},
      {pickled_dict({{"l", pickled_list(one + one)}}), "| l"},
      {pickled_dict({{"l", pickled_list(one + tensor)}}), "l.1 | l.0"},
      {pickled_dict({{"l", pickled_list(one + pickled_list(pickled_list(tensor)))}}),
       "l.1.0.0 | l.0"},
      {pickled_dict({{"l", pickled_list(one + pickled_list(pickled_dict({})))}}), "| l.0 l.1.0"},
      {pickled_dict({{"t", "(" + one + tensor + "t"}}), "| t"},
      {pickled_dict({{"l", pickled_list("(" + tensor + "t")}}), "| l"},
      {pickled_dict({{"e", "}"}, {"o", "ccollections\nOrderedDict\n)R"}}), "| e o"},
      {"ccollections\nOrderedDict\n)R(" + pickled_text("a") + tensor + "u}" +
           pickled_text("_metadata") + "}sb",
       "a |"},
      {"}(K\7" + tensor + "N" + one + "\x88" + one + "u", "7 | None True"},
      // The last of two equal keys counts.
      {pickled_dict({{"a", one}, {"a", tensor}}), "a |"},
  };
  for (const Case& one_case : cases) {
    CAPTURE(one_case.names);
    auto opened = open_model(state_dict_file(one_case.value, {kStorage}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->opening_findings().empty());
    CHECK(names_of(**opened) == one_case.names);
  }
}

TEST_CASE("what is not a state dict is refused by name") {
  CHECK(error_of_model("").kind == ErrorKind::kUnsupported);  // told by the folder
  const std::string tensor = tensor_call({});
  const std::pair<std::string, std::string> cases[] = {
      {"K\1", "no dict"},
      {pickled_list("K\1"), "no dict"},
      {"cmine\nThing\n)\x81", "an object of mine.Thing"},
      {"}(cmine\nKey\n" + tensor + "u", "neither text nor"},
      {pickled_dict({{"a.b", tensor}, {"a", pickled_dict({{"b", tensor}})}}),
       "same flattened name"},
      {"}(K\1" + tensor + pickled_text("1") + tensor + "u", "same flattened name"},
      {"}q" + std::string(1, '\0') + pickled_text("a") + "h" + std::string(1, '\0') + "s",
       "too complex"},
  };
  for (const auto& [value, part] : cases) {
    CAPTURE(part);
    Error error = error_of_model(state_dict_file(value, {kStorage}));
    CHECK(error.kind == ErrorKind::kUnsupported);
    CHECK(error.message.find(part) != std::string::npos);
    CHECK(error.place.file == "model.pt");
    CHECK(error.place.offset.has_value());
  }
}

TEST_CASE("a tensor that is not a plain one stays in the list and leaves a check undecided") {
  const std::string sparse = "ctorch._utils\n_rebuild_sparse_tensor\n(NtR";
  const std::string conjugate = tensor_call({.storage_class = "torch\nComplexFloatStorage\n",
                                             .count = 3,
                                             .sizes = {3},
                                             .strides = {1},
                                             .more = flags("conj")});
  auto opened = open_model(state_dict_file(
      pickled_dict({{"a", tensor_call({})}, {"s", sparse}, {"t", sparse}, {"c", conjugate}}),
      {kStorage}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const Checkpoint& c = **opened;
  CHECK(names_of(c) == "a | s t c");
  REQUIRE(c.opening_findings().size() == 2);
  for (const Finding& finding : c.opening_findings()) {
    CHECK(finding.rule == "not-looked-at");
    bool about_sparse = finding.subjects.size() == 2;
    CHECK(finding.cause.find(about_sparse ? "_rebuild_sparse_tensor" : "conjugate") !=
          std::string::npos);
  }
  auto opcodes = read_plain_opcodes(c, 0);
  REQUIRE_FALSE(opcodes.has_value());
  CHECK(opcodes.error().message.find("_rebuild_sparse_tensor") != std::string::npos);
}

TEST_CASE("a tensor whose record is gone or too short is reported with the others left readable") {
  auto value = pickled_dict({{"a", tensor_call({})}, {"b", tensor_call({.key = "1"})}});
  for (const std::vector<ZipRecord>& records :
       {std::vector<ZipRecord>{kStorage}, {kStorage, {"m/data/1", std::string(20, '\2')}}}) {
    auto opened = open_model(state_dict_file(value, records));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    REQUIRE((*opened)->opening_findings().size() == 1);
    const Finding& finding = (*opened)->opening_findings()[0];
    CHECK(finding.rule == "bad-record");
    CHECK(finding.subjects == std::vector<std::string>{"b"});
    CHECK(read_tensor(**opened, *(*opened)->find("a"))->bytes == to_bytes(kPayload));
    CHECK_FALSE(read_tensor(**opened, *(*opened)->find("b")).has_value());
  }
}

TEST_CASE("checksums are those of the descriptors, or of the directory where there are none") {
  auto value = pickled_dict({{"a", tensor_call({})}});
  auto check_of = [&](const std::string& bytes) {
    auto opened = open_model(bytes);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    auto check = check_item_data(**opened, ChunkId{0}, nullptr);
    REQUIRE_MESSAGE(check.has_value(), check.error().message);
    return *check;
  };
  std::string plain = state_dict_file(value, {kStorage});
  CHECK(check_of(plain).crc == DataCheck::Crc::kMatches);
  std::string bent = plain;
  bent[bent.find(kPayload) + 3] ^= 1;
  DataCheck check = check_of(bent);
  CHECK(check.crc == DataCheck::Crc::kDiffers);
  CHECK(check.record == "m/data/0");
  CHECK(check.record_length == 24);
}

TEST_CASE("a file of a big-endian machine is read") {
  std::string payload;
  for (char i = 0; i < 6; ++i) payload += std::string("\x3f\x80\x00", 3) + i;  // 1.0 and a bit more
  auto opened = open_model(state_dict_file(pickled_dict({{"a", tensor_call({})}}),
                                           {{"m/data/0", payload}, {"m/byteorder", "big"}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto values = read_tensor(**opened, TensorId{0});
  REQUIRE(values.has_value());
  CHECK(values->bytes[4] == std::byte{1});
  CHECK(values->bytes[7] == std::byte{0x3f});
  CHECK(read_item_header(**opened, ChunkId{0})->big_endian);
}

TEST_CASE("keys of the root that are floats or tuples have the names that Python gives them") {
  auto float_key = [](double value) {
    std::string bytes = "G";
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 7; i >= 0; --i) bytes += static_cast<char>((bits >> (8 * i)) & 0xFF);
    return bytes;
  };
  auto dict_of = [](const std::vector<std::string>& keys) {
    std::string out = "}(";
    for (const std::string& key : keys) out += key + tensor_call({});
    return out + "u";
  };
  auto opened = open_model(state_dict_file(
      dict_of({float_key(0.5), float_key(1e16), float_key(-2), float_key(1e-7),
               float_key(std::numeric_limits<double>::infinity()), "(K\1" + pickled_text("a") + "t",
               "(Nt", ")", "(" + float_key(3) + "\x88t"}),
      {kStorage}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "0.5 1e+16 -2.0 1e-07 inf (1, 'a') (None,) () (3.0, True) |");
  // Two NaN are two keys, and a class name does not become an entry's name.
  for (const std::string& key :
       {float_key(std::numeric_limits<double>::quiet_NaN()), std::string("cmine\nKey\n"),
        "(" + pickled_text("it's") + "t", std::string("((K\1tt")}) {
    auto refused = open_model(state_dict_file(dict_of({key}), {kStorage}));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find("neither text nor a number") != std::string::npos);
  }
}

TEST_CASE("a folder is a checkpoint of torch.save where one file in it is one") {
  Bytes model = to_bytes(state_dict_file(pickled_dict({{"a", tensor_call({})}}), {kStorage}));
  auto open_folder = [&](std::vector<std::pair<std::string, Bytes>> files) {
    return open_checkpoint(memory_directory("ckpt", std::move(files)));
  };
  auto alone = open_folder({{"pytorch_model.bin", model}, {"config.json", to_bytes("{}")}});
  REQUIRE_MESSAGE(alone.has_value(), alone.error().message);
  CHECK((*alone)->format().name == "torch");
  // The only file in a subfolder is opened, and a note names it.
  auto below = open_folder({{"step/a.pt", model}});
  REQUIRE_MESSAGE(below.has_value(), below.error().message);
  const auto& notes = (*below)->opening_findings();
  CHECK(std::any_of(notes.begin(), notes.end(), [](const Finding& note) {
    return note.cause.find("Opened step") != std::string::npos;
  }));
  // One rank's part of another format is not taken for the whole.
  auto rank = open_folder({{"mp_rank_00_model_states.pt", model}});
  REQUIRE_FALSE(rank.has_value());
  CHECK(rank.error().message.find("DeepSpeed") != std::string::npos);
}

TEST_CASE("a model next to what its training leaves is the one that its name says") {
  Bytes model = to_bytes(state_dict_file(pickled_dict({{"a", tensor_call({})}}), {kStorage}));
  Bytes arguments = to_bytes(state_dict_file(pickled_dict({{"seed", "K\1"}})));
  // For the form before zip, only its first pickle.
  Bytes cut = to_bytes(std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."));
  auto open_to_compare = [&](const char* name, const Bytes& bytes) {
    return open_checkpoint(
        memory_directory("ckpt", {{name, bytes}, {"training_args.bin", arguments}}));
  };
  for (const char* name : {"pytorch_model.bin", "adapter_model.bin"}) {
    auto opened = open_to_compare(name, model);
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK((*opened)->find("a").has_value());
  }
  // The other file does not replace the unreadable model.
  auto old = open_to_compare("pytorch_model.bin", cut);
  REQUIRE_FALSE(old.has_value());
  CHECK(old.error().place.file == "pytorch_model.bin");
}

TEST_CASE("the only file of a folder is reported as what it is, and not as several") {
  auto message_of = [](const char* name, const std::string& bytes) {
    auto opened = open_checkpoint(memory_directory("ckpt", {{name, to_bytes(bytes)}}));
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().place.file == name);
    CHECK(opened.error().message.find("several") == std::string::npos);
    return opened.error().message;
  };
  auto says = [](const std::string& message, const char* words) {
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  says(message_of("model.pt", ""), "is empty");
  says(message_of("model.pt", std::string(600, '\0')), "zero bytes");
  says(message_of("pytorch_model.bin", "\n <!DOCTYPE html><html>404"), "web page");
  says(message_of("model.pt", "\x1f\x8b\x08 and more"), "gzip");
  says(message_of("ggml.bin", "lmgg\1\0\0\0"), "GGML");
  says(message_of("model.pt", std::string(257, 'x') + "ustar"), "tar archive");
  says(message_of("model.safetensors", "<html><body>Not found</body></html>"), "web page");
  says(message_of("model.safetensors", R"({"error":"Repository not found"})"), "JSON");
}

TEST_CASE("an archive of torch.save that is not a state dict is reported as what it holds") {
  auto message_of = [](const std::string& pickle, std::vector<ZipRecord> more = {}) {
    auto opened = open_model(state_dict_file(pickle, std::move(more)));
    REQUIRE_FALSE(opened.has_value());
    return opened.error().message;
  };
  auto is_said = [&](const std::string& message, const char* words) {
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  is_said(message_of("]"), "a list");
  is_said(message_of("cmymodel\nNet\n)\x81}b"), "object of mymodel.Net");
  is_said(message_of("cmymodel\nNet\n)\x81}b", {{"m/constants.pkl", "\x80\x02)."}}),
          "object of mymodel.Net");
}

TEST_CASE("what a program put into a file is reported as what it is") {
  auto severity = [](const std::string& value) {
    auto opened = open_model(state_dict_file(pickled_dict({{"x", value}})));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    REQUIRE((*opened)->opening_findings().size() == 1);
    CHECK((*opened)->opening_findings()[0].rule == "unsafe-pickle");
    return (*opened)->opening_findings()[0].severity;
  };
  CHECK(severity("cmymodel.config\nConfig\n)\x81") == Severity::kInfo);
  CHECK(severity("cmymodel.config\nmake_config\n)R") == Severity::kWarning);
  CHECK(severity("cposix\nsystem\n" + pickled_text("id") + "\x85R") == Severity::kError);
}

TEST_CASE("a storage of a class that torch does not have is damage, whatever its name ends in") {
  auto opened = open_model(state_dict_file(
      pickled_dict({{"a", tensor_call({})}, {"b", tensor_call({"tor\nFloatStorage\n"})}}),
      {kStorage}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto findings = (*opened)->opening_findings();
  auto told = std::find_if(findings.begin(), findings.end(),
                           [](const Finding& finding) { return finding.rule == "bad-record"; });
  REQUIRE(told != findings.end());
  CHECK(told->severity == Severity::kError);
  CHECK(told->subjects == std::vector<std::string>{"b"});
  CHECK(told->cause.find("tor.FloatStorage") != std::string::npos);
  auto elsewhere = open_model(state_dict_file(
      pickled_dict({{"a", tensor_call({"torch.cuda\nFloatStorage\n"})}}), {kStorage}));
  REQUIRE_MESSAGE(elsewhere.has_value(), elsewhere.error().message);
  CHECK((*elsewhere)->find("a").has_value());
}

TEST_CASE("a compressed pickle that would grow a hundredfold is refused before it is read") {
  // The directory states the expanded size, so the 205 KB are never expanded.
  const std::string small = as_pickle("}");
  ZipRecord bomb{"m/data.pkl", std::string(4096, 'x'), true, std::uint64_t{200} << 20};
  auto opened = open_model(make_zip({bomb, {"m/version", "3\n"}}));
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find("would expand to 209715200") != std::string::npos);
  CHECK(opened.error().place.file == "model.pt");
  // Real pickles are compressed to a third.
  CHECK(open_model(make_zip({{"m/data.pkl", small, true}, {"m/version", "3\n"}})).has_value());
}

TEST_CASE("a file in a form that torch.load does not open is damaged") {
  auto causes = [](const std::vector<ZipRecord>& more, const std::string& version) {
    std::vector<ZipRecord> records{{"m/data.pkl", as_pickle("}")}, {"m/version", version}};
    records.insert(records.end(), more.begin(), more.end());
    auto opened = open_model(make_zip(records));
    REQUIRE(opened.has_value());
    std::string text;
    for (const Finding& finding : (*opened)->opening_findings()) text += finding.cause;
    return text;
  };
  CHECK(causes({}, "3\n").empty());
  CHECK(causes({}, "99\n").find("version") != std::string::npos);
  CHECK(causes({}, "abc").find("version") != std::string::npos);
  CHECK(causes({{"other/x", "x"}}, "3\n").find("outside of the folder m/") != std::string::npos);
  CHECK(causes({{"m/constants.pkl", "x"}}, "3\n").find("constants.pkl") != std::string::npos);
}

// torch 2.6 and 2.15 save such a tensor, and stop at it when they load.
TEST_CASE("a tensor that torch saves and cannot make again is reported, and read all the same") {
  auto file_with = [](bool requires_grad, bool is_parameter) {
    TensorText text{
        "torch.storage\nUntypedStorage\n", 4, 0, {4}, {1}, "torch._utils\n_rebuild_tensor_v3\n",
        "ctorch\nfloat8_e4m3fn\n"};
    std::string call = tensor_call(text);
    if (requires_grad) call[call.rfind('\x89')] = '\x88';
    if (is_parameter)
      call = "ctorch._utils\n_rebuild_parameter\n(" + call + "\x88" +
             "ccollections\nOrderedDict\n)RtR";
    return state_dict_file(pickled_dict({{"w", call}}), {{"m/data/0", "abcd"}});
  };
  auto stops = open_model(file_with(true, false));
  REQUIRE_MESSAGE(stops.has_value(), stops.error().message);
  REQUIRE((*stops)->opening_findings().size() == 1);
  const Finding& finding = (*stops)->opening_findings()[0];
  CHECK(finding.severity == Severity::kWarning);
  CHECK(finding.subjects == std::vector<std::string>{"w"});
  CHECK(finding.cause.find("torch.load fails at w in model.pt") != std::string::npos);
  CHECK(values_by_name(**stops)["w"] == to_bytes("abcd"));
  for (bool is_parameter : {false, true}) {
    auto loads = open_model(file_with(false, is_parameter));
    REQUIRE(loads.has_value());
    CHECK((*loads)->opening_findings().empty());
    CHECK((*loads)->requires_grad(*(*loads)->find("w")) == is_parameter);
  }
}

// torch 2.6 and 2.15: "don't know how to restore data location", "Invalid device string".
TEST_CASE("a device that torch does not know is reported, and one that a package adds is named") {
  auto findings_on = [](const std::string& device) {
    std::string call = tensor_call({});
    const std::string cpu = pickled_text("cpu");
    call.replace(call.find(cpu), cpu.size(), pickled_text(device));
    auto opened = open_model(
        state_dict_file(pickled_dict({{"w", call}}), {{"m/data/0", std::string(24, '\1')}}));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    CHECK(values_by_name(**opened)["w"] == Bytes(24, std::byte{1}));
    const auto findings = (*opened)->opening_findings();
    return std::vector<Finding>(findings.begin(), findings.end());
  };
  for (const char* known : {"cpu", "cuda", "cuda:0", "cuda:15", "mps", "meta", "hpu:1", "xpu:2",
                            "mtia:0", "privateuseone:0"}) {
    CAPTURE(known);
    CHECK(findings_on(known).empty());
  }
  for (const char* unknown : {"bpu", "cud", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:01", ""}) {
    CAPTURE(unknown);
    auto findings = findings_on(unknown);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == Severity::kWarning);
    CHECK(findings[0].cause.find("\"" + std::string(unknown) + "\"") != std::string::npos);
    CHECK(findings[0].cause.find("map_location=\"cpu\"") != std::string::npos);
  }
  auto of_package = findings_on("npu:0");
  REQUIRE(of_package.size() == 1);
  CHECK(of_package[0].severity == Severity::kInfo);
}

TEST_CASE("a record that somebody compressed is reported with what mends it, in a conversion too") {
  auto opened = open_model(state_dict_file(pickled_dict({{"w", tensor_call({})}}),
                                           {{"m/data/0", std::string(24, '\1'), true}}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  const auto findings = (*opened)->opening_findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].cause.find("zipped again") != std::string::npos);
  Status reached = check_all_reachable(**opened);
  REQUIRE_FALSE(reached.has_value());
  CHECK(reached.error().message.find("zipped again") != std::string::npos);
  CHECK(reached.error().place.tensor == "w");
}

TEST_CASE("a mapping below with keys that are not names is one entry, and the rest is read") {
  const std::string odd = "}(ccollections\nOrderedDict\n" + tensor_call({}) + "u";
  const std::string tuple = "}(K\1K\2\x86K\3u";
  auto opened = open_model(state_dict_file(
      pickled_dict({{"callbacks", odd}, {"w", tensor_call({})}, {"by_pair", tuple}}), {kStorage}));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  CHECK(names_of(**opened) == "w | callbacks by_pair");
  CHECK_FALSE(open_model(state_dict_file(odd, {kStorage})).has_value());
  // Values with a text form are still split at the root, if there is nothing else.
  auto root = open_model(state_dict_file(tuple));
  REQUIRE(root.has_value());
  CHECK(names_of(**root) == "| (1, 2)");
}
