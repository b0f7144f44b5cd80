#include "core/formats/pickle/pickle.h"

#include <doctest/doctest.h>

using namespace shw;

namespace {

BytesView view(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string_view operator""_p(const char* text, std::size_t length) {
  return {text, length};
}

Result<PickleTree> decode(std::string_view text) {
  return decode_pickle(view(text), "x.pkl");
}
std::string message(std::string_view text) {
  auto tree = decode(text);
  return tree ? "" : tree.error().message;
}

}  // namespace

TEST_CASE("plain values come out as they went in, in every encoding") {
  // pickle.dumps([1, -2, 2**40, -2**40, 2**70, 1.5, True, None, "é", b"\0"], protocol)
  std::string_view two =
      "\x80\x02]q\x00("
      "K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00"
      "\x00\xff\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x40G?\xf8\x00\x00\x00\x00\x00\x00\x88NX\x02"
      "\x00\x00\x00\xc3\xa9\x43\x01\x00\x65."_p;
  std::string_view zero =
      "(lp0\nI1\naI-2\naL1099511627776L\naL-1099511627776L\naL1180591620717411303424L\n"
      "aF1.5\naI01\naNaV\\u00e9\naC\x01\x00"
      "a."_p;
  for (std::string_view pickle : {two, zero}) {
    auto tree = decode(pickle);
    REQUIRE(tree);
    auto items = tree->items(tree->root());
    REQUIRE(items.size() == 10);
    CHECK(tree->integer(items[0]) == 1);
    CHECK(tree->integer(items[1]) == -2);
    CHECK(tree->integer(items[2]) == std::int64_t{1} << 40);
    CHECK(tree->integer(items[3]) == -(std::int64_t{1} << 40));
    CHECK(tree->kind(items[4]) == NodeKind::kBigInt);
    CHECK(tree->real(items[5]) == 1.5);
    CHECK(tree->kind(items[6]) == NodeKind::kBool);
    CHECK(tree->kind(items[7]) == NodeKind::kNone);
    CHECK(tree->text(items[8]) == "\xc3\xa9");
    CHECK(tree->bytes(items[9])->size() == 1);
    CHECK(tree->end() == pickle.size());
  }
}

TEST_CASE("a record of DCP is a key only where its class has a hash") {
  const auto refused = [](const std::string& module, const std::string& name) {
    const std::string pickle = "\x80\x02}c" + module + "\n" + name + "\n)\x81K\x01s.";
    auto tree = decode(pickle);
    REQUIRE(tree);
    return tree->refused().has_value();
  };
  CHECK(refused("torch.distributed.checkpoint.filesystem", "_StorageInfo"));
  CHECK(refused("torch.distributed.checkpoint.metadata", "ChunkStorageMetadata"));
  CHECK_FALSE(refused("torch.distributed.checkpoint.metadata", "MetadataIndex"));
  CHECK_FALSE(refused("program", "_StorageInfo"));
}

TEST_CASE("what would be called is a node, and is named") {
  auto tree = decode(
      "\x80\x02"
      "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."_p);
  REQUIRE(tree);
  CHECK(tree->kind(tree->root()) == NodeKind::kReduce);
  CHECK(tree->is_global(tree->callable(tree->root()), "os", "system"));
  CHECK(tree->text(tree->items(tree->arguments(tree->root()))[0]) == "ls");
  REQUIRE(tree->globals().size() == 1);
  CHECK(tree->globals()[0].at == 2);
  CHECK(tree->globals()[0].called_at == 21);
}

TEST_CASE("classes of all five ways to make one keep their class, arguments and state") {
  for (std::string_view pickle :
       {"(ca\nB\nK\x01o}b."_p, "(K\x01ia\nB\n}b."_p, "ca\nB\nK\x01\x85\x81}b."_p,
        "ca\nB\nK\x01\x85}\x92}b."_p, "ca\nB\nK\x01\x85R}b."_p}) {
    auto tree = decode(pickle);
    REQUIRE(tree);
    CHECK(tree->is_global(tree->callable(tree->root()), "a", "B"));
    CHECK(tree->items(tree->arguments(tree->root())).size() == 1);
    CHECK(tree->kind(tree->state(tree->root())) == NodeKind::kDict);
    CHECK(tree->globals()[0].called_at.has_value());
  }
}

TEST_CASE("a dict looks up as Python does: the last of equal keys") {
  auto tree = decode(
      "}(U\x01"
      "aK\x01U\x01"
      "bK\x02U\x01"
      "aK\x03u."_p);
  REQUIRE(tree);
  CHECK(tree->integer(tree->find(tree->root(), "a")) == 3);
  CHECK(tree->find(tree->root(), "c") == NodeId::kAbsent);
  CHECK(tree->integer(tree->find(tree->find(tree->root(), "c"), "d")) == std::nullopt);
}

TEST_CASE("a list of ten thousand that grows one by one keeps them all") {
  std::string pickle = "(l";
  for (int i = 0; i < 10000; ++i) {
    pickle += "]K";  // an inner list in between, so that the outer one is moved
    pickle += static_cast<char>(i % 256);
    pickle += "aa";
  }
  pickle += ".";
  auto tree = decode(pickle);
  REQUIRE(tree);
  auto items = tree->items(tree->root());
  REQUIRE(items.size() == 10000);
  for (int i = 0; i < 10000; ++i) CHECK(tree->integer(tree->items(items[i])[0]) == i % 256);
}

TEST_CASE("a list that holds itself and a bomb of doubled tuples are graphs, not trees") {
  auto self = decode(
      "]q\x00h\x00"
      "a."_p);
  REQUIRE(self);
  CHECK(self->items(self->root())[0] == self->root());
  std::string bomb = ")";
  for (int i = 0; i < 60; ++i) bomb += "2\x86";
  auto tree = decode(bomb + ".");
  REQUIRE(tree);
  CHECK(tree->node_count() == 61);
}

TEST_CASE("an error says what was announced and what is left, and where") {
  CHECK(message("\x80\x02X\x00\x10\x00\x00short"_p) ==
        "truncated at byte 2: a string of 4,096 bytes was announced, 5 are left");
  CHECK(message("\x80\x02K\x01"_p) == "truncated at byte 4: the end mark of the pickle is missing");
  CHECK(
      message("\x95\xff\xff\xff\xff\xff\xff\xff\x7f"_p) ==
      "truncated at byte 0: a frame of 9,223,372,036,854,775,807 bytes was announced, 0 are left");
  CHECK(message("h\x05."_p) == "byte 0: memo number 5 is used but was never stored");
  CHECK(message("u."_p) == "byte 0: an opcode needs a mark and there is none");
  CHECK(message("\x86."_p) == "byte 0: an opcode finds too little on the stack");
  CHECK(message("\xff"_p) == "byte 0: 0xff is not a pickle opcode");
  CHECK(message("Nr\xff\xff\xff\xff."_p) ==
        "byte 1: memo number 4,294,967,295 is larger than the file");
  CHECK(message("\x80\x09."_p) == "pickle protocol 9; 5 is the newest known");
  auto moved = decode_pickle(view("u."), "a.distcp", 1000);
  REQUIRE_FALSE(moved);
  CHECK(moved.error().place.offset == 1000);
  CHECK(moved.error().place.file == "a.distcp");
}

TEST_CASE("depth and size are limited") {
  std::string deep = ")";
  for (int i = 0; i < 5000; ++i) deep += "\x85";
  auto tree = decode(deep + ".");
  REQUIRE_FALSE(tree);
  CHECK(tree.error().kind == ErrorKind::kUnsupported);
  PickleLimits limits;
  limits.nodes = 100;
  auto many = decode_pickle(view(std::string(200, 'N')), "x", 0, limits);
  REQUIRE_FALSE(many);
  CHECK(many.error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("a call that Python cannot make is refused where it is") {
  const std::string_view called[] = {
      // NEWOBJ takes a tuple, and so does REDUCE
      "\x80\x02"
      "ca.b\nC\n\x88\x81."_p,
      "\x80\x02"
      "ca.b\nf\n]R."_p,
      // a dtype, a function of six or seven arguments, a member of an enumeration, a dict of two
      "\x80\x02"
      "ctorch\nfloat16\n)R."_p,
      "\x80\x02"
      "ctorch\nFloatStorage\n)R."_p,
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n)R."_p,
      "\x80\x02"
      "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\n)\x81."_p,
      "\x80\x02"
      "ccollections\nOrderedDict\n]]\x86R."_p,
      // fields by name for a class with positional fields, and the reverse
      "\x80\x02"
      "ctorch.distributed.checkpoint.metadata\nStorageMeta\n)\x81K\x01K\x02K\x03\x87"
      "b."_p,
      "\x80\x02"
      "ctorch.distributed.checkpoint.metadata\nTensorProperties\n)\x81}"
      "b."_p,
      // a dataclass without its fields; a size of a number, of a text, and with a state
      "\x80\x02"
      "ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)R."_p,
      "\x80\x02"
      "ctorch\nSize\nK\x03\x85R."_p,
      "\x80\x02"
      "ctorch\nSize\n]U\x01"
      "aa\x85R."_p,
      "\x80\x02"
      "ctorch\nSize\nK\x03\x85\x85R}"
      "b."_p,
      "\x80\x02"
      "ccollections\nOrderedDict\nK\x03\x85R."_p,
      // a function in the place of a class
      "\x80\x02"
      "ctorch.serialization\n_get_layout\n)\x81."_p,
      "\x80\x02"
      "cbuiltins\ngetattr\n)\x81."_p,
      // a tuple instead of a class, and a function called with another opcode
      "\x80\x02"
      ")]\x85\x81."_p,
      "\x80\x02"
      "(ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_wrapper_subclass\n"
      "ca.b\nC\n)}tRt."_p,
  };
  for (std::string_view pickle : called) {
    auto tree = decode(pickle);
    INFO(pickle);
    REQUIRE(tree);
    CHECK(tree->refused());
  }
  const std::string_view healthy[] = {
      "\x80\x02"
      "ccollections\nOrderedDict\n)R."_p,
      "\x80\x02"
      "ccollections\nOrderedDict\n]\x85R."_p,
      "\x80\x02"
      "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\nK\x00\x85R."_p,
      "\x80\x02"
      "ctorch.distributed.checkpoint.metadata\nStorageMeta\n)\x81}"
      "b."_p,
      "\x80\x02"
      "ctorch.distributed.checkpoint.metadata\nBytesStorageMetadata\n)\x81."_p,
      "\x80\x02"
      "ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81}"
      "b."_p,
      "\x80\x02"
      "ctorch\nSize\n)R."_p,
      "\x80\x02"
      "ctorch\nSize\nK\x03\x89\x86\x85R."_p,
      "\x80\x02"
      "ca.b\nC\n)\x81K\x01"
      "b."_p,
  };
  for (std::string_view pickle : healthy) {
    auto tree = decode(pickle);
    INFO(pickle);
    REQUIRE(tree);
    CHECK_FALSE(tree->refused());
  }
}

TEST_CASE("pickle: what Python refuses while it reads on is noted") {
  const std::string framed = "\x80\x04\x95" + std::string("\x04\0\0\0\0\0\0\0", 8);
  struct Case {
    std::string pickle;
    bool is_refused;
  };
  const Case cases[] = {
      {framed + "]K\x01"
                "a.",
       false},
      {framed + "]"
                "M\x01\x02"
                "a.",
       false},  // the frame ends where M ends
      {framed + "]K\x01"
                "K\x02"
                "e.",
       true},  // it ends inside the second number
      {framed + "]" + framed.substr(2) +
           "K\x01"
           "a.",
       true},  // a frame inside a frame
      {"\x80\x02}]K\x01s.", true},
      {"\x80\x02}]\x85K\x01s.", true},  // a tuple that holds a list
      {"\x80\x02}K\x01\x85K\x01s.", false},
      {"\x80\x02}ccollections\nOrderedDict\n)RK\x01s.", true},
      {"\x80\x02}ccollections\ndeque\n)RK\x01s.", true},
      {"\x80\x02}ccollections\nUserString\n)RK\x01s.", false},
      {"\x80\x04\x8f(]\x90.", true},
      {"\x80\x04(]\x91.", true},
      {"U\x01\x94.", true},
      {"T\x01" + std::string(3, '\0') + "\x94.", true},
      {"S'\x94'\n.", true},
      {"V\\u12\n.", true},
      {"V\\u0041\n.", false},
      {"ccollections\nOrderedDict\r\n.", true},
  };
  for (const Case& one : cases) {
    CAPTURE(one.pickle);
    auto tree = decode(one.pickle);
    if (!tree) {
      CHECK(one.is_refused);
      continue;
    }
    CHECK(tree->refused().has_value() == one.is_refused);
  }
}
