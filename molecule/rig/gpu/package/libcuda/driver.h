/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of the simulated libcuda.so.1 share. Times are nanoseconds of the modelled clock, rates bytes per nanosecond (GB/s). */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>

#ifndef ROOT
#define ROOT ""
#endif
#define EXPORT __attribute__((visibility("default")))
#define MAX_GPUS 16

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct {
	char bytes[16];
} CUuuid;

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	PEER_ACCESS_UNSUPPORTED = 217,
	INVALID_HANDLE = 400,
	NOT_READY = 600,
	PEER_ACCESS_ALREADY_ENABLED = 704,
	PEER_ACCESS_NOT_ENABLED = 705,
	CONTEXT_IS_DESTROYED = 709,
	NOT_SUPPORTED = 801,
	SYSTEM_DRIVER_MISMATCH = 803,
	UNKNOWN = 999
};

struct gpu {
	int domain, bus, device;
	int minor;
	int fd;
	char address[16]; /* 0000:03:00.0 */
	char name[96];
	char uuid[48]; /* GPU-... */
};

struct stream {
	struct stream *next;
	CUcontext context;
	int blocking; /* waits for the context's default stream, and that one for it */
	int destroyed;
	int length; /* operations that have not ended */
	struct operation *first, *last;
};

struct context {
	struct context *next;
	CUdevice device;
	int active; /* not so before it is made and when it has ended */
	int primary, retained; /* a primary context is ended by the last release or by a reset; the others by being destroyed */
	CUresult error; /* sticky: what every call in this context answers from now on */
	uint32_t peers[MAX_GPUS]; /* serial numbers of the contexts whose memory it may reach, by device; 0 for none */
	uint32_t serial;
	struct stream standard; /* the default stream */
};

struct event {
	struct event *next;
	CUcontext context;
	int timed, destroyed;
	uint64_t recorded, reached; /* how often it was put into a stream, and which of these the stream has come to */
	double time;
};

/* A piece of device memory. Its address is one that the host cannot touch; its bytes lie elsewhere. */
struct allocation {
	struct allocation *next; /* in the order of addresses, per device */
	CUdevice device;
	CUcontext context;
	CUdeviceptr address;
	size_t size;
	char *bytes;
	uint64_t version; /* changes with the content */
	/* The last copy into it, so that the same one again (a bandwidth test) need not move the bytes again. */
	struct {
		uint64_t from_version, version;
		size_t offset, size;
		const char *from;
	} copied;
};

/* One end of a copy: bytes of the host, or of a piece of device memory. */
struct place {
	struct allocation *memory;
	char *bytes;
	int pinned;
};

enum operation_kind { COPY, FILL, RECORD, WAIT_EVENT, WAIT_VALUE, WRITE_VALUE };

struct operation {
	struct operation *next;
	enum operation_kind kind;
	struct stream *stream;
	uint64_t order; /* of all operations of the process */
	int started;
	double ready;	  /* when its bytes begin to move */
	double remaining; /* bytes */
	double rate;
	struct place target, source;
	size_t size;
	uint32_t value;
	int width; /* of what a fill repeats: 1 or 4 */
	unsigned int compare;
	CUevent event;
	uint64_t record;
	int direct; /* a copy between two GPUs that does not pass through the host's memory */
	unsigned int nth; /* of such copies of its ordered pair */
	int together; /* the most of such copies that ran while it did */
};

/* What is wrong with a link: 0 for what is not. */
struct link_fault {
	int gigatransfers, width;
	const char *text;
};

extern struct gpu gpus[MAX_GPUS];
extern int gpu_count;
extern int initialised;

/* devices.c */
int read_text(const char *path, char *text, size_t size);
int number(const char *text, int base);

/* contexts.c */
CUresult enter(const char *call);
void leave(int *held);
void give_way(void);
int owns_driver(void);
CUresult current_context(CUcontext *context);
int context_known(CUcontext context);
int reaches(CUcontext context, CUdevice device, CUcontext other);

/* memory.c */
void content_changed(struct allocation *memory);
CUdeviceptr window_of(CUdevice device);
int host_memory_at(CUdeviceptr address, size_t size);
void free_memory_of(CUcontext context);
CUresult move_bytes(struct operation *operation);
void fill_bytes(struct operation *operation);

/* streams.c */
struct stream *all_streams(void);
CUresult find_stream(CUstream handle, struct stream **stream);
void drop_streams_of(CUcontext context);
void settle_events_of(CUcontext context);

/* engine.c */
struct operation *enqueue(struct stream *stream, enum operation_kind kind);
void pass(double nanoseconds);
void finish_stream(struct stream *stream);
void finish_context(CUcontext context);
void finish_touching(const char *bytes, size_t size);
void finish_record(CUevent event);
void drop_operations(struct stream *stream);
void until_next_end(void);
void hang(void);

/* topology.c */
double latency(const struct operation *operation);
void share(struct operation **moving, int count);
void raise_link(CUdevice device);

/* faults.c */
void read_faults(void);
CUresult fault_of_call(const char *call, CUdevice device);
int can_access(CUdevice from, CUdevice to);
CUresult fault_of_access(CUdevice from, CUdevice to);
size_t occupied(CUdevice device);
struct link_fault fault_of_link(const char *address);
double fault_of_latency(const struct operation *operation, double usual);
int fault_of_rate(const struct operation *operation, double *cap);
const char *fault_of_bridge(int nth, double *gbps);
int writes_to_peer(const struct operation *operation);
void number_copy(struct operation *operation);
void count_together(struct operation **moving, int count);
int deliver(struct operation *operation, CUresult *error);
int read_mirror(CUdevice reader, struct place *source, char *target, size_t size);
void arrive_late(void);
void forget(const struct allocation *memory);

/* Every call of the API begins with one of these. The lock is given back wherever the function returns. */
#define ENTER()                                                               \
	int held __attribute__((cleanup(leave), unused)) = 1;                 \
	do {                                                                  \
		CUresult refusal = enter(__func__);                           \
		if (refusal)                                                  \
			return refusal;                                       \
	} while (0)
#define NEED_INIT()                             \
	ENTER();                                \
	do {                                    \
		if (!initialised)               \
			return NOT_INITIALIZED; \
	} while (0)
#define FAULTS_OF(device)                                             \
	do {                                                          \
		CUresult refusal = fault_of_call(__func__, (device)); \
		if (refusal)                                          \
			return refusal;                               \
	} while (0)
#define NEED_DEVICE(ordinal)                                 \
	NEED_INIT();                                         \
	do {                                                 \
		if ((ordinal) < 0 || (ordinal) >= gpu_count) \
			return INVALID_DEVICE;               \
	} while (0);                                         \
	FAULTS_OF(ordinal)
/* With the calling thread's context, which must be sound. */
#define NEED_CONTEXT(context)                                \
	CUcontext context;                                   \
	NEED_INIT();                                         \
	do {                                                 \
		CUresult state = current_context(&(context)); \
		if (state)                                   \
			return state;                        \
	} while (0);                                         \
	FAULTS_OF((context)->device)
