// Values of non-tensor entries, including hostile ones without a value.
#include "core/formats/plain_value.h"

#include <doctest/doctest.h>

#include "core/formats/pickle/pickle.h"
#include "core/make_zip.h"
#include "core/model/builder.h"

using namespace shw;
using namespace shw::test;

namespace {

Result<PlainValue> read(const std::string& bytes, std::uint64_t limit = 1 << 20) {
  return read_plain_value(memory_source("item", to_bytes(bytes)), 0, bytes.size(), limit);
}

std::string zipped(const std::string& pickle) {
  return make_zip({{"archive/data.pkl", pickle}, {"archive/version", "3\n"}});
}

}  // namespace

TEST_CASE("plain data is read from an archive and from a bare pickle alike") {
  struct Case {
    std::string pickle, text;
  };
  const Case cases[] = {
      {"K\x07.", "7"},
      {"J\xff\xff\xff\xff.", "-1"},
      {"\x88.", "1"},
      {"N.", "None"},
      {std::string("G\x3f\xe0\x00\x00\x00\x00\x00\x00.", 10), "0.5"},
      {pickled_text("adam") + ".", "adam"},
      {"](K\1K\2K\3K\4K\5e.", "(1, 2, 3, 4, ...)"},
      {"K\1K\2\x86.", "(1, 2)"},
      {"ctorch\nSize\nK\1K\2\x86\x85R.", "(1, 2)"},
      {"ctorch\nSize\n)R.", "something else"},
      {"ccollections\nOrderedDict\n)R(" + pickled_text("a") + "K\1u.", "something else"},
      {"cos\nsystem\n" + pickled_text("true") + "\x85R.", "something else"},
  };
  for (const Case& one : cases) {
    for (const std::string& bytes : {"\x80\x02" + one.pickle, zipped("\x80\x02" + one.pickle)}) {
      auto value = read(bytes);
      if (!value) FAIL(value.error().message);
      CHECK(to_text(*value) == one.text);
    }
  }
  auto dict = read("\x80\x02}(" + pickled_text("lr") + "K\1" + pickled_text("step") + "K\x09" +
                   pickled_text("lr") + "K\2u.");
  REQUIRE(dict.has_value());
  CHECK(find(*dict, "step")->number == 9);
  CHECK(find(*dict, "lr")->number == 2);
  CHECK(find(*dict, "eps") == nullptr);
  CHECK(find(*find(*dict, "lr"), "lr") == nullptr);
}

TEST_CASE("the opcodes of an entry are read again, or what is in their way is named") {
  auto opcodes = [](const std::string& pickle) {
    std::string bytes = zipped("\x80\x02" + pickle + ".");
    CheckpointBuilder builder;
    builder.set_directory(memory_directory("ckpt", {{"f", to_bytes(bytes)}}));
    ItemPlace place{builder.file("f"), 0, static_cast<std::int64_t>(bytes.size())};
    builder.add_object({"entry", place});
    auto checkpoint = builder.finish();
    auto read = read_plain_opcodes(*checkpoint, 0);
    if (!read) CHECK(read.error().place.tensor == "entry");
    CHECK(read.has_value() == read_plain_opcodes(*checkpoint, place).has_value());
    return read;
  };
  CHECK(*opcodes("](K\1K\2e") == "](" + pickled_int(1) + pickled_int(2) + "e");
  const std::pair<std::string, std::string> others[] = {
      {"}(" + pickled_text("a") + "cargparse\nNamespace\n)\x81u", "argparse.Namespace"},
      {"](cos\nsystem\n" + pickled_text("true") + "\x85Re", "os.system"},
      {"\x8f", "a set"},
      {tensor_call({}), "torch._utils._rebuild_tensor_v2"},
  };
  for (const auto& [pickle, what] : others) {
    auto read = opcodes(pickle);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().kind == ErrorKind::kUnsupported);
    CHECK(read.error().message.find(what) != std::string::npos);
  }
}

TEST_CASE("a tensor of one number is that number, a larger one is something else") {
  auto archive = [](const TensorText& text, const std::string& payload) {
    return make_zip(
        {{"archive/data.pkl", as_pickle(tensor_call(text))}, {"archive/data/0", payload}});
  };
  TensorText one;
  one.count = 1;
  one.sizes = {};
  one.strides = {};
  float hundred = 100;
  std::string payload(reinterpret_cast<const char*>(&hundred), 4);
  auto value = read(archive(one, payload));
  REQUIRE(value.has_value());
  CHECK(to_text(*value) == "100");
  TensorText six;
  CHECK(to_text(*read(archive(six, std::string(24, '\0')))) == "something else");
  one.offset = 1;  // beyond its storage
  CHECK(to_text(*read(archive(one, payload))) == "something else");
}

TEST_CASE("hostile entries are errors, and cost no more than a small multiple of their bytes") {
  CHECK_FALSE(read("").has_value());
  CHECK_FALSE(read("PK\3\4").has_value());
  CHECK_FALSE(read("\x28\xb5\x2f\xfd rest").has_value());
  CHECK_FALSE(read("\x80\x02X\xff\xff\xff\x7f"
                   "a.")
                  .has_value());
  CHECK_FALSE(read("K\x07.", 2).has_value());
  CHECK_FALSE(read(zipped("K\x07."), 8).has_value());
  // Thirty lists, each of which contains the previous one twice: 2^30 paths.
  std::string bomb = "\x80\x02]q\x01";
  for (int i = 0; i < 30; ++i) {
    std::string last(1, static_cast<char>(i + 1)), next(1, static_cast<char>(i + 2));
    bomb += "](h" + last + "h" + last + "eq" + next;
  }
  CHECK_FALSE(read(bomb + ".").has_value());
  // A list that contains itself.
  CHECK_FALSE(read("\x80\x02]q\x01h\x01"
                   "a.")
                  .has_value());
  // A good archive cut at every length.
  std::string good = zipped("\x80\x02](K\1K\2K\3e.");
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(read(good.substr(0, length)).has_value());
}
