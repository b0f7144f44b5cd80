/* The C interface of libshardwright: opens a checkpoint in any format, local or remote, reads
 * boxes of its tensors, and checks it. Nothing is written.
 *
 *   shw_checkpoint* ck = shw_open("run/step-1000", NULL);
 *   if (ck == NULL) { fprintf(stderr, "%s\n", shw_last_error()->message); return 1; }
 *   int64_t i = shw_find_tensor(ck, "model.norm.weight", 17);
 *   shw_tensor tensor = {.size = sizeof tensor};
 *   if (i >= 0 && shw_get_tensor(ck, (uint64_t)i, &tensor) == 0) ...
 *   shw_close(ck);
 *
 * Text is UTF-8. Pointers in a struct, and what shw_format() and shw_path() return, are valid until
 * shw_close(). Functions that return a status return 0, or -1 with shw_last_error(). A checkpoint
 * may be used by several threads; each call reads on its own. Within a version of the interface
 * only functions and trailing fields are added: set `size` of a struct that has it to its sizeof.
 */
#ifndef SHARDWRIGHT_H
#define SHARDWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHW_API_VERSION 1

#if defined(__GNUC__)
#define SHW_API __attribute__((visibility("default")))
#else
#define SHW_API
#endif

typedef struct shw_checkpoint shw_checkpoint;

/* What a failed call of this thread said. */
typedef struct shw_error {
  const char* code;    /* "usage", "not_found", "system_refused", "damaged", "unsupported",
                          "cancelled" */
  const char* message; /* one sentence */
  const char* file;    /* relative to the checkpoint; may be empty */
  int64_t offset;      /* in that file, in bytes; -1: unknown */
  const char* tensor;  /* may be empty */
  const char* advice;  /* may be empty */
} shw_error;

/* Called by the thread that made the call, about ten times a second; another value than 0 cancels
 * the call, and whatever waits for a server in this process. `total` is 0 while unknown. */
typedef int (*shw_progress)(void* context, uint64_t done, uint64_t total);

typedef struct shw_options {
  uint32_t size;
  const char* spec;      /* a file of what is expected; NULL: none */
  const char* against;   /* a reference checkpoint; NULL: none */
  const char* mesh;      /* "dp=4,tp=2"; NULL: as the checkpoint shows */
  uint64_t memory_bytes; /* that a call may take; 0: the default */
  shw_progress progress; /* of every call with this checkpoint; may be NULL */
  void* context;
} shw_options;

typedef struct shw_tensor {
  uint32_t size;    /* sizeof(shw_tensor), set by the caller */
  const char* name; /* not terminated */
  uint64_t name_bytes;
  const char* dtype; /* "bfloat16", "float8_e4m3fn", as torch has them */
  uint32_t element_bytes;
  uint32_t ndim;
  const int64_t* shape;
  uint64_t chunks;
} shw_tensor;

typedef struct shw_chunk {
  uint32_t size;
  uint32_t ndim;
  const int64_t* offsets; /* in elements of the tensor */
  const int64_t* sizes;
  const char* file; /* relative to the checkpoint; NULL: the chunk has no record */
  int64_t offset;   /* of the item, in the file, as recorded */
  int64_t length;
  int64_t rank; /* that wrote it; -1: unknown */
} shw_chunk;

typedef struct shw_run {
  uint32_t size;
  const char* path; /* of a local file; valid until the thread's next shw_find_run() */
  uint64_t offset;  /* in bytes */
  uint64_t length;
} shw_run;

/* SHW_API_VERSION of the library. */
SHW_API int shw_api_version(void);
/* "0.1.0 1a2b3c4d5e6f": version and commit. */
SHW_API const char* shw_version(void);

/* Reads metadata only. `path` is what the program takes: a folder, a file, RUN/@latest,
 * ssh://host/path, s3://bucket/prefix, hf://owner/name. `options` may be NULL. NULL: see
 * shw_last_error(). */
SHW_API shw_checkpoint* shw_open(const char* path, const shw_options* options);
SHW_API void shw_close(shw_checkpoint* checkpoint);

/* `path` without the password and the query of a URL, as messages and shw_path() show it. This
 * process remembers them: opening what is returned uses them. Valid until the thread's next call;
 * NULL: see shw_last_error(). */
SHW_API const char* shw_public_path(const char* path);

/* "dcp", "safetensors". */
SHW_API const char* shw_format(const shw_checkpoint* checkpoint);
/* The path, with the step that @latest stands for, and without secrets of a URL. */
SHW_API const char* shw_path(const shw_checkpoint* checkpoint);

SHW_API uint64_t shw_tensor_count(const shw_checkpoint* checkpoint);
/* The index of a tensor; -1: there is none of that name. */
SHW_API int64_t shw_find_tensor(const shw_checkpoint* checkpoint, const char* name,
                                uint64_t name_bytes);
SHW_API int shw_get_tensor(const shw_checkpoint* checkpoint, uint64_t tensor, shw_tensor* out);
SHW_API int shw_get_chunk(const shw_checkpoint* checkpoint, uint64_t tensor, uint64_t chunk,
                          shw_chunk* out);

/* Where the elements of a chunk lie as they are, row-major, in one run of a local file, so that a
 * caller can map them. 0: there; 1: they do not lie so, shw_read() reads them; -1: an error. Reads
 * the header of the chunk's item. */
SHW_API int shw_find_run(const shw_checkpoint* checkpoint, uint64_t tensor, uint64_t chunk,
                         shw_run* out);

/* The elements [start, stop) in each dimension, row-major, little-endian, of the dtype that
 * shw_get_tensor() says. `bytes` must be what they take. Elements that no chunk holds, or that
 * cannot be read, are an error. */
SHW_API int shw_read(const shw_checkpoint* checkpoint, uint64_t tensor, const int64_t* start,
                     const int64_t* stop, void* out, uint64_t bytes);

/* JSON as of `shardwright info`, `ls`, `show --places`, `check`, `stats` and `hash`; NULL: see
 * shw_last_error(). Tensors are listed in the order of their indices. shw_check reads values too
 * where `data` is not 0. `name` of a tensor, a shell pattern, or NULL for all. Free with
 * shw_free(). */
SHW_API char* shw_info(const shw_checkpoint* checkpoint);
SHW_API char* shw_list(const shw_checkpoint* checkpoint);
SHW_API char* shw_show(const shw_checkpoint* checkpoint, uint64_t tensor);
SHW_API char* shw_check(const shw_checkpoint* checkpoint, int data);
SHW_API char* shw_stats(const shw_checkpoint* checkpoint, const char* name);
SHW_API char* shw_hash(const shw_checkpoint* checkpoint, const char* name);
SHW_API void shw_free(char* text);

/* Of the last call of this thread that failed; valid until its next call. Never NULL. */
SHW_API const shw_error* shw_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
