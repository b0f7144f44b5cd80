// Messages about unreadable bytes: torch's zip files, pickles, safetensors.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kCut = "a data file was cut off";
constexpr std::string_view kSizeDecides =
    "The size of the file named in the traceback against where it was written.";

// "invalid load key, 'v'": the first byte of the file.
bool is_key(const ErrorMessage& message, std::string_view key) {
  return message.name == key;
}

constexpr MessageKind kByteMessages[] = {
    {.id = "no-central-directory",
     .example = "PytorchStreamReader failed reading zip archive: failed finding central directory",
     .patterns = {"failed finding central directory"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = kCut,
                    .text = "Every item is a zip archive whose directory stands at its end. Where "
                            "a file ends too early (full disk, killed job, copy that stopped) the "
                            "end is not there.",
                    .decide = kSizeDecides},
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the place of an item is not where an archive is",
                    .text = "The offset or the length that .metadata records leads into the middle "
                            "of the file: a data file of another save, or bytes that changed.",
                    .decide = "Whether .metadata and the data files are of one save: their times "
                              "and their sizes.",
                    .command = "--data"}}}},
    {.id = "bad-archive",
     .example = "PytorchStreamReader failed reading file data/3: invalid header or archive is "
                "corrupted",
     .patterns = {"invalid header or archive is corrupted",
                  "file in archive is not in a subdirectory", "checksum mismatch",
                  "crc-32 check failed", "bad crc-32 for file"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "the bytes of an item are damaged",
                    .text = "The archive of an item cannot be read or its checksum is wrong: the "
                            "disk, the network or an interrupted copy changed it. Only this item "
                            "is affected.",
                    .decide = "The same file where it was written, compared byte for byte.",
                    .command = "--data"},
                   {.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.4,
                    .title = kCut,
                    .text = "The file ends inside an item, or is empty.",
                    .decide = "The size of the file where it was written."}}}},
    {.id = "not-a-zip",
     .example = "zipfile.BadZipFile: File is not a zip file",
     .patterns = {"file is not a zip file", "not a zip archive"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.5,
                    .title = kCut,
                    .text = "The list of contents stands at the end of a zip file, and no such "
                            "list was found: a download, a copy or a save stopped.",
                    .decide = "The size of the file where it was written."},
                   {.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.45,
                    .title = "the file is of another format than its ending says",
                    .text = "A .pt of torch before 1.6, a safetensors or HDF5 file, a Git LFS "
                            "pointer or a web page under this name is not a zip file.",
                    .decide = "The first bytes of the file: `head -c 100 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "table-checksum",
     .example = "DataLossError: Checksum does not match: stored 1216405867 vs. calculated on the "
                "restored bytes 3289304842",
     .patterns = {"checksum does not match: stored <#stored> vs. calculated on the restored bytes"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "bytes of a tensor are not those that were saved",
                    .text = "TensorFlow keeps a checksum of each tensor in the .index file. The "
                            "data file was damaged by a disk or a copy, or the .index is of "
                            "another save. Copy both files again, or take the step before.",
                    .decide = "Sizes and times of .index and .data files where they were written.",
                    .command = "--data"}}},
     .loader = "TensorFlow"},
    {.id = "write-failed",
     .example = "PytorchStreamWriter failed writing file data/12: file write failed",
     .patterns = {"pytorchstreamwriter failed writing"},
     .meanings = {{{.id = "unfinished-save",
                    .rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "a save could not write its file to the end",
                    .text = "As a rule the disk or a quota is full; a network file system that "
                            "went away does it too. What this save left is not whole. Make room "
                            "and save again; resume from the step before it.",
                    .decide = "`df -h` and the quota of the folder (`quota -s`).",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "torch-load-refused",
     .example = "Due to a serious vulnerability issue in `torch.load`, even with "
                "`weights_only=True`, we now require users to upgrade torch to at least v2.6",
     .patterns = {"serious vulnerability issue in `torch.load`"},
     .meanings = {{{.id = "older-torch",
                    .wrong = kLoader,
                    .weight = 0.97,
                    .title = "transformers does not open .bin files under torch before 2.6",
                    .text = "The tensors are not in question. Update torch, or use the model's "
                            "safetensors: `shardwright convert CHECKPOINT --to safetensors --out "
                            "NEW` writes them without running the pickle. For optimizer.pt of a "
                            "resume only the update helps.",
                    .decide = "Nothing: the message says it.",
                    .command = "shardwright convert CHECKPOINT --to safetensors --out NEW"}}},
     .loader = "transformers"},
    {.id = "plain-pickle",
     .example = "A load persistent id instruction was encountered, but no persistent_load function "
                "was specified.",
     .patterns = {"a load persistent id instruction was encountered",
                  "persistent ids in protocol 0 must be ascii strings"},
     .meanings = {{{.id = "other-loader",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "a file of torch.save was opened with plain pickle",
                    .text = "torch keeps the tensors beside the pickle, and only torch.load brings "
                            "both together. The file may be sound. Use torch.load, or convert it: "
                            "`shardwright convert CHECKPOINT --to safetensors --out NEW`.",
                    .decide = "What the tool takes the file for.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "not-an-array",
     .example = "ValueError: Cannot load file containing pickled data when allow_pickle=False",
     .patterns = {"cannot load file containing pickled data when allow_pickle=false",
                  "this file contains pickled (object) data",
                  "object arrays cannot be loaded when allow_pickle=false"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the file is not an array of NumPy, or holds Python objects",
                    .text = "np.load takes every file without its own first bytes for a pickle: a "
                            "torch file, a Git LFS pointer, a web page. allow_pickle=True runs "
                            "code from the file: look at it first.",
                    .decide = "The first bytes of the file: `head -c 100 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "NumPy"},
    {.id = "msgpack-cut",
     .example = "ValueError: Unpack failed: incomplete input",
     .patterns = {"unpack failed: incomplete input", "msgpack.exceptions.outofdata"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "a msgpack file (Flax) is cut off or empty",
                    .text = "A download, a copy or a save stopped before its end. Git LFS pointers "
                            "and folders of Orbax under the name of a file end so too.",
                    .decide = "The size of the file where it was written.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "Flax"},
    {.id = "other-archive",
     .example = "KeyError: \"filename 'storages' not found\"",
     .patterns = {"filename 'storages' not found", "filename 'pickle' not found",
                  "filename 'tensors' not found"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the file is a tar archive that torch.save did not write",
                    .text = "torch.load takes every tar file for the form it wrote before 2017. "
                            "This one holds other files (a .nemo archive, a packed folder, a "
                            "download that was not unpacked): unpack it and load what is in it.",
                    .decide = "What `tar tf FILE` lists.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "not-a-table",
     .example = "DataLossError: Unable to open table file model.ckpt: Data loss: not an sstable "
                "(bad magic number)",
     .patterns = {"unable to open table file <name>", "not an sstable (bad magic number)"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "TensorFlow was given a file that is not the index of a checkpoint",
                    .text =
                        "A checkpoint of TensorFlow is named by its prefix: model.ckpt-100, not "
                        "model.ckpt-100.data-00000-of-00001. A file of PyTorch or Keras has "
                        "another form, whatever its ending.",
                    .decide = "What the tool takes the file for.",
                    .command = "shardwright info CHECKPOINT"},
                   {.id = "short-file",
                    .rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.3,
                    .title = kCut,
                    .text = "The .index file is empty or cut off.",
                    .decide = kSizeDecides}}},
     .loader = "TensorFlow"},
    {.id = "archive-unreadable",
     .example = "PytorchStreamReader failed reading zip archive",
     .patterns = {"pytorchstreamreader failed reading", "internal miniz error"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.5,
                    .title = "an item's archive cannot be read",
                    .text = "A file is cut off, damaged, or of another save than .metadata. The "
                            "rest of the line says which; here it is missing.",
                    .decide = "The end of the line, after \"failed reading ...:\".",
                    .command = "--data"}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "record-not-found",
     .example = "PytorchStreamReader failed locating file data.pkl: file not found",
     .patterns = {"pytorchstreamreader failed locating file <name>",
                  "expected hasrecord(\"version\")"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "the file is a zip, but not one that torch.save wrote whole",
                    .text = "The archive opens and a part that torch always writes is not in it: "
                            "it was unpacked and packed again, written by another tool, or its "
                            "directory lists less than the file holds.",
                    .decide = "What is in the archive: `unzip -l FILE`.",
                    .command = "--data"},
                   {.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.3,
                    .title = "the file is of another format",
                    .text = "TorchScript archives, .npz and .keras files are zips too.",
                    .decide = "Which program wrote the file.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "unexpected-eof",
     .example = "unexpected EOF, expected 4096 more bytes. The file might be corrupted.",
     .patterns = {"unexpected eof, expected <#missing_bytes> more bytes",
                  "truncated file: eof = <#found_bytes>, sblock->base_addr = ~stored_eof = "
                  "<#expected_bytes>"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.9,
                    .title = kCut,
                    .text = "The reader came to the end of the file before the bytes that it was "
                            "to hold: a full disk, a killed job, a copy or a download that "
                            "stopped. What was read before the end may be whole.",
                    .decide = kSizeDecides}}}},
    {.id = "storage-size",
     .example = "storage has wrong byte size: expected 1018874368 got 0",
     .patterns = {"storage has wrong byte size: expected <#expected_bytes> got <#found_bytes>",
                  "storage has wrong size: expected <#expected_elements> got <#found_elements>",
                  "storage has wrong byte size", "storage has wrong size"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "a file in torch's older format is damaged or cut off",
                    .text = "The length that stands before a tensor's bytes is not the tensor's: "
                            "the file ends too early, holds zeros where a download left a hole, "
                            "or was read at a wrong place. Tensors before it may be whole.",
                    .decide = kSizeDecides,
                    .command = "--data"},
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "bytes inside the file changed",
                    .text = "The file has its full size, but not the bytes that were written: "
                            "another transfer wrote into it, or a disk or network fault.",
                    .decide = "A checksum of the file where it was written.",
                    .command = "--data"}}}},
    {.id = "git-lfs-pointer",
     .example = "invalid load key, 'v'.",
     .patterns = {"invalid load key, <name>", "cloned a repository without having git-lfs"},
     .meanings = {{{.id = "git-lfs-pointer",
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the file is a Git LFS pointer, not the weights",
                    .text = "It begins with \"version https://git-lfs...\", about 130 bytes of "
                            "text: the repository was cloned without Git LFS. Fetch the file with "
                            "`git lfs pull` or download it.",
                    .decide = "The first bytes and the size of the file: `head -c 100 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.empty() || is_key(message, "v"); }},
    {.id = "web-page",
     .example = "invalid load key, '<'.",
     .patterns = {"invalid load key, <name>"},
     .meanings = {{{.id = "web-page",
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the file is a web page, not the weights",
                    .text = "It begins with \"<\", as HTML and XML do: a download got a login or "
                            "error page in the place of the file.",
                    .decide = "The first bytes of the file: `head -c 300 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_key(message, "<"); }},
    {.id = "zeroed-file",
     .example = "invalid load key, '\\x00'.",
     .patterns = {"invalid load key, <name>"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "the file begins with zeros",
                    .text = "Its length was set and its first bytes were never written: a copy, an "
                            "upload or a save that was interrupted, or a sparse file that was "
                            "restored empty.",
                    .decide = "Whether the file holds anything but zeros, and when it was written.",
                    .command = "--data"}}},
     .accepts = [](const ErrorMessage& message) { return is_key(message, "\\x00"); }},
    {.id = "invalid-load-key",
     .example = "invalid load key, 'E'.",
     .patterns = {"invalid load key, <name>", "invalid magic number; corrupt file"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.5,
                    .title = "the file is no pickle: another format, or compressed",
                    .text = "Its first byte begins no pickle and no zip. safetensors, GGUF, HDF5 "
                            "and gzip files all end so where torch.load opens them.",
                    .decide = "What the tool takes the file for.",
                    .command = "shardwright info CHECKPOINT"},
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.4,
                    .title = "the first bytes are damaged",
                    .text = "The file was overwritten at its beginning, or it is the middle of a "
                            "file that was cut in parts.",
                    .decide = "The first bytes of the file where it was written: `head -c 16`.",
                    .command = "--data"}}}},
    {.id = "pickle-cut",
     .example = "pickle data was truncated",
     .patterns = {"pickle data was truncated", "ran out of input", "eoferror",
                  "unpickling stack underflow", "pickle exhausted before seeing stop"},
     .meanings = {{{.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "a pickle was cut off",
                    .text = "The file ends before its pickle does, or is empty: a full disk, a "
                            "killed job, a copy that stopped. In a DCP checkpoint it is .metadata, "
                            "which is written last: a cut one means that the save did not end, and "
                            "the data files may be whole.",
                    .decide = "The size of the file that the traceback opens, and whether an "
                              "earlier step loads."},
                   {.rule = &kUnsafePickle,
                    .wrong = kDisk,
                    .weight = 0.15,
                    .title = "the file is no pickle of torch",
                    .text = "A download page or a Git LFS pointer in the place of the file.",
                    .decide = "The first bytes of the file: `head -c 100`."}}}},
    {.id = "pickled-by-python-3.13",
     .example = "No module named 'pathlib._local'; 'pathlib' is not a package",
     .patterns = {"no module named 'pathlib._local", "no module named \"pathlib._local",
                  "unsupported global: global pathlib._local", "unsupported class pathlib._local"},
     .meanings = {{{.rule = &kPortability,
                    .wrong = kDisk,
                    .weight = 0.97,
                    .title = "saved under Python 3.13, opened under an older one",
                    .text = ".metadata holds a path, and Python 3.13 pickles it as "
                            "pathlib._local.PosixPath, which Python 3.12 and older do not have. "
                            "The data is sound; `shardwright repair` writes .metadata anew without "
                            "it, or load under Python 3.13.",
                    .decide = "Python versions of both runs."}}}},
    {.id = "unsafe-global",
     .example = "Weights only load failed ... Unsupported global: GLOBAL NAME",
     .patterns = {"unsupported global: global <name>", "unsupported class <name>",
                  "trying to load unsupported global <name>",
                  "trying to instantiate unsupported class <name>"},
     .meanings = {{{.rule = &kUnsafePickle,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "the pickle names a class that torch does not allow",
                    .text = "torch.load with weights_only refuses every class but a short list. It "
                            "may be a harmless class of a library, or an attack. Shardwright reads "
                            "the pickle without running anything.",
                    .decide = "Where the file comes from and which class it names."},
                   {.rule = &kPortability,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the class is of another version",
                    .text = "A class that moved between versions of torch or Python is refused as "
                            "unknown.",
                    .decide = "torch and Python versions of both runs."}}}},
    {.id = "weights-only",
     .example = "Weights only load failed.",
     .patterns = {"weights only load failed", "cve-2025-32434"},
     .meanings = {{{.rule = &kUnsafePickle,
                    .wrong = kLoader,
                    .weight = 0.5,
                    .title = "torch refuses to unpickle this file",
                    .text = "Since torch 2.6 torch.load takes plain tensors only unless "
                            "weights_only=False is said, and transformers takes no .bin under an "
                            "older torch. The file may be sound. The rest of the message names the "
                            "class that was refused.",
                    .decide = "The line that begins with \"Unsupported\", and where the file comes "
                              "from."}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "class-not-here",
     .example = "AttributeError: Can't get attribute 'NAME' on <module ...>",
     .patterns = {"can't get attribute <name>"},
     .meanings = {{{.rule = &kPortability,
                    .weight = 0.7,
                    .title = "the file needs a class that is not installed here",
                    .text = "A pickle holds objects by the name of their class, and the program "
                            "that opens it lacks that class: the framework that saved is not "
                            "installed, or another version of it is. The tensors are sound.",
                    .decide = "Which package the name belongs to, and its version in the run that "
                              "saved."}}}},
    {.id = "pickled-by-numpy-2",
     .example = "ModuleNotFoundError: No module named 'numpy._core'",
     .patterns = {"modulenotfounderror: no module named <name>"},
     .meanings = {{{.rule = &kPortability,
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "saved under NumPy 2, opened under NumPy 1",
                    .text = "The pickle holds a NumPy value, and NumPy 2 moved its classes to "
                            "numpy._core. The tensors are sound. Update NumPy to 2 where the file "
                            "is opened.",
                    .decide = "`python -c 'import numpy; print(numpy.__version__)'` in both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.starts_with("numpy._core"); }},
    {.id = "module-not-here",
     .example = "ModuleNotFoundError: No module named 'NAME'",
     .patterns = {"modulenotfounderror: no module named <name>"},
     .meanings = {{{.id = "module-not-here",
                    .wrong = kLoader,
                    .weight = 0.5,
                    .title = "a package is not installed here",
                    .text = "Where the program itself imports it, no checkpoint has to do with it. "
                            "Where the traceback goes through torch.load or pickle, the file holds "
                            "an object of a class of that package: install it in the version of "
                            "the save.",
                    .decide = "Whether the traceback above goes through torch.load or pickle.",
                    .command = "shardwright info CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .accepts =
         [](const ErrorMessage& message) { return !message.name.starts_with("pathlib._local"); }},
    {.id = "older-float8",
     .example = "'UntypedStorage' object has no attribute 'dtype'",
     .patterns = {"'untypedstorage' object has no attribute 'dtype'",
                  "untypedstorage has no attribute 'dtype'"},
     .meanings = {{{.id = "older-float8",
                    .rule = &kPortability,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "float8 in torch's older file format",
                    .text = "torch.save without the zip format writes float8 and unsigned tensors "
                            "in a way that torch.load with weights_only cannot read back. The "
                            "bytes are sound.",
                    .decide = "Whether the run saved with _use_new_zipfile_serialization=False.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "no-cuda-here",
     .example =
         "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
         "False",
     .patterns = {"attempting to deserialize object on",
                  "don't know how to restore data location of",
                  "device module is not registered. if you are running on a cpu-only machine"},
     .meanings = {{{.id = "device-not-here",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "the tensors were saved on a GPU that is not here",
                    .text = "The checkpoint is good. Load with map_location=\"cpu\".",
                    .decide = "Nothing: the message says it.",
                    .command = "shardwright info CHECKPOINT"}}}},
};

}  // namespace

std::span<const MessageKind> byte_messages() {
  return kByteMessages;
}

}  // namespace shw
