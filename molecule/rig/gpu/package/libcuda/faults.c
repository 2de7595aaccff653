/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Faults, from a file that a process reads with its first call: lines of a kind and of words KEY=VALUE, # begins a comment.
 * molecule/rig/README.md says what there is. A line that makes no sense ends the process, so that no test passes on a
 * fault that was not there.
 */
#include "driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME ROOT "/proc/driver/gpu-faults"
#define MAX_FAULTS 256
#define WINDOW ((size_t)128 << 30)
#define PAGE ((size_t)4096)

enum kind {
	/* What becomes of bytes. */
	DROPPED, ZEROS, PARTIAL, STALE, GARBAGE, LATE, MIRROR,
	/* What becomes of the copy. */
	HANG, ERROR, SLOW, IMPLAUSIBLE, LATENCY, STAGED,
	/* What the driver says. */
	NO_ACCESS, FALSE_ACCESS,
	/* What becomes of hardware. */
	LINK, COLLAPSE, OCCUPIED,
	KINDS
};

static const char *const kinds[KINDS] = {
	"dropped", "zeros", "partial", "stale", "garbage", "late", "mirror", "hang", "error", "slow", "implausible",
	"latency", "staged", "no-access", "false-access", "link", "collapse", "occupied",
};

/* A device's addresses once more: what a mirror or a cache holds in their place, page by page. */
struct shadow {
	char *bytes;
	unsigned char *pages; /* whether a page is there */
};

struct fault {
	enum kind kind;
	char from[16], to[16], device[16], call[48]; /* empty: any */
	size_t least, most, at, bytes;
	int together, reads_only, writes_only, every, code, xid, generation, width;
	double gbps, us;
	struct shadow shadow;
};

static struct fault faults[MAX_FAULTS];
static int fault_count;
static unsigned int copies[MAX_GPUS][MAX_GPUS];

/* ---- the file ---- */

static void senseless(const char *what)
{
	fprintf(stderr, "rig: " FILE_NAME ": '%s' makes no sense\n", what);
	abort();
}

/* A number with K, M or G for binary multiples behind it. */
static double decimal(const char *text)
{
	double value = 0, place = 0;
	const char *at = text;

	for (; (*at >= '0' && *at <= '9') || (*at == '.' && !place); at++) {
		if (*at == '.')
			place = 1;
		else if (place)
			value += (*at - '0') * (place /= 10);
		else
			value = value * 10 + (*at - '0');
	}
	if (at > text && (*at == 'K' || *at == 'M' || *at == 'G'))
		value *= *at == 'K' ? 1 << 10 : *at == 'M' ? 1 << 20 : 1 << 30, at++;
	if (at == text || *at)
		senseless(text);
	return value;
}

static void take_text(char *target, size_t size, const char *value)
{
	if (!*value || strlen(value) >= size)
		senseless(value);
	if (strcmp(value, "*"))
		snprintf(target, size, "%s", value);
}

/* The address of a device that this machine has, or "*" for any. */
static void take_device(char *target, size_t size, const char *value)
{
	char path[256];

	take_text(target, size, value);
	snprintf(path, sizeof(path), ROOT "/sys/bus/pci/devices/%s", target);
	if (access(path, F_OK))
		senseless(value);
}

/* The name of a call that this library has. */
static void take_call(char *target, size_t size, const char *value)
{
	Dl_info self;
	void *library;

	take_text(target, size, value);
	if (!dladdr(kinds, &self) || !(library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) || !dlsym(library, target))
		senseless(value);
	dlclose(library);
}

static void take_word(struct fault *fault, char *word)
{
	char *value = strchr(word, '=');

	if (!value)
		senseless(word);
	*value++ = 0;
	if (!strcmp(word, "from"))
		take_device(fault->from, sizeof(fault->from), value);
	else if (!strcmp(word, "to"))
		take_device(fault->to, sizeof(fault->to), value);
	else if (!strcmp(word, "device"))
		take_device(fault->device, sizeof(fault->device), value);
	else if (!strcmp(word, "call"))
		take_call(fault->call, sizeof(fault->call), value);
	else if (!strcmp(word, "min"))
		fault->least = decimal(value);
	else if (!strcmp(word, "max"))
		fault->most = decimal(value);
	else if (!strcmp(word, "at"))
		fault->at = decimal(value);
	else if (!strcmp(word, "bytes"))
		fault->bytes = decimal(value);
	else if (!strcmp(word, "together"))
		fault->together = decimal(value);
	else if (!strcmp(word, "every"))
		fault->every = decimal(value);
	else if (!strcmp(word, "code"))
		fault->code = decimal(value);
	else if (!strcmp(word, "xid"))
		fault->xid = decimal(value);
	else if (!strcmp(word, "generation"))
		fault->generation = decimal(value);
	else if (!strcmp(word, "width"))
		fault->width = decimal(value);
	else if (!strcmp(word, "gbps"))
		fault->gbps = decimal(value);
	else if (!strcmp(word, "us"))
		fault->us = decimal(value);
	else if (!strcmp(word, "issued") && !strcmp(value, "read"))
		fault->reads_only = 1;
	else if (!strcmp(word, "issued") && !strcmp(value, "write"))
		fault->writes_only = 1;
	else
		senseless(word);
}

static void take_line(char *line)
{
	static const char space[] = " \t\r";
	struct fault *fault = &faults[fault_count];
	char *rest = NULL, *word = strtok_r(line, space, &rest);
	int kind;

	if (!word)
		return;
	for (kind = 0; kind < KINDS && strcmp(kinds[kind], word); kind++)
		;
	if (kind == KINDS || fault_count == MAX_FAULTS)
		senseless(word);
	fault->kind = kind;
	fault->most = SIZE_MAX;
	fault->every = 1;
	fault->code = kind == FALSE_ACCESS ? PEER_ACCESS_UNSUPPORTED : 719;
	fault->us = kind == LATE ? 100000 : 0;
	fault->gbps = kind == IMPLAUSIBLE ? 103.9 : kind == COLLAPSE ? 2.7 : 0;
	while ((word = strtok_r(NULL, space, &rest)))
		take_word(fault, word);
	if (!fault->every || ((kind == SLOW || kind == IMPLAUSIBLE || kind == COLLAPSE) && !(fault->gbps > 0))
	    || ((kind == LINK || kind == COLLAPSE || kind == OCCUPIED) && !*fault->device)
	    || (kind == LINK && !fault->generation && !fault->width) || fault->generation > 6
	    || (*fault->call && ((kind != HANG && kind != ERROR) || *fault->from || *fault->to))
	    || ((kind == HANG || kind == ERROR) && *fault->device && !*fault->call)
	    || ((kind == STALE || kind == MIRROR) && (!*fault->from || !*fault->to)))
		senseless(kinds[kind]);
	fault_count++;
}

void read_faults(void)
{
	static int done;
	static char text[65536];
	char *line, *rest = NULL, *comment;

	if (done++ || !read_text(FILE_NAME, text, sizeof(text)))
		return;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		comment = strchr(line, '#');
		if (comment)
			*comment = 0;
		take_line(line);
	}
}

/* ---- which of them holds ---- */

static int is(const char *address, CUdevice device)
{
	return !*address || !strcasecmp(address, gpus[device].address);
}

static int of_pair(const struct fault *fault, CUdevice from, CUdevice to)
{
	return is(fault->from, from) && is(fault->to, to);
}

int writes_to_peer(const struct operation *operation)
{
	return operation->kind == COPY && operation->direct
	       && operation->stream->context->device == operation->source.memory->device;
}

/* Whether it holds for a copy between two GPUs, as far as that has come. */
static int holds(const struct fault *fault, const struct operation *operation)
{
	int writes;

	if (operation->kind != COPY || !operation->direct)
		return 0;
	writes = writes_to_peer(operation);
	return !*fault->call && of_pair(fault, operation->source.memory->device, operation->target.memory->device)
	       && operation->size >= fault->least && operation->size <= fault->most && !(fault->reads_only && writes)
	       && !(fault->writes_only && !writes) && operation->together >= fault->together
	       && operation->nth % fault->every == 0;
}

static struct fault *find(enum kind first, enum kind last, const struct operation *operation)
{
	int i;

	for (i = 0; i < fault_count; i++)
		if (faults[i].kind >= first && faults[i].kind <= last && holds(&faults[i], operation))
			return &faults[i];
	return NULL;
}

/* A copy has been put into its stream. */
void number_copy(struct operation *operation)
{
	if (!operation->direct)
		return;
	operation->nth = ++copies[operation->source.memory->device][operation->target.memory->device];
	operation->together = 1;
	if (find(STAGED, STAGED, operation))
		operation->direct = 0;
}

/* How many copies between GPUs run at the same time: each remembers the most that it has seen. */
void count_together(struct operation **moving, int count)
{
	int i, direct = 0;

	for (i = 0; i < count; i++)
		direct += moving[i]->kind == COPY && moving[i]->direct;
	for (i = 0; i < count; i++)
		if (moving[i]->together < direct)
			moving[i]->together = direct;
}

/* ---- calls ---- */

/* What a call answers before it does anything; a call that hangs does not come back. device is -1 where there is none yet. */
CUresult fault_of_call(const char *call, CUdevice device)
{
	int i;

	for (i = 0; i < fault_count; i++) {
		if (strcmp(faults[i].call, call) || (*faults[i].device && device < 0) || (!*faults[i].device && device >= 0))
			continue;
		if (device >= 0 && !is(faults[i].device, device))
			continue;
		if (faults[i].kind == HANG)
			hang();
		if (faults[i].kind == ERROR)
			return faults[i].code;
	}
	return SUCCESS;
}

int can_access(CUdevice from, CUdevice to)
{
	int i;

	for (i = 0; i < fault_count; i++)
		if (faults[i].kind == NO_ACCESS && of_pair(&faults[i], from, to))
			return 0;
	return 1;
}

/* What enabling access says where it is said to be possible. */
CUresult fault_of_access(CUdevice from, CUdevice to)
{
	int i;

	for (i = 0; i < fault_count; i++)
		if (faults[i].kind == FALSE_ACCESS && of_pair(&faults[i], from, to))
			return faults[i].code;
	return SUCCESS;
}

/* Bytes of a device that another process holds. */
size_t occupied(CUdevice device)
{
	size_t sum = 0;
	int i;

	for (i = 0; i < fault_count; i++)
		if (faults[i].kind == OCCUPIED && is(faults[i].device, device))
			sum += faults[i].bytes;
	return sum;
}

/* ---- rates and links ---- */

struct link_fault fault_of_link(const char *address)
{
	static const int speeds[] = { 0, 2, 5, 8, 16, 32, 64 };
	static const char *const names[] = { "", "2.5", "5.0", "8.0", "16.0", "32.0", "64.0" };
	struct link_fault found = { 0, 0, "" };
	int i;

	for (i = 0; i < fault_count; i++) {
		if (faults[i].kind == LINK && !strcasecmp(faults[i].device, address)) {
			found.gigatransfers = speeds[faults[i].generation];
			found.text = names[faults[i].generation];
			found.width = faults[i].width;
		}
	}
	return found;
}

double fault_of_latency(const struct operation *operation, double usual)
{
	struct fault *fault = find(LATENCY, LATENCY, operation);

	return fault ? fault->us * 1000 : usual;
}

/* Changes what a copy may have at most; 1 where that is what it has, whoever else is on its way. */
int fault_of_rate(const struct operation *operation, double *cap)
{
	struct fault *fault;

	if (find(HANG, HANG, operation)) {
		*cap = 0;
		return 1;
	}
	fault = find(IMPLAUSIBLE, IMPLAUSIBLE, operation);
	if (fault) {
		*cap = fault->gbps;
		return 1;
	}
	fault = find(SLOW, SLOW, operation);
	if (fault && fault->gbps < *cap)
		*cap = fault->gbps;
	return 0;
}

/* The nth bridge with the collapse of posted writes, and what is left of the rate. */
const char *fault_of_bridge(int nth, double *gbps)
{
	int i;

	for (i = 0; i < fault_count; i++) {
		if (faults[i].kind == COLLAPSE && !nth--) {
			*gbps = faults[i].gbps;
			return faults[i].device;
		}
	}
	return NULL;
}

/* ---- bytes ---- */

/* The driver's line in the kernel log, where a file stands for it: this machine's own log is nobody's stage. */
static void log_xid(const struct fault *fault, CUdevice device)
{
	struct stat status;
	struct timespec now;
	char line[256];
	int fd = open(ROOT "/dev/kmsg", O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(line, sizeof(line), "4,1,%lld,-;NVRM: Xid (PCI:%.10s): %d, pid=%d\n", now.tv_sec * 1000000LL + now.tv_nsec / 1000,
		 gpus[device].address, fault->xid, getpid());
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && write(fd, line, strlen(line)) < 0)
		perror("rig: /dev/kmsg");
	close(fd);
}

static void *sparse(size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED) {
		perror("rig: memory for a fault");
		abort();
	}
	return bytes;
}

/*
 * One step over the pages of a piece of memory, beginning with the byte at this offset from the start of its device's addresses:
 * the page, and how many of the bytes lie in it.
 */
static size_t within_page(size_t offset, size_t size, size_t *page)
{
	size_t rest = PAGE - offset % PAGE;

	*page = offset / PAGE;
	return size < rest ? size : rest;
}

/* Fill a page of the shadow with what the memory has there. */
static void take_page(struct shadow *shadow, const struct allocation *memory, size_t page)
{
	size_t start = memory->address - window_of(memory->device), from = page * PAGE, to = from + PAGE;

	if (from < start)
		from = start;
	if (to > start + memory->size)
		to = start + memory->size;
	memcpy(shadow->bytes + from, memory->bytes + (from - start), to - from);
	shadow->pages[page] = 1;
}

/* Of one pair: from any to any GPU would need one for each. */
static void need_shadow(struct fault *fault)
{
	if (fault->shadow.bytes)
		return;
	fault->shadow.bytes = sparse(WINDOW);
	fault->shadow.pages = sparse(WINDOW / PAGE);
}

static size_t offset_of(const struct place *place)
{
	return place->memory->address - window_of(place->memory->device) + (place->bytes - place->memory->bytes);
}

/* The source as a cache has it that was filled by the copy before. */
static void deliver_stale(struct fault *fault, struct place *target, struct place *source, size_t size)
{
	size_t offset = offset_of(source), done, part, page;

	need_shadow(fault);
	for (done = 0; done < size; done += part) {
		part = within_page(offset + done, size - done, &page);
		memcpy(target->bytes + done, fault->shadow.pages[page] ? fault->shadow.bytes + offset + done : source->bytes + done, part);
		take_page(&fault->shadow, source->memory, page);
	}
}

/* The owner has zeros; the writer has what it wrote, in a copy of the owner's memory of its own. */
static void deliver_mirror(struct fault *fault, struct place *target, struct place *source, size_t size)
{
	size_t offset = offset_of(target), done, part, page;

	need_shadow(fault);
	for (done = 0; done < size; done += part) {
		part = within_page(offset + done, size - done, &page);
		if (!fault->shadow.pages[page])
			take_page(&fault->shadow, target->memory, page);
		memcpy(fault->shadow.bytes + offset + done, source->bytes + done, part);
	}
	memset(target->bytes, 0, size);
}

static void deliver_garbage(char *target, size_t size)
{
	static uint64_t state = 0x9e3779b97f4a7c15;
	size_t i;

	for (i = 0; i < size; i++) {
		if (i % 8 == 0) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
		}
		target[i] = (char)(state >> (i % 8 * 8));
	}
}

/* Bytes on their way to memory whose copy has ended. They arrive by the clock on the wall: who gives them time, sleeps. */
struct late {
	struct late *next;
	struct allocation *memory;
	char *target, *bytes;
	size_t size;
	double due;
};

static struct late *late;

static double wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void deliver_later(const struct fault *fault, const struct place *target, const struct place *source, size_t size)
{
	struct late **link = &late, *new = calloc(1, sizeof(*new));

	if (!new || !(new->bytes = malloc(size)))
		abort();
	memcpy(new->bytes, source->bytes, size);
	new->memory = target->memory;
	new->target = target->bytes;
	new->size = size;
	new->due = wall_us() + fault->us;
	while (*link)
		link = &(*link)->next;
	*link = new;
}

static void take_late(struct late **link, int arrives)
{
	struct late *gone = *link;

	if (arrives) {
		memcpy(gone->target, gone->bytes, gone->size);
		content_changed(gone->memory);
	}
	*link = gone->next;
	free(gone->bytes);
	free(gone);
}

/* With every call: what is due by now. */
void arrive_late(void)
{
	struct late **link = &late;
	double now = late ? wall_us() : 0;

	while (*link) {
		if ((*link)->due <= now)
			take_late(link, 1);
		else
			link = &(*link)->next;
	}
}

/* What a fault makes of a copy: 1 if it has been made, and the error that it ends with. */
int deliver(struct operation *operation, CUresult *error)
{
	struct fault *fault = find(ERROR, ERROR, operation);
	struct place target = operation->target, source = operation->source;
	size_t at, size;

	*error = SUCCESS;
	if (fault) {
		*error = fault->code;
		if (fault->xid)
			log_xid(fault, operation->source.memory->device);
		return 1;
	}
	fault = find(DROPPED, MIRROR, operation);
	if (!fault)
		return 0;
	/* All of it, or from "at" on as many bytes as are given; of a partial copy, the second half. */
	at = fault->at ? fault->at : fault->kind == PARTIAL ? operation->size / 2 : 0;
	if (at >= operation->size)
		return 0;
	size = operation->size - at;
	if (fault->bytes && fault->bytes < size)
		size = fault->bytes;
	memmove(target.bytes, source.bytes, at);
	memmove(target.bytes + at + size, source.bytes + at + size, operation->size - at - size);
	target.bytes += at;
	source.bytes += at;
	if (fault->kind == ZEROS)
		memset(target.bytes, 0, size);
	else if (fault->kind == STALE)
		deliver_stale(fault, &target, &source, size);
	else if (fault->kind == GARBAGE)
		deliver_garbage(target.bytes, size);
	else if (fault->kind == LATE)
		deliver_later(fault, &target, &source, size);
	else if (fault->kind == MIRROR)
		deliver_mirror(fault, &target, &source, size);
	return 1;
}

/* What a GPU reads of another's memory, where it has a mirror of it: 1 if that was it. */
int read_mirror(CUdevice reader, struct place *source, char *target, size_t size)
{
	size_t offset, done, part, page;
	int i;

	for (i = 0; i < fault_count; i++) {
		struct shadow *shadow = &faults[i].shadow;

		if (faults[i].kind != MIRROR || !shadow->bytes || !of_pair(&faults[i], reader, source->memory->device))
			continue;
		offset = offset_of(source);
		for (done = 0; done < size; done += part) {
			part = within_page(offset + done, size - done, &page);
			memmove(target + done, shadow->pages[page] ? shadow->bytes + offset + done : source->bytes + done, part);
		}
		return 1;
	}
	return 0;
}

/* Memory that is given back takes along its mirrors, and what is on its way to it. */
void forget(const struct allocation *memory)
{
	size_t start = memory->address - window_of(memory->device);
	struct late **link = &late;
	int i;

	while (*link) {
		if ((*link)->memory == memory)
			take_late(link, 0);
		else
			link = &(*link)->next;
	}

	for (i = 0; i < fault_count; i++)
		if (faults[i].kind == MIRROR && faults[i].shadow.bytes && is(faults[i].to, memory->device))
			memset(faults[i].shadow.pages + start / PAGE, 0, (memory->size + PAGE - 1) / PAGE);
}
