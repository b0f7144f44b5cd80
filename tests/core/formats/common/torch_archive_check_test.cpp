// Archives whose writer omitted checksums.
#include "core/formats/common/torch_archive_check.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/common/torch_item.h"
#include "core/formats/common/torch_item_write.h"
#include "core/formats/pickle/pickle_safety.h"
#include "core/make_zip.h"
#include "core/memory_sink.h"

using namespace shw;
using namespace shw::test;

namespace {

Status said(const std::string& version, const std::string& alignment, const std::string& id) {
  constexpr std::uint64_t kTrue = ~std::uint64_t{0};
  const std::string zip = make_zip({{"m/data.pkl", "N.", false, kTrue, false},
                                    {"m/version", version, false, kTrue, false},
                                    {"m/.storage_alignment", alignment, false, kTrue, false},
                                    {"m/.data/serialization_id", id, false, kTrue, false}});
  auto source = memory_source("m.pt", to_bytes(zip));
  auto reader = ZipReader::open(source, 0, source->size());
  REQUIRE(reader.has_value());
  REQUIRE(reader->lacks_crcs());
  return check_declared_records(*reader);
}

}  // namespace

TEST_CASE("records that torch makes text and numbers of are read without a checksum") {
  CHECK(said("3\n", "64", "0123").has_value());
  CHECK(said("10", "4096", "").has_value());
  for (const char* version : {"", "\n", "\xB3\n", "0\n", "11\n", "x3"})
    CHECK_FALSE(said(version, "64", "0123").has_value());
  for (const char* alignment : {"",
                                "\xB6"
                                "4",
                                "6t"})
    CHECK_FALSE(said("3\n", alignment, "0123").has_value());
  CHECK_FALSE(said("3\n", "64",
                   "01\xB1"
                   "3")
                  .has_value());
}

TEST_CASE("an item is damaged where a record that torch reads has no local header") {
  constexpr std::uint64_t kLocalHeader = 30;  // without the name, which follows
  MemorySink sink;
  REQUIRE(write_torch_item(sink, Dtype::kFloat32, Extents{2}, Bytes(8)).has_value());
  const std::string whole(reinterpret_cast<const char*>(sink.bytes.data()), sink.bytes.size());
  auto opens = [](std::string_view bytes) {
    return open_torch_item(memory_source("item", to_bytes(std::string(bytes))), 0, bytes.size())
        .has_value();
  };
  REQUIRE(opens(whole));
  for (const char* name : {"data.pkl", ".format_version", ".storage_alignment", "byteorder",
                           "data/0", "version", ".data/serialization_id"}) {
    CAPTURE(name);
    const std::size_t at = whole.find(std::string("/") + name);
    REQUIRE(at != std::string::npos);
    const std::size_t header = whole.rfind("PK\x03\x04", at);
    REQUIRE(header != std::string::npos);
    REQUIRE(at - header < kLocalHeader + 16);
    std::string damaged = whole;
    damaged[header] = 'Q';
    CHECK_FALSE(opens(damaged));
  }
}

TEST_CASE("a name one letter next to a known one is not another program's") {
  CHECK(similar_known_name("collections", "OrdesedDict") == "collections.OrderedDict");
  CHECK(similar_known_name("torch", "FloatStorbge") == "torch.FloatStorage");
  CHECK(similar_known_name("tprch", "float32") == "torch.float32");
  CHECK(similar_known_name("torch._utilt", "_rebuild_tensor_v2") ==
        "torch._utils._rebuild_tensor_v2");
  CHECK_FALSE(similar_known_name("collections", "OrderedDict"));
  CHECK_FALSE(similar_known_name("collections", "OrdesedDixt"));
  CHECK_FALSE(similar_known_name("torch", "uint4"));  // another torch has it
  CHECK_FALSE(similar_known_name("my.program", "Config"));
  CHECK_FALSE(similar_known_name("builtins", "eval"));
}
