#include "core/formats/dcp/dcp_read.h"

#include "core/formats/dcp/dcp_support.h"
#include "core/formats/dcp/dcp_write.h"
#include "core/memory_sink.h"

using namespace shw;
using namespace shw::test;

namespace {

// A metadata pickle in protocol 2 text: {entries} and {records} are the two dicts' items.
Bytes metadata_pickle(const std::string& entries, const std::string& records,
                      const std::string& more = "") {
  return bytes_of(
      "\x80\x02"
      "ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}(U\x13"
      "state_dict_metadata}(" +
      entries + "uU\x0cstorage_data}(" + records + "u" + more + "ub.");
}
std::string text(const std::string& value) {
  return "U" + std::string(1, static_cast<char>(value.size())) + value;
}
std::string tuple(const std::string& numbers) {
  std::string pickle = "(";
  for (char c : numbers) pickle += std::string("K") + static_cast<char>(c - '0');
  return pickle + "t";
}
std::string chunk(const std::string& offsets, const std::string& sizes) {
  return "ctorch.distributed.checkpoint.metadata\nChunkStorageMetadata\n)\x81}(" + text("offsets") +
         tuple(offsets) + text("sizes") + tuple(sizes) + "ub";
}
std::string tensor(const std::string& fqn, const std::string& size, const std::string& chunks) {
  return text(fqn) + "ctorch.distributed.checkpoint.metadata\nTensorStorageMetadata\n)\x81}(" +
         text("properties") +
         "ctorch.distributed.checkpoint.metadata\nTensorProperties\n)\x81("
         "ctorch\nfloat32\nN\x89N\x89tb" +
         text("size") + tuple(size) + text("chunks") + "](" + chunks + "eub";
}
std::string record(const std::string& fqn, const std::string& offset, char hint, char at,
                   const std::string& path = "__3_0.distcp") {
  return "ctorch.distributed.checkpoint.metadata\nMetadataIndex\n)\x81}(" + text("fqn") +
         text(fqn) + text("index") + "K" + std::string(1, hint) +
         (offset == "-" ? "" : text("offset") + tuple(offset)) +
         "ubctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81}(" +
         text("relative_path") + text(path) + text("offset") + "K" + std::string(1, at) +
         text("length") + "K\x09ub";
}

// Its reader gives up as soon as some of it is processed.
class GivenUp final : public ByteSource {
 public:
  GivenUp(Bytes bytes, Progress& progress) : bytes_(std::move(bytes)), progress_(progress) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }
  BytesView mapped() const override { return bytes_; }
  void forget(std::uint64_t, std::uint64_t) const override {
    ++forgotten;
    progress_.cancel();
  }
  mutable int forgotten = 0;

 private:
  std::string name_ = ".metadata";
  Bytes bytes_;
  Progress& progress_;
};

}  // namespace

TEST_CASE("reading millions of records ends soon after somebody gives it up") {
  DcpMetadata metadata;
  metadata.checkpoint_id = "x";
  DcpTensor w{"w", Dtype::kFloat32, false, {60'000, 4}, {}, {}};
  for (std::int64_t i = 0; i < 60'000; ++i)
    w.chunks.push_back(
        {{i, 0}, {1, 4}, {"__0_0.distcp", static_cast<std::uint64_t>(16 * i), 16, {}}});
  metadata.tensors.push_back(std::move(w));
  MemorySink sink;
  REQUIRE(write_dcp_metadata(metadata, sink));
  REQUIRE(sink.bytes.size() > 4u << 20);
  Progress progress;
  GivenUp source(sink.bytes, progress);
  auto given_up = read_dcp_metadata(source, nullptr, &progress);
  REQUIRE_FALSE(given_up.has_value());
  CHECK(given_up.error().kind == ErrorKind::kCancelled);
  CHECK(source.forgotten == 1);
  auto read = read_dcp_metadata(*memory_source(".metadata", sink.bytes), nullptr, nullptr);
  REQUIRE(read.has_value());
  CHECK((*read)->chunk_count() == 60'000);
}

TEST_CASE("every metadata file of the fixtures reads the same with and without shortcuts") {
  auto files = metadata_files();
  REQUIRE(files.size() > 40);
  for (const std::string& file : files) {
    CAPTURE(file);
    Bytes bytes = read_file(file);
    auto quick = open_bytes(bytes);
    auto slow = open_bytes(bytes, false);
    REQUIRE(quick);
    REQUIRE(slow);
    CHECK(describe(**quick) == describe(**slow));
    CHECK((*quick)->opening_findings().empty());
    CHECK((*quick)->unclaimed_records().empty());
    for (std::uint32_t c = 0; c < (*quick)->chunk_count(); ++c)
      CHECK((*quick)->item(ChunkId{c}).has_value());
  }
}

TEST_CASE("a record finds its chunk by offset, whatever its hint says") {
  auto opened = open_bytes(metadata_pickle(tensor("w", "44", chunk("00", "24") + chunk("20", "24")),
                                           record("w", "20", 0, 7) + record("w", "00", 77, 5) +
                                               record("w", "11", 0, 1) + record("v", "00", 0, 2) +
                                               record("w", "-", 0, 3)));
  REQUIRE(opened);
  const Checkpoint& c = **opened;
  CHECK(c.item(ChunkId{0})->offset == 5);
  CHECK(c.item(ChunkId{1})->offset == 7);
  CHECK(c.writer(ChunkId{1}) == 3);
  REQUIRE(c.unclaimed_records().size() == 3);
  CHECK(c.unclaimed_records()[0].offsets == Extents{1, 1});
  CHECK(c.unclaimed_records()[1].fqn == "v");
  CHECK_FALSE(c.unclaimed_records()[2].offsets);
}

TEST_CASE("chunks at one offset share a record, as torch looks it up") {
  auto opened = open_bytes(metadata_pickle(tensor("w", "44", chunk("00", "04") + chunk("00", "44")),
                                           record("w", "00", 1, 5)));
  REQUIRE(opened);
  CHECK((*opened)->item(ChunkId{0})->offset == 5);
  CHECK((*opened)->item(ChunkId{1})->offset == 5);
}

TEST_CASE("a chunk without a record has no item, and duplicate keys are reported") {
  auto opened = open_bytes(metadata_pickle(
      tensor("w", "4", chunk("0", "2") + chunk("2", "2")) + tensor("w", "6", chunk("0", "6")),
      record("w", "0", 0, 5) + record("w", "0", 0, 6)));
  REQUIRE(opened);
  const Checkpoint& c = **opened;
  CHECK(c.tensor_count() == 1);
  CHECK(same(c.shape(TensorId{0}), Extents{6}));
  CHECK(c.item(ChunkId{0})->offset == 6);
  REQUIRE(c.opening_findings().size() == 1);
  CHECK(c.opening_findings()[0].rule == "bad-record");
}

TEST_CASE("what is called outside the allow-list is reported and the rest is read") {
  auto opened = open_bytes(
      metadata_pickle(tensor("w", "4", chunk("0", "4")), record("w", "0", 0, 5),
                      text("planner_data") + "cposix\nsystem\n" + text("rm -rf /") + "\x85R" +
                          text("mcore_data") + "cmegatron.core.x\nThing\n)\x81"));
  REQUIRE(opened);
  CHECK((*opened)->chunk_count() == 1);
  REQUIRE((*opened)->opening_findings().size() == 1);
  const Finding& finding = (*opened)->opening_findings()[0];
  CHECK(finding.rule == "unsafe-pickle");
  CHECK(finding.severity == Severity::kError);
  CHECK(finding.subjects == std::vector<std::string>{".metadata"});
  CHECK(finding.evidence[0].second == EvidenceValue{std::string("posix.system")});
}

TEST_CASE("what Python stops at is a finding that says where and the rest is read") {
  auto told = [](const std::string& entries, const std::string& more) {
    auto opened = open_bytes(metadata_pickle(entries, record("w", "0", 0, 5), more));
    REQUIRE(opened);
    CHECK((*opened)->item(ChunkId{0})->offset == 5);
    std::string all;
    for (const Finding& finding : (*opened)->opening_findings()) {
      CHECK(finding.rule == "bad-record");
      CHECK(finding.severity == Severity::kError);
      all += finding.cause + "\n";
    }
    return all;
  };
  auto properties = [](const std::string& fields) {
    std::string healthy = tensor("w", "4", chunk("0", "4"));
    return healthy.replace(healthy.find("N\x89N\x89"), 4, fields);
  };
  auto unicode = [](const std::string& value) {
    return std::string("\x8c") + static_cast<char>(value.size()) + value;
  };
  auto layout = [&](const std::string& name) {
    return "ctorch.serialization\n_get_layout\n" + unicode(name) + "\x85R\x89N\x89";
  };
  auto memory = [&](char code) {
    return "N\x89"
           "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\nK" +
           std::string(1, code) + "\x85R\x89";
  };
  std::string healthy = tensor("w", "4", chunk("0", "4"));
  CHECK(told(healthy, unicode("note") + unicode("caf\xc3\xa9 \xed\xb2\x80")).empty());
  CHECK(told(properties(layout("torch.strided")), "").empty());
  CHECK(told(properties(memory(2)), "").empty());

  CHECK(told(healthy, unicode("note") + unicode("caf\xe9"))
            .starts_with("Python cannot load it: a string is not UTF-8 at byte "));
  CHECK(told(healthy, unicode("note") + "}]K\1s").find("unhashable") != std::string::npos);
  CHECK(told(healthy, unicode("note") + "K\1}b").find("the state of an object") !=
        std::string::npos);
  CHECK(told(properties(layout("torch.stridde")), "").find("its layout") != std::string::npos);
  CHECK(told(properties(memory(100)), "").find("its memory format") != std::string::npos);
  CHECK(told(healthy + tensor("v", "", "")
                           .replace(tensor("v", "", "").find("N\x89N\x89"), 4, "N\x89N\x89N"),
             "")
            .find("it has 6 properties") != std::string::npos);
}

// Python 3.11.0 to 3.11.3, which is Debian 12's: getattr(class, "NAME") for class(value).
TEST_CASE("a memory format that Python 3.11 looks up by its name is data") {
  auto findings = [](const std::string& memory) {
    std::string made = tensor("w", "4", chunk("0", "4"));
    made.replace(made.find("N\x89N\x89"), 4, "N\x89" + memory + "\x89");
    auto opened = open_bytes(metadata_pickle(made, record("w", "0", 0, 5)));
    REQUIRE(opened);
    std::vector<std::string> rules;
    for (const Finding& finding : (*opened)->opening_findings()) rules.push_back(finding.rule);
    std::sort(rules.begin(), rules.end());
    return rules;
  };
  auto member = [](const std::string& of, const std::string& name) {
    return "cbuiltins\ngetattr\n" + of + text(name) + "\x86R";
  };
  const std::string encoding = "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\n";
  for (const char* name :
       {"TORCH_CONTIGUOUS_FORMAT", "TORCH_CHANNELS_LAST", "TORCH_PRESERVE_FORMAT"})
    CHECK(findings(member(encoding, name)).empty());
  using Rules = std::vector<std::string>;
  const Rules kBoth{"bad-record", "unsafe-pickle"};
  CHECK(findings(member(encoding, "TORCH_NO_FORMAT")) == Rules{"bad-record"});
  CHECK(findings(member(encoding, "__reduce__")) == kBoth);
  CHECK(findings(member("ctorch._utils\n_rebuild_tensor_v2\n", "TORCH_CHANNELS_LAST")) == kBoth);
  CHECK(findings(member(member(encoding, "TORCH_CHANNELS_LAST"), "name")) == kBoth);
  // The object that was found is then called.
  CHECK(findings(member(encoding, "TORCH_CHANNELS_LAST") + ")R") == kBoth);
}

TEST_CASE("what torch saves under Python 3.11.2 raises nothing above info") {
  auto opened = open_checkpoint(SHW_TEST_DATA "/torch-2.15/python-3.11.2");
  REQUIRE(opened);
  CHECK((*opened)->tensor_count() == 2);
  for (const Finding& finding : (*opened)->opening_findings())
    CHECK_MESSAGE(finding.severity == Severity::kInfo, finding.cause);
}

TEST_CASE("records and boxes that cannot be read are findings, not errors") {
  auto opened = open_bytes(
      metadata_pickle(tensor("v", "4", "N" + chunk("0", "4")) + text("n") + "NK\x05K\x06",
                      "NN" + record("v", "0", 0, 5)));
  REQUIRE(opened);
  CHECK((*opened)->item(ChunkId{0})->offset == 5);
  CHECK((*opened)->opening_findings().size() == 4);
  auto path = open_bytes(metadata_pickle(tensor("v", "4", chunk("0", "4")),
                                         record("v", "0", 0, 5, "../../etc/passwd")));
  REQUIRE(path);
  CHECK_FALSE((*path)->file(FileId{0}).safe);
}

TEST_CASE("odd spellings that torch takes raise nothing, and those that it refuses are reported") {
  auto cause = [](const std::string& entries, const std::string& records) -> std::string {
    auto opened = open_bytes(metadata_pickle(entries, records));
    if (!opened) return opened.error().message;
    auto findings = (*opened)->opening_findings();
    return findings.empty() ? "" : findings.front().cause;
  };
  const std::string healthy = tensor("v", "4", chunk("0", "4")), placed = record("v", "0", 0, 5);
  CHECK(cause(healthy, placed).empty());
  // Protocols 0 and 1 make an object without a state like this.
  std::string object = text("o") +
                       "ccopy_reg\n_reconstructor\n(ctorch.distributed.checkpoint.metadata\n"
                       "BytesStorageMetadata\nc__builtin__\nobject\nNtR";
  CHECK(cause(healthy + object, placed + record("o", "-", 0, 20)).empty());
  auto dotted = open_bytes(metadata_pickle(healthy, record("v", "0", 0, 5, "././__3_0.distcp")));
  REQUIRE(dotted);
  CHECK((*dotted)->file(FileId{0}).path == "__3_0.distcp");
  CHECK((*dotted)->writer(ChunkId{0}) == 3);
  auto slashes =
      open_bytes(metadata_pickle(healthy, record("v", "0", 0, 5, ".//.///__3_0.distcp")));
  REQUIRE(slashes);
  CHECK((*slashes)->file(FileId{0}).path == "__3_0.distcp");
  CHECK((*slashes)->file(FileId{0}).safe);
  for (const char* outside : {"/etc/passwd", "//etc/passwd", ".//../etc/passwd"}) {
    CAPTURE(outside);
    auto opened = open_bytes(metadata_pickle(healthy, record("v", "0", 0, 5, outside)));
    REQUIRE(opened);
    CHECK_FALSE((*opened)->file(FileId{0}).safe);
  }

  std::string list = healthy;  // a list is not a torch.Size, whatever it contains
  list.replace(list.find(tuple("4")), tuple("4").size(), "](K\4e");
  CHECK(cause(list, placed).find("is a list") != std::string::npos);
  CHECK(cause("", "").empty());
  auto other =
      open_bytes(bytes_of("\x80\x02"
                          "ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}U\x13"
                          "state_dict_metadataccollections\nOrderedDict\n)Rsb."));
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("not a plain dict") != std::string::npos);
}

TEST_CASE("what is said of transforms is none where Python calls it false, and else unreadable") {
  auto transforms = [](const std::string& said) {
    std::string placed = record("v", "0", 0, 5);
    placed.insert(placed.size() - 2, text("transform_descriptors") + said);
    auto opened = open_bytes(metadata_pickle(tensor("v", "4", chunk("0", "4")), placed));
    REQUIRE(opened);
    auto there = (*opened)->transforms(ChunkId{0});
    return std::vector<std::string>(there.begin(), there.end());
  };
  const std::vector<std::string> none, unreadable = {"unreadable transform"};
  for (const char* said : {"N", "\x89", ")", "]", "}", "I0\n", "U"}) {
    CAPTURE(said);
    CHECK(transforms(said == std::string("U") ? text("") : said) == none);
  }
  for (const char* said : {"\x88", "K\x05", "G?\xf0\0\0\0\0\0\0", "K\x05\x85"}) {
    const std::string whole = said[0] == 'G' ? std::string(said, 3) + std::string(6, '\0') : said;
    CHECK(transforms(whole) == unreadable);
  }
  CHECK(transforms(text("stream.zstd/1") + "\x85") == std::vector<std::string>{"stream.zstd/1"});
}

TEST_CASE("another library's pickle is named") {
  auto opened = open_bytes(bytes_of("cpaddle.distributed.checkpoint.metadata\nMetadata\n)\x81}b."));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().kind == ErrorKind::kUnsupported);
  CHECK(opened.error().message.find("paddle.distributed.checkpoint.metadata.Metadata") !=
        std::string::npos);
}

// PaddlePaddle's attributes have the same names as torch's.
TEST_CASE("PaddlePaddle's metadata is not taken for torch's, whatever the file is called") {
  const std::string theirs = "cpaddle.distributed.checkpoint.metadata\nMetadata\n)\x81}" +
                             text("state_dict_metadata") + "}sb.";
  auto opened = open_bytes(bytes_of(theirs));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().kind == ErrorKind::kUnsupported);
  CHECK(opened.error().message.find("a pickle of paddle.") != std::string::npos);
  auto folder = open_checkpoint(memory_directory(
      "ckpt", {{"0.metadata", bytes_of(theirs)}, {"0_0.distcp", bytes_of("data")}}));
  REQUIRE_FALSE(folder);
  CHECK(folder.error().message.find("PaddlePaddle") != std::string::npos);
}

TEST_CASE("one list of chunks that many tensors share does not multiply") {
  std::string chunks;
  for (int i = 0; i < 200; ++i) chunks += chunk("0", "1");
  std::string entries = tensor("t", "1", chunks) + std::string("q\0", 2);
  for (char a = 'A'; a <= 'Z'; ++a)
    for (char b = 'A'; b <= 'Z'; ++b) entries += text({a, b}) + std::string("h\0", 2);
  auto opened = open_bytes(metadata_pickle(entries, ""));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message == "lists more chunks than its bytes can hold");
}

TEST_CASE(
    "metadata without an entry next to files with data is reported, and a save of nothing is not") {
  auto findings = [](const std::string& data) {
    auto opened = open_checkpoint(memory_directory(
        "ckpt", {{".metadata", metadata_pickle("", "")}, {"__0_0.distcp", bytes_of(data)}}));
    REQUIRE(opened);
    return (*opened)->opening_findings().size();
  };
  CHECK(findings("") == 0);
  CHECK(findings("bytes of a tensor") == 1);
}

TEST_CASE("a storage_meta that is a plain value is reported, as torch stops there") {
  auto told = [](const std::string& value) {
    auto opened = open_bytes(metadata_pickle(tensor("v", "4", chunk("0", "4")),
                                             record("v", "0", 0, 5), text("storage_meta") + value));
    REQUIRE(opened);
    return (*opened)->opening_findings().size();
  };
  CHECK(told("N") == 0);
  CHECK(told("ctorch.distributed.checkpoint.metadata\nStorageMeta\n)\x81}(" + text("save_id") +
             text("1") + "ub") == 0);
  for (const std::string& value : {std::string("K\x05"), text("here"), std::string("}")})
    CHECK(told(value) == 1);
}
