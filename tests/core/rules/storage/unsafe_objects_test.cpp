// BYTES entries with pickles that use more than a checkpoint needs, made by hand, opcode by opcode.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/formats/object_pickle.h"
#include "core/make_zip.h"
#include "core/rules/check.h"
#include "core/rules/on_fixtures.h"
#include "core/rules/storage/one_entry.h"

using namespace shw;
using namespace shw::test;

namespace {

std::vector<Finding> found(const std::string& item, Depth depth = Depth::kHeaders) {
  CheckOptions options;
  options.depth = depth;
  auto report = check(*with_object(item), options);
  REQUIRE(report.has_value());
  std::erase_if(report->findings, [](const Finding& f) { return f.rule != "unsafe-pickle"; });
  return report->findings;
}

std::string saved(const std::string& pickle) {
  return make_zip({{"archive/data.pkl", pickle}, {"archive/version", "3\n"}});
}

// os.system('id'), as pickle writes it.
const std::string kSystem(
    "\x80\x02"
    "cposix\nsystem\nX\x02\x00\x00\x00id\x85R.",
    26);

}  // namespace

TEST_CASE("a call that no checkpoint needs is an error in an object too, with file and byte") {
  for (const std::string& item : {kSystem, saved(kSystem)}) {
    CHECK(found(item, Depth::kMetadata).empty());
    for (Depth depth : {Depth::kHeaders, Depth::kData}) {
      auto findings = found(item, depth);
      REQUIRE(findings.size() == 1);
      CHECK(findings[0].severity == Severity::kError);
      CHECK(findings[0].subjects == std::vector<std::string>{"rng"});
      CHECK(findings[0].cause.find("posix.system") != std::string::npos);
      // Offset of REDUCE in the file.
      CHECK(number(findings[0], "offset") ==
            static_cast<std::int64_t>(kBefore + item.find("\x85R.") + 1));
    }
  }
}

TEST_CASE("what is asked for decides how bad it is") {
  struct Case {
    const char* pickle;
    std::optional<Severity> severity;
  };
  const Case cases[] = {
      {"c__builtin__\neval\n(S'1'\ntR.", Severity::kError},
      {"csubprocess\nPopen\n(tR.", Severity::kError},
      {"cos\nsystem\n.", Severity::kError},          // imported, not yet called
      {"(S'id'\nios\nsystem\n.", Severity::kError},  // INST
      {"c__builtin__\ngetattr\n(cos\n_wrap_close\nS'x'\ntR.", Severity::kError},
      // torch.distributed.checkpoint executes the call, wherever the name is from.
      {"cmy.program\nmake\n(tR.", Severity::kError},
      {"cmy.program\nmake\n.", Severity::kInfo},
      {"cmy.program\nConfig\n)\x81.", Severity::kInfo},
      {"cmy.program\nConfig\n.", Severity::kInfo},
      {"c__main__\n_State\n(tR.", Severity::kInfo},
      {"c__main__\nmake\n(tR.", Severity::kError},
      {"ctransformers.trainer_utils\nIntervalStrategy\n(S'steps'\ntR.", Severity::kInfo},
      {"ctransformers.trainer_utils\nset_seed\n(tR.", Severity::kWarning},
      {"ctransformers.utils\nos.system\n(tR.", Severity::kError},
      {"cdeepspeed.launcher.runner\nPopen\n(tR.", Severity::kError},
      {"cfunctools\npartial\n(ctorch\nfloat32\ntR.", Severity::kInfo},
      {"ccollections\nOrderedDict\n)R.", std::nullopt},
      {"cargparse\nNamespace\n)\x81}(S'a'\nK\x01ub.", std::nullopt},
      {"cdatetime\ntimedelta\n(K\x01tR.", std::nullopt},
      {"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(tS'b'\ntR.", std::nullopt},
      {"c_io\nBytesIO\n(S'a'\ntR.", std::nullopt},
      {"ctorch._utils\n_rebuild_tensor_v2\n(tR.", std::nullopt},
      {"cmegatron.core.enums\nModelType\n(K\x01tR.", std::nullopt},
      // Members of enumerations, as Python 3.11.0 to 3.11.3 pickle them; here the result is also
      // called or changed.
      {"cbuiltins\ngetattr\n(cmegatron.core.enums\nModelType\nS'retro'\ntR.", std::nullopt},
      {"cbuiltins\ngetattr\n(c__main__\nColour\nS'RED'\ntR.", Severity::kInfo},
      {"cbuiltins\ngetattr\n(c__main__\nColour\nS'RED'\ntR(tR.", Severity::kError},
      {"cbuiltins\ngetattr\n(ctorch\nTensor\nS'add'\ntR}S'a'\nK\x01sb.", Severity::kError},
      {"cbuiltins\ngetattr\n(ctorch\nTensor\nS'add'\ntRS'a'\nK\x01s.", Severity::kError},
      // Objects of Python's standard library that are only created or stored.
      {"coperator\nattrgetter\n(S'a'\ntR.", Severity::kInfo},
      {"coperator\nattrgetter\n(S'a'\ntR(cmy.program\nConfig\ntR.", Severity::kError},
      {"coperator\nmethodcaller\n(S'a'\ntR.", Severity::kError},
      {"czoneinfo\nZoneInfo._unpickle\n(S'UTC'\nK\x01tR.", Severity::kInfo},
      {"cbuiltins\ngetattr\n(czoneinfo\nZoneInfo\nS'_unpickle'\ntR(S'UTC'\nK\x01tR.",
       Severity::kInfo},
      {"cbuiltins\ngetattr\n(czoneinfo\nZoneInfo\nS'__init__'\ntR(S'UTC'\ntR.", Severity::kError},
      {"cbuiltins\ngetattr\n(cmy.program\nConfig\nS'_unpickle'\ntR(tR.", Severity::kError},
      {"cbuiltins\nlen\n.", Severity::kInfo},
      {"cbuiltins\nmap\n(cbuiltins\nlen\n]tR.", Severity::kError},
      {"cbuiltins\nValueError\n(tR.", Severity::kInfo},
      {"cbuiltins\nexec\n.", Severity::kError},
      // torch calls the argument here.
      {"ctorch._tensor\n_rebuild_from_type_v2\n(cmy.program\nmake\nctorch\nTensor\n(t}tR.",
       Severity::kError},
      {"ctorch._tensor\n_rebuild_from_type_v2\n(coperator\nattrgetter\n(S'a'\ntRctorch\nTensor\n"
       "(t}tR.",
       Severity::kError},
      {"}.", std::nullopt},
  };
  for (const Case& one : cases) {
    CAPTURE(one.pickle);
    auto findings = found(saved(std::string("\x80\x02") + one.pickle));
    if (!one.severity) {
      CHECK(findings.empty());
      continue;
    }
    REQUIRE(!findings.empty());
    Severity worst = Severity::kInfo;
    for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
    CHECK(worst == *one.severity);
  }
}

// One call each, as lists of known payloads have them.
TEST_CASE(
    "unsafe pickles: whatever can act outside of a checkpoint is an error where it is called") {
  for (std::string_view one : {
           "os system",
           "posix system",
           "nt system",
           "os popen",
           "os execv",
           "os.path exists",
           "subprocess Popen",
           "subprocess run",
           "subprocess check_output",
           "builtins eval",
           "builtins exec",
           "builtins open",
           "builtins compile",
           "builtins __import__",
           "builtins breakpoint",
           "__builtin__ execfile",
           "__builtin__ file",
           "importlib import_module",
           "importlib.machinery SourceFileLoader",
           "runpy run_path",
           "runpy _run_code",
           "ctypes CDLL",
           "_ctypes dlopen",
           "pty spawn",
           "socket socket",
           "socket create_connection",
           "urllib.request urlopen",
           "urllib.request Request",
           "http.client HTTPSConnection",
           "http.server HTTPServer",
           "ftplib FTP",
           "smtplib SMTP",
           "imaplib IMAP4",
           "poplib POP3",
           "telnetlib Telnet",
           "nntplib NNTP",
           "webbrowser open",
           "shutil rmtree",
           "shutil copyfile",
           "tempfile NamedTemporaryFile",
           "tempfile mkdtemp",
           "zipfile ZipFile",
           "zipfile PyZipFile",
           "tarfile TarFile",
           "tarfile open",
           "gzip GzipFile",
           "bz2 BZ2File",
           "lzma LZMAFile",
           "dbm open",
           "dbm.dumb open",
           "shelve DbfilenameShelf",
           "sqlite3 connect",
           "sqlite3 Connection",
           "_sqlite3 Connection",
           "mailbox Maildir",
           "mailbox mbox",
           "logging FileHandler",
           "logging basicConfig",
           "logging.handlers RotatingFileHandler",
           "logging.handlers SocketHandler",
           "logging.config fileConfig",
           "logging.config listen",
           "multiprocessing Process",
           "multiprocessing.pool ThreadPool",
           "multiprocessing.util spawnv_passfds",
           "asyncio run",
           "asyncio.subprocess Process",
           "concurrent.futures ThreadPoolExecutor",
           "threading Thread",
           "_thread start_new_thread",
           "code interact",
           "code InteractiveInterpreter",
           "codeop compile_command",
           "timeit timeit",
           "timeit Timer",
           "cProfile run",
           "cProfile runctx",
           "profile Profile",
           "pdb run",
           "bdb Bdb",
           "trace Trace",
           "doctest debug_script",
           "distutils.spawn spawn",
           "distutils.file_util write_file",
           "pip main",
           "pip._internal main",
           "setuptools sandbox.run_setup",
           "idlelib.pyshell ModifiedInterpreter",
           "lib2to3.pgen2.pgen ParserGenerator",
           "numpy load",
           "numpy memmap",
           "numpy fromfile",
           "numpy genfromtxt",
           "numpy.f2py compile",
           "numpy.distutils.exec_command exec_command",
           "numpy.testing._private.utils runstring",
           "numpy.lib.npyio NpzFile",
           "numpy.lib._datasource DataSource",
           "torch load",
           "torch.hub load",
           "torch.hub download_url_to_file",
           "torch.jit load",
           "torch.jit._serialization load",
           "torch.package PackageImporter",
           "torch.package PackageExporter",
           "torch.serialization load",
           "torch.serialization _open_file",
           "torch.utils.cpp_extension load",
           "torch.utils.cpp_extension load_inline",
           "torch._C PyTorchFileWriter",
           "torch._C PyTorchFileReader",
           "torch._C _jit_script_compile",
           "torch.fx.graph_module reduce_graph_module",
           "torch.distributed FileStore",
           "torch.distributed TCPStore",
           "torch.distributed.rpc rpc_sync",
           "torch.distributed.elastic.multiprocessing start_processes",
           "torch.distributed.checkpoint.filesystem FileSystemWriter",
           "torch.utils.tensorboard SummaryWriter",
           "torch.utils.collect_env run",
           "torch._inductor.codecache compile_file",
           "torch.cuda memory._dump_snapshot",
           "operator methodcaller",
           "operator call",
           "operator setitem",
           "functools reduce",
           "functools partialmethod",
           "types FunctionType",
           "types CodeType",
           "types ModuleType",
           "pickle loads",
           "pickle Unpickler",
           "_pickle load",
           "dill loads",
           "cloudpickle loads",
           "joblib load",
           "marshal loads",
           "copyreg add_extension",
           "copy deepcopy",
           "io open",
           "io FileIO",
           "_io FileIO",
           "_io open",
           "_pyio FileIO",
           "pathlib PosixPath.write_text",
           "pkgutil get_data",
           "zipimport zipimporter",
           "zipapp create_archive",
           "py_compile compile",
           "compileall compile_file",
           "ensurepip bootstrap",
           "venv create",
           "cgitb Hook",
           "pydoc pipepager",
           "pydoc doc",
           "platform popen",
           "uuid _get_command_stdout",
           "uuid getnode",
           "mmap mmap",
           "fileinput FileInput",
           "linecache getlines",
           "imp load_source",
           "site addsitedir",
           "sys setrecursionlimit",
           "signal alarm",
           "atexit register",
           "gc set_debug",
           "weakref finalize",
           "xmlrpc.client ServerProxy",
           "socketserver TCPServer",
           "wsgiref.simple_server make_server",
           "ssl SSLContext",
           "select poll",
           "antigravity geohash",
           "turtle Screen",
           "tkinter Tk",
           "unittest main",
           "test.support.script_helper assert_python_ok",
           "inspect getsource",
           "modulefinder ModuleFinder",
           "netrc netrc",
           "resource setrlimit",
           "readline read_history_file",
           "rlcompleter Completer",
           "codecs open",
           "glob glob",
           "filecmp cmp",
           "xml.sax parse",
           "xml.etree.ElementTree ElementTree.write",
           "xml.dom.minidom parse",
           "plistlib load",
           "configparser ConfigParser.read",
           "csv writer",
           "email message_from_file",
           "mimetypes init",
           "wave open",
           "chunk Chunk",
           "requests get",
           "httpx Client",
           "paramiko SSHClient",
           "pexpect spawn",
           "fsspec open",
           "IPython embed",
           "aiohttp.client ClientSession",
           "jinja2 Template",
           "yaml unsafe_load",
           "sympy sympify",
           "pandas read_pickle",
           "pandas DataFrame.to_csv",
           "nltk download",
       }) {
    CAPTURE(one);
    const std::size_t blank = one.find(' ');
    const std::string module(one.substr(0, blank)), name(one.substr(blank + 1));
    const std::string global = "c" + module + "\n" + name + "\n";
    const auto text = [](const std::string& word) {
      return "X" + std::string(1, static_cast<char>(word.size())) + std::string(3, '\0') + word;
    };
    for (const std::string& pickle : {
             "\x80\x02" + global + "(S'x'\ntR.",
             "\x80\x02" + global + ")\x81}b.",
             "(S'x'\ni" + module + "\n" + name + "\n.",
             "(" + global + "S'x'\no.",
             "\x80\x04" + text(module) + text(name) + "\x93(S'x'\ntR.",
             "\x80\x02" + global + "q\x07" + "0h\x07(S'x'\ntR.",
             "\x80\x02"
             "ccopyreg\n_reconstructor\n(" +
                 global + global + "S'x'\ntR.",
             "\x80\x02"
             "ccopyreg\n__newobj__\n(" +
                 global + "S'x'\ntR.",
         }) {
      CAPTURE(pickle);
      Severity worst = Severity::kInfo;
      for (const Finding& finding : found(saved(pickle))) worst = std::max(worst, finding.severity);
      CHECK(worst == Severity::kError);
    }
  }
}

TEST_CASE(
    "unsafe pickles: classes of frameworks, torch and numpy that hold data are not an error") {
  for (const char* pickle : {
           "cmegatron.core.transformer.transformer_config\nTransformerConfig\n)\x81}b.",
           "ctransformers.training_args\nTrainingArguments\n)\x81}b.",
           "ctransformers.trainer_utils\nSaveStrategy\n(S'no'\ntR.",
           "caccelerate.utils.dataclasses\nDistributedType\n(S'NO'\ntR.",
           "caccelerate.state\nPartialState\n)\x81}b.",
           "cdeepspeed.runtime.fp16.loss_scaler\nDynamicLossScaler\n)\x81}b.",
           "colmo_core.distributed.checkpoint\nConfig.Inner\n)\x81}b.",
           "comegaconf.dictconfig\nDictConfig\n)\x81}b.",
           "ctorch.optim.adamw\nAdamW\n)\x81}b.",
           "ctorch.nn.modules.linear\nLinear\n)\x81}b.",
           "ctorch.distributed.tensor._dtensor_spec\nDTensorSpec\n)\x81}b.",
           "ctorch.torch_version\nTorchVersion\n(S'2.6'\ntR.",
           "ctorch.nn.functional\ngelu\n.",
           "cnumpy\nfloat64\n(K\x01tR.",
           "cnumpy.dtypes\nInt16DType\n)R.",
           "cnumpy.ma.core\n_mareconstruct\n(tR.",
           "clogging\ngetLogger\n(S'a'\ntR.",
           "ccollections\nUserDict\n)\x81}b.",
           "citertools\ncycle\n(]tR.",
           "ccopyreg\n_reconstructor\n(cargparse\nNamespace\nc__builtin__\nobject\nNtR}b.",
       }) {
    CAPTURE(pickle);
    for (const Finding& finding : found(saved(std::string("\x80\x02") + pickle)))
      CHECK(finding.severity == Severity::kInfo);
  }
}

TEST_CASE("unsafe pickles: what is imported and then changed is an error") {
  Severity worst = Severity::kInfo;
  for (const Finding& finding : found(saved("\x80\x02"
                                            "ctorch\nload\nN}U\x01"
                                            "aK\x01s\x86"
                                            "b.")))
    worst = std::max(worst, finding.severity);
  CHECK(worst == Severity::kError);
}

TEST_CASE("plain values of Python's own library raise nothing, as protocol 2 spells them") {
  for (const char* pickle : {
           "c__builtin__\nxrange\n(K\x01K\x03K\x01tR.",
           "c__builtin__\nEllipsis\n.",
           "c__builtin__\nNotImplemented\n.",
           "carray\narray\n(S'i'\n(K\x01ltR.",
           "carray\n_array_reconstructor\n(carray\narray\nS'i'\nK\x08S'a'\ntR.",
           "ccollections\nChainMap\n)\x81}S'maps'\n(}lsb.",
           "cre\n_compile\n(S'a'\nK tR.",
           "ctime\nstruct_time\n((K\x01t}tR.",
           "ctorch\nper_tensor_affine\n.",
       }) {
    CAPTURE(pickle);
    std::string bytes = std::string("\x80\x02") + pickle;
    CHECK(found(saved(bytes)).empty());
  }
}

TEST_CASE("the pairs of numbers in DeepSpeed's own files raise nothing") {
  const std::string call =
      "\x80\x02"
      "cdeepspeed.utils.tensor_fragment\nfragment_";
  CHECK(found(saved(call + "address\nK\x07K\x03\x86R.")).empty());
  CHECK(found(saved(call + "other\nK\x07K\x03\x86R.")).size() == 1);
}

TEST_CASE("pickles in a row, as torch saved before zip, are read one by one") {
  std::string plain("\x80\x02K\x01.", 5), hostile = kSystem;
  CHECK(found(plain + plain + plain + plain + plain + "raw bytes").empty());
  auto findings = found(plain + plain + plain + hostile + plain);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kError);
  CHECK(number(findings[0], "offset") > static_cast<std::int64_t>(kBefore + 3 * plain.size()));
}

TEST_CASE("what is not a pickle asks for nothing, and nested lists do not break the reader") {
  CHECK(found("hello world, this is a text").empty());
  CHECK(found("").empty());
  CHECK(found("PK").empty());
  CHECK(found(make_zip({{"archive/other", "x"}})).empty());
  std::string deep = "\x80\x02" + std::string(100'000, ']');
  for (int i = 0; i < 99'999; ++i) deep += 'a';
  for (const Finding& finding : found(saved(deep + ".")))
    CHECK(finding.severity == Severity::kInfo);
}

TEST_CASE("a hostile item cut off or bent anywhere is read without harm") {
  std::string whole = saved(kSystem);
  for (std::size_t length = 0; length < whole.size(); ++length) found(whole.substr(0, length));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit : {0, 3, 7}) {
      std::string bent = whole;
      bent[at] = static_cast<char>(bent[at] ^ 1 << bit);
      auto checkpoint = with_object(bent);
      auto scanned = scan_object(*checkpoint, 0);
      if (scanned) CHECK(scanned->names.size() <= 256);
    }
  }
}
