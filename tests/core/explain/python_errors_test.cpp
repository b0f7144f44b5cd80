// Python's and torch's own words, which say little: what kind of thing was in hand, and where.
#include <doctest/doctest.h>

#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: an attribute of None tells what the code had expected") {
  const std::string none = "AttributeError: 'NoneType' object has no attribute ";
  check_sentences({
      {none + "'element_size'", "", "none-for-tensor", "part-missing"},
      {none + "'rsplit'", "", "none-for-text", "wrong-path"},
      {none + "'setdefault'", "", "none-for-dict", "part-missing"},
      {none + "'groupdict'", "", "none-for-match", "name-differs"},
      {none + "'named_modules'", "", "none-for-module", "part-missing"},
      {none + "'readline'", "", "none-for-file", "missing-part"},
      {none + "'zebra'", "", "nothing-where-something", "other-format"},
  });
}

TEST_CASE("explain: a value of another type tells whether a path, a size or a part was meant") {
  check_sentences({
      {"TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'", "",
       "path-part-is-none", "wrong-path"},
      {"TypeError: unsupported operand type(s) for *: 'int' and 'NoneType'", "",
       "none-in-arithmetic", "config-disagrees"},
      {"TypeError: '>' not supported between instances of 'str' and 'int'", "",
       "value-of-other-type", "config-disagrees"},
      {"TypeError: tuple indices must be integers or slices, not str", "", "list-for-dict",
       "other-format"},
      {"TypeError: 'Tensor' object is not callable", "", "not-of-that-kind", "other-format"},
      {"IndexError: pop from an empty deque", "", "list-too-short", "other-format"},
      {"ValueError: too many values to unpack (expected 3)", "", "parts-to-unpack", "other-form"},
      {"ValueError: could not convert string to float: 'last'", "", "text-for-number",
       "name-differs"},
      {"ValueError: min() iterable argument is empty", "", "nothing-found", "wrong-path"},
      {"ZeroDivisionError: float modulo by zero", "", "division-by-zero", "config-disagrees"},
      {"OverflowError: int too large to convert to float", "", "number-too-large",
       "number-too-large"},
      {"AttributeError: 'method' object has no attribute 'items'", "", "not-called",
       "call-differs"},
      {"AttributeError: 'ResNet' object has no attribute 'keys'", "", "module-for-dict",
       "module-or-state-dict"},
      {"AttributeError: 'XForCausalLM' object has no attribute 'tie_weights'", "",
       "class-lacks-method", "older-library"},
      {"AttributeError: 'Linear8bitLt' object has no attribute 'SCB'", "", "attribute-of-parameter",
       "quantised"},
      {"AttributeError: 'Params4bit' object has no attribute 'quant_state'", "",
       "attribute-of-parameter", "quantised"},
  });
}

TEST_CASE("explain: Python's errors about files tell damage from another form") {
  check_sentences({
      {"struct.error: unpack requires a buffer of 4 bytes", "", "bytes-run-out", "short-file"},
      {"zipfile.BadZipFile: Truncated file header", "", "bad-archive-part", "short-file"},
      {"gzip.BadGzipFile: Not a gzipped file (b'<!')", "", "other-compression", "other-format"},
      {"yaml.parser.ParserError: while parsing a block mapping", "", "not-yaml", "config-refused"},
      {"Error: EOF while parsing an object at line 3 column 7", "", "json-of-rust", "short-file"},
      {"OSError: [Errno 121] Remote I/O error", "", "mount-stopped", "file-system"},
      {"OSError: [WinError 123] The filename is wrong: 'a?b'", "", "path-refused", "wrong-path"},
      {"BlockingIOError: [Errno 11] Resource temporarily unavailable", "", "lock-held",
       "file-in-use"},
      {"TypeError: cannot pickle 'module' object", "", "cannot-be-pickled", "save-refused"},
      {"double free or corruption (!prev)", "", "crashed-in-memory", "older-library"},
      {"FileNotFoundError: File not found: a/b.zarr", "", "file-by-name", "missing-part"},
  });
}

TEST_CASE("explain: torch's errors about sizes and dtypes are told from damage") {
  check_sentences({
      {"IndexError: too many indices for tensor of dimension 2", "", "fewer-dims", "wrong-weight"},
      {"RuntimeError: running_var should contain 32 elements not 16", "", "norm-elements",
       "wrong-weight"},
      {"RuntimeError: Given normalized_shape=[768], expected input with shape [*, 768]", "",
       "norm-shape", "wrong-weight"},
      {"RuntimeError: value cannot be converted to type uint8_t without overflow", "",
       "dtypes-not-promoted", "quantised"},
      {"TypeError: Got unsupported ScalarType Float8_e5m2", "", "no-such-numpy-dtype",
       "dtype-differs"},
      {"KeyError: torch.uint16", "", "key-of-dtype", "older-program"},
      {"KeyError: 'Ernie4_5ForCausalLM'", "", "key-of-class", "older-program"},
      {"RuntimeError: Tensors must be CUDA and dense", "torch", "cuda-tensors-wanted",
       "device-unfit"},
      {"AssertionError: patch width changed", "", "size-that-changed", "sizes-differ"},
  });
}

TEST_CASE("explain: the line that a notebook marks tells what the code did") {
  const std::string marked = "/x/a.py in f(x)\n      8 y = 1\n----> 9     ";
  check_sentences({
      {marked + "task = TASK_REGISTRY[name]\nKeyError: 'speech'", "", "raised-in-registry",
       "older-program"},
      {marked + "self.vocab = config['vocab_size']\nTypeError: 'NoneType' object is not "
                "subscriptable",
       "", "raised-in-config", "config-refused"},
  });
}

TEST_CASE("explain: what destructors say after the error is left out") {
  const std::string error = "MemoryError: Unable to allocate 2.00 GiB for an array";
  const Explanation alone = explain(error);
  const Explanation both =
      explain(error +
              "\nException ignored in: <function A.__del__>\nAttributeError: 'A' object has no "
              "attribute 'ctx'");
  CHECK(both.parsed.messages == alone.parsed.messages);
}

TEST_CASE("explain: names without their first letters were cut by the loader") {
  const Explanation cut = explain(
      "Missing key(s) in state_dict: \"encoder.a.weight\", \"encoder.b.weight\".\n"
      "Unexpected key(s) in state_dict: \"r.a.weight\", \"\", \"r.b.weight\".");
  REQUIRE_FALSE(cut.hypotheses.empty());
  CHECK(cut.hypotheses[0].id == "cut-names");
  // A prefix that ends at a dot is a wrapper's.
  const Explanation wrapped = explain(
      "Missing key(s) in state_dict: \"encoder.a.weight\", \"encoder.b.weight\".\n"
      "Unexpected key(s) in state_dict: \"a.weight\", \"b.weight\".");
  CHECK(first(wrapped) == "renamed either");
}

TEST_CASE("explain: parts of a trainer's dict among the unexpected names are told as that") {
  CHECK(
      first(explain("Unexpected key(s) in state_dict: \"epoch\", \"optimizer\", \"state_dict\"")) ==
      "whole-checkpoint request");
  CHECK(
      first(explain("Unexpected key(s) in state_dict: \"criterion.weight\", \"criterion.bias\"")) ==
      "parts-of-loss request");
  CHECK(first(explain("Unexpected key(s) in state_dict: \"a.weight\", \"model\", \"b.weight\"")) !=
        "whole-checkpoint request");
}

TEST_CASE("explain: groups and bits of a quantised weight are not ranks") {
  CHECK(first(explain("size mismatch for a.q_proj.scales: copying a param with shape "
                      "torch.Size([1, 4096]) from checkpoint, the shape in current model is "
                      "torch.Size([32, 4096]).")) == "H-QG request");
  CHECK(first(explain("size mismatch for a.qkv.weight: copying a param with shape "
                      "torch.Size([4608, 2048]) from checkpoint, the shape in current model is "
                      "torch.Size([4608, 4096]).")) == "H-Q either");
}

TEST_CASE("explain: a reshape of a nameless tensor gives both numbers of elements") {
  const Explanation reshape =
      explain("RuntimeError: shape '[320, 60]' is invalid for input of size 13107");
  REQUIRE_FALSE(reshape.hypotheses.empty());
  CHECK(reshape.hypotheses[0].id == "H-RS");
  CHECK(reshape.hypotheses[0].text.find("13107") != std::string::npos);
  CHECK(reshape.hypotheses[0].text.find("19200") != std::string::npos);
}
