// Messages of the machine under a load or a save: file system, memory, devices, and ranks that wait
// for one another.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr Interpretation kHostMemory = {
    .id = "out-of-memory",
    .wrong = kLoader,
    .weight = 0.75,
    .title = "the machine's memory was full",
    .text =
        "Each rank that reads a whole file holds a copy of it. Load "
        "safetensors or with mmap=True, let one rank read and broadcast, or "
        "give the job (container, Slurm) more memory. If it was saving, that "
        "step is not whole: use the one before it.",
    .decide = "`dmesg` says \"Out of memory: Killed process\".",
    .command = "shardwright check CHECKPOINT"};

constexpr MessageKind kMachineMessages[] = {
    {.id = "rename-race",
     .example = "No such file or directory: 'out/tmp-checkpoint-500' -> 'out/checkpoint-500'",
     .patterns = {"tmp-checkpoint-<#step>"},
     .meanings = {{{.id = "save-race",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "several processes renamed the folder of one save",
                    .text = "Some versions of Trainer (about 4.37) write to tmp-checkpoint-N and "
                            "rename it. On several nodes or a slow file system one process comes "
                            "too late. Update transformers: later versions write checkpoint-N "
                            "directly. This step may lack files of some ranks.",
                    .decide = "Whether checkpoint-N and tmp-checkpoint-N are both there.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "transformers"},
    {.id = "stale-handle",
     .example = "OSError: [Errno 116] Stale file handle: 'FILE'",
     .patterns = {"stale file handle: <name>", "stale nfs file handle", "stale file handle"},
     .meanings = {{{.id = "file-replaced",
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "another node removed or replaced the file while it was open",
                    .text = "A network file system says this when the open file is no longer the "
                            "one on the server: a clean-up of old steps, a save into the same "
                            "folder, or a server that was restarted. Open it again; if that fails, "
                            "mount anew.",
                    .decide = "Whether the file is still there from another node.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "read-error",
     .example = "OSError: [Errno 5] Input/output error: 'FILE'",
     .patterns = {"[errno 5] input/output error: <name>", "[errno 5] input/output error",
                  "input/output error (os error 5)"},
     .meanings = {{{.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.8,
                    .title = "the disk or the storage server could not read or write the bytes",
                    .text = "The system gave up on a block: a failing disk, or a file server that "
                            "went away. Look into `dmesg` and try another node. If the file "
                            "cannot be read there either, take it from another copy.",
                    .decide = "`cat FILE > /dev/null` on two nodes.",
                    .command = "--data"}}}},
    {.id = "read-only",
     .example = "OSError: [Errno 30] Read-only file system: 'FOLDER'",
     .patterns = {"read-only file system: <name>", "read-only file system"},
     .meanings = {{{.id = "cannot-write",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the place to write is mounted read-only",
                    .text = "Nothing was written. The path is a data set or image mount, or the "
                            "system made a failing disk read-only. Set the output folder (or "
                            "HF_HOME for the cache) to a place that can be written.",
                    .decide = "`mount` shows ro for that path.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "no-permission",
     .example = "PermissionError: [Errno 13] Permission denied: 'FILE'",
     .patterns = {"[errno 13] permission denied: <name>", "permission denied (os error 13)",
                  "permissionerror at <name> when downloading"},
     .meanings = {{{.id = "cannot-open",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "this user may not read or write there",
                    .text = "Nothing is said about the bytes. The files belong to another user "
                            "(often root, from a container), or the cache folder does. Change the "
                            "owner (`chown -R`), or set HF_HOME or the output folder elsewhere.",
                    .decide = "`ls -ld` of the path and `id`, in the same job or container.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "too-many-files",
     .example = "OSError: [Errno 24] Too many open files: 'FILE'",
     .patterns = {"too many open files: <name>", "too many open files"},
     .meanings = {{{.id = "open-files",
                    .wrong = kLoader,
                    .weight = 0.92,
                    .title = "the process has more files open than it may",
                    .text = "Checkpoints with thousands of shards, or data loader workers, need "
                            "more than the limit. Raise it before the start: `ulimit -n 65536`. A "
                            "save that stopped so is not whole.",
                    .decide = "`ulimit -n` in the job.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "name-too-long",
     .example = "OSError: [Errno 36] File name too long: 'FILE'",
     .patterns = {"file name too long: <name>"},
     .meanings = {{{.id = "name-too-long",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "a file name is longer than the file system takes",
                    .text = "Most take 255 bytes. The name was made of a tensor's or a model's "
                            "whole name, or JSON text was given where a path is expected. Nothing "
                            "was written or read.",
                    .decide = "The name in the message.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "folder-exists",
     .example = "FileExistsError: [Errno 17] File exists: 'FOLDER'",
     .patterns = {"[errno 17] file exists: <name>"},
     .meanings = {{{.id = "already-there",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the folder is there already, of an earlier save or another rank",
                    .text = "Each rank made the same folder and one was later, or a run before "
                            "this one left it. Nothing was written over it. Let rank 0 make it "
                            "(exist_ok=True), or choose another folder.",
                    .decide = "The times of the files in the folder.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "file-locked",
     .example = "BlockingIOError: Unable to create file (unable to lock file, errno = 11)",
     .patterns = {"unable to lock file"},
     .meanings = {{{.id = "file-locked",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "another process has the HDF5 file open, or locks do not work there",
                    .text = "HDF5 locks a file that it opens. Close the other process (a notebook, "
                            "another rank); on network file systems without locks start with "
                            "HDF5_USE_FILE_LOCKING=FALSE.",
                    .decide = "`lsof FILE` on the nodes that use it.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "HDF5"},
    {.id = "gpu-memory",
     .example = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
     .patterns = {"cuda out of memory", "hip out of memory", "unable to allocate cuda",
                  "resource_exhausted: out of memory", "failed to allocate cuda",
                  "command buffer execution failed: insufficient memory",
                  "some modules are dispatched on the cpu or the disk"},
     .meanings = {{{.id = "out-of-memory",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the GPU has too little free memory",
                    .text = "The checkpoint is not in question. Read it on the CPU "
                            "(map_location=\"cpu\", mmap=True) and move it in parts, use more "
                            "GPUs, a smaller context or a quantised copy. A resume needs more than "
                            "the run: Adam adds two values per parameter. End other programs on "
                            "the GPU (`nvidia-smi`).",
                    .decide = "The bytes of the tensors against the GPU's free memory.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "host-memory",
     .example = "llama runner process has terminated: signal: killed",
     .patterns = {"signal: killed", "exitcode: -9", "exit code: -9", "signal 9 (sigkill)",
                  "signals.sigkill: 9"},
     .meanings = {{kHostMemory}}},
    {.id = "host-memory",
     .example = "_ArrayMemoryError: Unable to allocate 1.95 GiB for an array with shape (128256, "
                "4096)",
     .patterns = {"defaultcpuallocator: not enough memory",
                  "defaultcpuallocator: can't allocate memory", "cannot allocate memory",
                  "arraymemoryerror: unable to allocate", "the paging file is too small"},
     .meanings = {{kHostMemory}}},
    {.id = "other-device",
     .example = "Expected all tensors to be on the same device, but found at least two devices",
     .patterns = {"expected all tensors to be on the same device"},
     .meanings = {{{.id = "other-device",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "some tensors are on another device than the model",
                    .text =
                        "The bytes are sound. In optimizer.step() after a resume: move the "
                        "model to its device first and call optimizer.load_state_dict then, "
                        "which brings the states there. In a forward pass: the inputs, an "
                        "adapter or a new layer stayed on the CPU, or device_map cut the model.",
                    .decide = "Whether the traceback goes through optimizer.step() or forward().",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch"},
    {.id = "ranks-wait",
     .example = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2109, "
                "OpType=_ALLGATHER_BASE)",
     .patterns = {"watchdog caught collective operation timeout", "timeout at nccl work",
                  "some nccl operations have failed or timed out",
                  "detected mismatch between collectives on ranks", "barrier timed out",
                  "wait timeout after <#milliseconds>ms", "collective operation timeout"},
     .meanings = {{{.id = "rank-missing",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "a rank did not join a collective call, and the others waited in vain",
                    .text = "In a save: a call that all ranks must make (state_dict of FSDP or "
                            "ZeRO-3, save_state, barrier) stands under `if rank == 0`, or rank 0 "
                            "wrote for longer than the timeout (ddp_timeout, "
                            "init_process_group(timeout=...)). Or one rank failed first: look for "
                            "its own error. The step that was being saved is not whole.",
                    .decide = "The rank whose SeqNum or OpType differs, and the first error in all "
                              "logs.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "not-about-a-checkpoint",
     .example = "NCCL error: unhandled system error",
     .patterns = {"nccl error", "unhandled system error", "connection reset by peer",
                  "cuda error:", "connection closed by peer", "[errno 32] broken pipe"},
     .meanings = {{{.id = "not-about-a-checkpoint",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the device or the network stopped the run",
                    .text = "This says nothing about a checkpoint. As a rule another rank failed "
                            "first: look for its own error. If it came during a save, that save "
                            "did not end: use the step before it.",
                    .decide = "Whether the traceback is in a load or in a save.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "child-failed",
     .example =
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED",
     .patterns = {"childfailederror"},
     .meanings = {{{.id = "details-missing",
                    .wrong = kLoader,
                    .weight = 0.3,
                    .title = "one process failed, and this line does not say why",
                    .text = "torchrun prints it when a rank ends with an error. The reason stands "
                            "further up, in the traceback of that rank: paste its last line. "
                            "\"exitcode: -9\" means that the memory was full.",
                    .decide = "\"rank\" and \"exitcode\" under Root Cause.",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = "torchrun"},
    {.id = "async-save-backend",
     .example = "A CPU backend must be enabled for async save; try initializing process group with "
                "'cpu:gloo,cuda:nccl'",
     .patterns = {"a cpu backend must be enabled for async save"},
     .meanings = {{{.id = "no-cpu-backend",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "an asynchronous save needs a process group for the CPU too",
                    .text = "Nothing was written. Start the ranks with "
                            "init_process_group(\"cpu:gloo,cuda:nccl\"), or save with dcp.save.",
                    .decide = "The backend in init_process_group.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch.distributed.checkpoint"},
};

}  // namespace

std::span<const MessageKind> machine_messages() {
  return kMachineMessages;
}

}  // namespace shw
