// Entries beyond plain data that are converted into another format and back.
#include <doctest/doctest.h>

#include "core/formats/carried_values.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/repair/proof/verify.h"
#include "core/temporary_folder.h"
#include "core/verbs/transforms.h"

using namespace shw;
using namespace shw::test;
using namespace std::string_literals;

namespace {

VerbOptions to_format(const std::string& from, const std::string& to) {
  VerbOptions options;
  options.checkpoint = from;
  options.to = to;
  return options;
}

Result<RepairResult> carried(const std::string& from, const std::string& to,
                             const std::string& out) {
  const VerbOptions options = to_format(from, to);
  SHW_TRY(auto opened, verbs::open(options));
  SHW_TRY(auto plan, verbs::plan_convert(opened, options));
  return verbs::repair(opened, plan, {out}, nullptr);
}

std::string floats(float first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const float value = first + static_cast<float>(i);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return out;
}

// {"w": tensor, "pair": (1, tensor, a view of the same storage), "set": {1, 2}, "twice": (a, a),
//  "device": cpu, "empty": OrderedDict(), "whole": {"t": tensor, "n": 1}}
std::string many_kinds(const std::string& more = "") {
  const std::string second = tensor_call({.key = "1"});
  const std::string view =
      tensor_call({.count = 6, .offset = 3, .sizes = {3}, .strides = {1}, .key = "1"});
  const std::string value =
      "}(" + pickled_text("w") + tensor_call({}) + pickled_text("pair") + "(K\1" + second + view +
      "t" + pickled_text("set") + "c__builtin__\nset\n](K\1K\2e\x85R" + pickled_text("twice") +
      "(]q\1(K\1eh\1t" + pickled_text("device") + "ctorch\ndevice\n" + pickled_text("cpu") +
      "\x85R" + pickled_text("empty") + "ccollections\nOrderedDict\n)R" + pickled_text("whole") +
      "}(" + pickled_text("t") + tensor_call({.key = "2"}) + pickled_text("n") + "K\1u" + more +
      "u";
  return make_zip({{"m/data.pkl", as_pickle(value)},
                   {"m/version", "3\n"},
                   {"m/shardwright_whole", "5:whole"},
                   {"m/data/0", floats(0, 6)},
                   {"m/data/1", floats(10, 6)},
                   {"m/data/2", floats(20, 6)}});
}

std::shared_ptr<const Checkpoint> opened_at(const std::string& path) {
  auto opened = open_checkpoint(path);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

// Every object of `a` is in `b` with the same value.
void check_same_values(const Checkpoint& a, const Checkpoint& b) {
  REQUIRE(a.objects().size() == b.objects().size());
  CarriedValues left(a), right(b);
  for (std::size_t i = 0; i < a.objects().size(); ++i) {
    CAPTURE(a.objects()[i].fqn);
    std::size_t other = 0;
    while (other < b.objects().size() && b.objects()[other].fqn != a.objects()[i].fqn) ++other;
    REQUIRE(other < b.objects().size());
    auto one = left.of(i), two = right.of(other);
    REQUIRE_MESSAGE(one.has_value(), one.error().message);
    REQUIRE_MESSAGE(two.has_value(), two.error().message);
    auto same = is_same_value(a, *one, b, *two, nullptr);
    REQUIRE(same.has_value());
    CHECK(*same);
  }
}

}  // namespace

TEST_CASE("values with tensors, sets and what they hold twice go into every format and back") {
  TemporaryFolder folder;
  put(folder / "model.pt", many_kinds());
  auto source = opened_at(folder / "model.pt");
  CHECK(source->tensor_count() == 1);
  CHECK(source->objects().size() == 6);
  std::string from = folder / "model.pt";
  int step = 0;
  for (const char* to : {"dcp", "torch", "torch", "dcp", "dcp"}) {
    const std::string out = folder / (std::to_string(step++) + to);
    CAPTURE(out);
    auto made = carried(from, to, out);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    CHECK(made->lossless);
    CHECK(made->left_out.empty());
    auto result = opened_at(out);
    CHECK(result->opening_findings().empty());
    CHECK(result->tensor_count() == 1);
    check_same_values(*source, *result);
    auto proof = verify_repair(out, nullptr);
    REQUIRE(proof.has_value());
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
    from = out;
  }
}

TEST_CASE("a changed byte of a tensor in a tuple breaks the proof of what it was carried into") {
  TemporaryFolder folder;
  put(folder / "model.pt", many_kinds());
  const std::pair<const char*, const char*> rows[] = {{"torch", "model.pt"},
                                                      {"dcp", "__0_0.distcp"}};
  for (const auto& [to, file] : rows) {
    CAPTURE(to);
    const std::string out = folder / to;
    REQUIRE(carried(folder / "model.pt", to, out).has_value());
    std::string bytes = contents(out + "/" + file);
    const std::size_t at = bytes.find(floats(10, 6));
    REQUIRE(at != std::string::npos);
    bytes[at] ^= 1;
    put(out + "/" + file, bytes);
    auto proof = verify_repair(out, nullptr);
    CHECK((!proof || proof->outcome != VerifyReport::Outcome::kProved));
  }
}

TEST_CASE(
    "a tensor in a tuple whose bytes changed, and a class of a program, are refused by name") {
  TemporaryFolder folder;
  std::string bytes = many_kinds();
  bytes[bytes.find(floats(10, 6))] ^= 1;
  put(folder / "bent.pt", bytes);
  put(folder / "own.pt", many_kinds(pickled_text("own") + "c__main__\nConfig\n)\x81"));
  for (const char* to : {"torch", "dcp"}) {
    auto bent = carried(folder / "bent.pt", to, folder / ("bent"s + to));
    REQUIRE_FALSE(bent.has_value());
    CHECK((bent.error().message + bent.error().place.tensor).find("pair") != std::string::npos);
    auto own = carried(folder / "own.pt", to, folder / ("own"s + to));
    REQUIRE_FALSE(own.has_value());
    CHECK(own.error().message.find("__main__.Config") != std::string::npos);
  }
}

TEST_CASE("keys True and \"True\" that hold a dict each are two keys again") {
  TemporaryFolder folder;
  const std::string ordered = "ccollections\nOrderedDict\n)R";
  const std::string value = "}(\x88}(" + pickled_text("a") + tensor_call({}) + "u" +
                            pickled_text("True") + ordered + "(" + pickled_text("b") +
                            tensor_call({}) + "uK\1}(" + pickled_text("c") + "K\1u" +
                            pickled_text("1") + "}(" + pickled_text("d") + "K\2uu";
  put(folder / "model.pt",
      make_zip(
          {{"m/data.pkl", as_pickle(value)}, {"m/version", "3\n"}, {"m/data/0", floats(0, 6)}}));
  auto made = carried(folder / "model.pt", "torch", folder / "out");
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  auto source = open_file(folder / "out/model.pt", "model.pt");
  REQUIRE(source.has_value());
  auto zip = ZipReader::open(*source, 0, (*source)->size());
  REQUIRE(zip.has_value());
  auto pickle = zip->read(*zip->find("data.pkl"), 1 << 20);
  REQUIRE(pickle.has_value());
  auto tree = decode_pickle(*pickle, "model.pt");
  REQUIRE(tree.has_value());
  const auto root = tree->items(tree->root());
  REQUIRE(root.size() == 8);
  std::string kinds;
  for (std::size_t i = 0; i < root.size(); i += 2) {
    kinds += tree->kind(root[i]) == NodeKind::kString ? 't' : 'k';
    kinds += tree->kind(root[i + 1]) == NodeKind::kDict ? 'd' : 'o';
  }
  CHECK(kinds == "kdtokdtd");
}

TEST_CASE("None is in a list where torch saved no entry, and that is not another value") {
  TemporaryFolder folder;
  // [{}, tensor, 5], as torch saves it in its distributed form: without the empty dict.
  const std::string list = "](}" + tensor_call({}) + "K\5e";
  put(folder / "model.pt",
      make_zip({{"m/data.pkl", as_pickle("}(" + pickled_text("l") + list + "u")},
                {"m/version", "3\n"},
                {"m/data/0", floats(0, 6)}}));
  VerbOptions options = to_format(folder / "model.pt", "dcp");
  options.leave_out = {"l.0"};
  auto opened = verbs::open(options);
  REQUIRE(opened.has_value());
  auto plan = verbs::plan_convert(*opened, options);
  REQUIRE(plan.has_value());
  REQUIRE(verbs::repair(*opened, *plan, {folder / "dcp"}, nullptr).has_value());
  auto made = carried(folder / "dcp", "torch", folder / "torch");
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  auto proof = verify_repair(folder / "torch", nullptr);
  REQUIRE(proof.has_value());
  CHECK(proof->outcome == VerifyReport::Outcome::kProved);
}
