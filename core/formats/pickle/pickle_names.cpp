#include "core/formats/pickle/pickle_names.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/formats/pickle/pickle_calls.h"

namespace shw {
namespace {

// sys.stdlib_module_names of Python 3.11, followed by modules of other versions since 2.7.
constexpr std::string_view kPythonModules =
    " __future__ _abc _aix_support _ast _asyncio _bisect _blake2 _bootsubprocess _bz2 "
    "_codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw "
    "_collections _collections_abc _compat_pickle _compression _contextvars _crypt _csv "
    "_ctypes _curses _curses_panel _datetime _dbm _decimal _elementtree "
    "_frozen_importlib _frozen_importlib_external _functools _gdbm _hashlib _heapq _imp "
    "_io _json _locale _lsprof _lzma _markupbase _md5 _msi _multibytecodec "
    "_multiprocessing _opcode _operator _osx_support _overlapped _pickle _posixshmem "
    "_posixsubprocess _py_abc _pydecimal _pyio _queue _random _scproxy _sha1 _sha256 "
    "_sha3 _sha512 _signal _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics "
    "_string _strptime _struct _symtable _thread _threading_local _tkinter _tokenize "
    "_tracemalloc _typing _uuid _warnings _weakref _weakrefset _winapi _zoneinfo abc "
    "aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 "
    "bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code "
    "codecs codeop collections colorsys compileall concurrent configparser contextlib "
    "contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal "
    "difflib dis distutils doctest email encodings ensurepip enum errno faulthandler "
    "fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt "
    "getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib "
    "imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache "
    "locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib "
    "msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode "
    "operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil "
    "platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile "
    "pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource "
    "rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site "
    "smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants "
    "sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable "
    "sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this "
    "threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc "
    "tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv "
    "warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp "
    "zipfile zipimport zlib zoneinfo "
    " __builtin__ BaseHTTPServer CGIHTTPServer ConfigParser Cookie DocXMLRPCServer "
    "HTMLParser Queue SimpleHTTPServer SimpleXMLRPCServer SocketServer StringIO Tkinter "
    "UserDict UserList UserString _abcoll _winreg anydbm cPickle cStringIO commands "
    "cookielib copy_reg dbhash dumbdbm dummy_thread dummy_threading exceptions gdbm "
    "htmlentitydefs httplib imputil new popen2 repr robotparser rfc822 sets sha thread "
    "urllib2 urlparse user whichdb xmlrpclib _interpreters _interpqueues "
    "_xxsubinterpreters _xxinterpchannels annotationlib compression distutils ";
// Modules with side effects: first Python's, then those of other packages.
constexpr std::string_view kActingModules =
    " _ctypes _imp _frozen_importlib _frozen_importlib_external _multiprocessing _pickle "
    "_posixshmem _posixsubprocess _pyio _socket _sqlite3 _ssl _thread _winapi "
    "_interpreters _xxsubinterpreters __builtin__ anydbm antigravity asynchat asyncio "
    "asyncore atexit bdb builtins bz2 cPickle cProfile cgi cgitb cmd code codeop "
    "commands compileall concurrent ctypes dbhash dbm distutils doctest dumbdbm "
    "ensurepip faulthandler fileinput ftplib functools gc gdbm getpass gzip http httplib "
    "idlelib imaplib imp importlib imputil inspect lib2to3 linecache lzma mailbox "
    "marshal mmap modulefinder msilib multiprocessing netrc new nntplib nt operator os "
    "pdb pickle pickletools pipes pkgutil platform popen2 poplib posix profile pty "
    "py_compile pyclbr pydoc readline rlcompleter runpy sched shelve shutil site smtpd "
    "smtplib socket SocketServer socketserver sqlite3 ssl subprocess sys sysconfig "
    "syslog tarfile telnetlib tempfile thread threading timeit tkinter Tkinter trace "
    "tracemalloc turtle turtledemo unittest urllib urllib2 uu venv webbrowser winreg "
    "_winreg wsgiref xmlrpc xmlrpclib zipapp zipfile zipimport cloudpickle dill joblib "
    "klepto jsonpickle requests urllib3 httpx aiohttp paramiko fabric invoke sh plumbum "
    "pexpect ptyprocess psutil fsspec s3fs gcsfs boto3 botocore pip setuptools "
    "pkg_resources _distutils_hack wheel virtualenv pytest _pytest nose IPython "
    "ipykernel cffi pycparser cython Cython pyximport jinja2 mako yaml sympy twisted "
    "tornado flask django celery rpyc execnet torch_package ";
constexpr std::string_view kFrameworks =
    " accelerate apex axolotl bitsandbytes bytecheckpoint colossalai composer dacite "
    "datasets deepspeed diffusers einops fairscale fairseq fairseq2 fastai flash_attn "
    "hydra huggingface_hub lightning lightning_fabric lightning_utilities liger_kernel "
    "litgpt llmfoundry mamba_ssm mcore megatron mergekit mlx mmcv mmengine modelopt nemo "
    "nemo_automodel nemo_rl olmo olmo_core omegaconf open_clip openrlhf optimum peft "
    "pytorch_lightning ray sentence_transformers streaming tensordict timm tokenizers "
    "torch_optimizer torchao torchaudio torchdata torchmetrics torchrl torchtitan "
    "torchtune torchvision torchx transformer_engine transformers trl unsloth verl vllm "
    "wandb xformers ";
constexpr std::string_view kActingNames =
    " AsyncResult BZ2File CDLL CodeType ConfigurableFileHandler Connection "
    "DatagramHandler DataSource FTP FTP_TLS FileHandler FileIO FileInput "
    "FileSystemReader FileSystemWriter FileWriter FunctionType GzipFile HTTPConnection "
    "HTTPHandler HTTPSConnection IMAP4 IMAP4_SSL IMAP4_stream InteractiveConsole "
    "InteractiveInterpreter LZMAFile Listener LibraryLoader LocalPath MMDF MH Mailbox "
    "Maildir MemoryMappedFile NNTP NNTP_SSL NamedTemporaryFile NpzFile POP3 POP3_SSL "
    "PackageExporter PackageImporter Pool Popen Process ProcessPoolExecutor PyDLL "
    "PyTorchFileReader PyTorchFileWriter RotatingFileHandler SMTP SMTPHandler SMTP_SSL "
    "SafeFileHandler ServerProxy SharedMemory SocketHandler SocketType "
    "SpooledTemporaryFile StreamReaderWriter SummaryWriter SysLogHandler TCPServer "
    "TCPStore TarFile Telnet TemporaryDirectory TemporaryFile Thread ThreadPool "
    "ThreadPoolExecutor TimedRotatingFileHandler UDPServer UnixStreamServer Unpickler "
    "UnixDatagramServer WatchedFileHandler WinDLL ZipFile ZipImporter mbox ";

struct NamesOfModule {
  std::string_view module, names;
};
constexpr auto kMadeOfData = std::to_array<NamesOfModule>({
    {"logging", " getLogger "},
    {"itertools", " count repeat cycle chain islice product permutations combinations compress "},
    {"collections", " UserDict UserList UserString "},
    {"types", " MappingProxyType NoneType GenericAlias EllipsisType NotImplementedType "},
    {"ipaddress", " IPv4Address IPv4Network IPv6Address IPv6Network "},
    {"decimal", " Context DecimalTuple "},
    {"copyreg", " __newobj__ __newobj_ex__ "},
    {"copy_reg", " __newobj__ __newobj_ex__ "},
    {"random", " SystemRandom "},
    {"string", " Template "},
    {"uuid", " SafeUUID "},
    {"struct", " Struct "},
    {"_struct", " Struct "},
    {"torch.torch_version", " TorchVersion "},
    {"torch._utils", " _rebuild_nested_tensor "},
    {"torch._tensor", " _rebuild_from_type "},
    {"torch.nested._internal.nested_tensor", " NestedTensor _rebuild_njt "},
    {"joblib.numpy_pickle", " NumpyArrayWrapper "},
    {"torch.jit._pickle",
     " build_intlist build_doublelist build_boollist build_tensorlist "
     "build_tensor_from_id restore_type_tag "},
    {"numpy",
     " float16 float32 float64 longdouble int8 int16 int32 int64 intc intp longlong uint8 uint16 "
     "uint32 uint64 uintc uintp ulonglong bool_ bool complex64 complex128 clongdouble str_ bytes_ "
     "void datetime64 timedelta64 float_ int_ matrix recarray record "},
    {"numpy.ma.core", " MaskedArray _mareconstruct "},
    {"jax._src.array", " _reconstruct_array "},
    {"numpy.rec", " recarray record "},
    {"numpy.core.records", " recarray record "},
    {"numpy.matrixlib.defmatrix", " matrix "},
});
// Modules of which classes, but not functions, are data: layers, optimizers, placements, samplers,
// typed numbers.
constexpr auto kModulesOfDataClasses =
    std::to_array<std::string_view>({"torch.nn",
                                     "torch.optim",
                                     "torch.amp",
                                     "torch.cuda.amp",
                                     "torch.ao",
                                     "torch.quantization",
                                     "torch.sparse",
                                     "torch.return_types",
                                     "torch.utils.data",
                                     "torch.utils._pytree",
                                     "torch.distributed.tensor",
                                     "torch.distributed._tensor",
                                     "torch.distributed._shard",
                                     "torch.distributed.fsdp",
                                     "torch.distributed._composable",
                                     "torch.distributed.device_mesh",
                                     "torch.distributed._mesh_layout",
                                     "torch.distributed.checkpoint.metadata",
                                     "torch.distributed.checkpoint.planner",
                                     "torch.distributed.checkpoint.state_dict",
                                     "torch.distributed.checkpoint.stateful",
                                     "torch.distributed.algorithms",
                                     "numpy.dtypes",
                                     "numpy.polynomial"});

bool has_name_word(std::string_view words, std::string_view word) {
  return !word.empty() && word.find(' ') == word.npos &&
         words.find(" " + std::string(word) + " ") != words.npos;
}
std::string_view package_of(std::string_view module) {
  return module.substr(0, module.find('.'));
}
bool is_inside(std::string_view module, std::string_view home) {
  return module.starts_with(home) && (module.size() == home.size() || module[home.size()] == '.');
}

}  // namespace

ModuleOrigin module_origin(std::string_view module) {
  const std::string_view package = package_of(module);
  if (package == "torch" || package == "numpy") return ModuleOrigin::kLibrary;
  if (package == "__main__" || package == "__mp_main__") return ModuleOrigin::kMain;
  if (has_name_word(kPythonModules, package)) return ModuleOrigin::kPython;
  return has_name_word(kFrameworks, package) ? ModuleOrigin::kFramework : ModuleOrigin::kUnknown;
}

bool has_side_effects_in_module(std::string_view module) {
  return has_name_word(kActingModules, package_of(module)) || module == "logging.config" ||
         module == "logging.handlers" || is_inside(module, "torch.package") ||
         is_inside(module, "torch.hub") || is_inside(module, "torch.utils.cpp_extension");
}

bool is_script_module(std::string_view module) {
  return is_inside(module, "__torch__");
}

bool is_path_of_classes(std::string_view name) {
  while (true) {
    const std::size_t dot = name.find('.');
    if (!resembles_class_name(name.substr(0, dot))) return false;
    if (dot == name.npos) return true;
    name.remove_prefix(dot + 1);
  }
}

bool has_side_effects_in_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot != name.npos && !resembles_class_name(name.substr(0, dot))) return true;
  const std::size_t last = name.rfind('.');
  return has_name_word(kActingNames, last == name.npos ? name : name.substr(last + 1));
}

bool constructs_data_only(std::string_view module, std::string_view name) {
  for (const NamesOfModule& row : kMadeOfData) {
    if (row.module == module && has_name_word(row.names, name)) return true;
  }
  if (module == "torch._utils" && name.starts_with("_rebuild_")) return true;
  return is_path_of_classes(name) &&
         std::any_of(kModulesOfDataClasses.begin(), kModulesOfDataClasses.end(),
                     [&](std::string_view home) { return is_inside(module, home); });
}

}  // namespace shw
