/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Memory and what moves it. A device's memory has addresses that are reserved in the process and closed to it: whoever
 * follows a device's pointer on the host crashes, as with a real one. The bytes are ordinary memory elsewhere, taken from
 * the machine only where something has been written.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)
#define WINDOW ((size_t)128 << 30) /* of addresses per device */
#define TOTAL ((size_t)(MEMORY_MIB - 636) * MIB) /* what the driver keeps for itself is not counted */
#define CONTEXT_MIB 512 /* what a context takes */
#define GRANULE ((size_t)512)

struct pinned {
	struct pinned *next;
	CUcontext context;
	char *bytes;
	size_t size;
};

static struct allocation *allocations[MAX_GPUS];
static CUdeviceptr windows[MAX_GPUS];
static struct pinned *pinned;
static uint64_t versions;

static size_t in_use(CUdevice device)
{
	struct allocation *one;
	size_t sum = CONTEXT_MIB * MIB + occupied(device);

	for (one = allocations[device]; one; one = one->next)
		sum += one->size;
	return sum;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	NEED_DEVICE(device);
	if (!bytes)
		return INVALID_VALUE;
	*bytes = TOTAL;
	return SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
	NEED_CONTEXT(context);
	if (!available || !total)
		return INVALID_VALUE;
	*total = TOTAL;
	*available = in_use(context->device) < TOTAL ? TOTAL - in_use(context->device) : 0;
	return SUCCESS;
}

static void *map(size_t size, int protection)
{
	void *bytes = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
	struct allocation **link, *new;
	CUdeviceptr free_from;
	size_t rounded = (size + GRANULE - 1) / GRANULE * GRANULE;

	NEED_CONTEXT(context);
	if (!address || !size)
		return INVALID_VALUE;
	if (size > TOTAL || rounded + in_use(context->device) > TOTAL)
		return OUT_OF_MEMORY;
	if (!windows[context->device])
		windows[context->device] = (CUdeviceptr)(uintptr_t)map(WINDOW, PROT_NONE);
	new = calloc(1, sizeof(*new));
	if (!windows[context->device] || !new)
		return OUT_OF_MEMORY;
	new->bytes = map(rounded, PROT_READ | PROT_WRITE);
	if (!new->bytes) {
		free(new);
		return OUT_OF_MEMORY;
	}
	madvise(new->bytes, rounded, MADV_HUGEPAGE);
	free_from = windows[context->device];
	for (link = &allocations[context->device]; *link; link = &(*link)->next) {
		if ((*link)->address - free_from >= rounded)
			break;
		free_from = (*link)->address + (*link)->size;
	}
	new->device = context->device;
	new->context = context;
	new->address = free_from;
	new->size = rounded;
	new->version = ++versions;
	new->next = *link;
	*link = new;
	*address = new->address;
	return SUCCESS;
}

static void free_allocation(struct allocation **link)
{
	struct allocation *gone = *link;

	finish_touching(gone->bytes, gone->size);
	*link = gone->next;
	forget(gone);
	munmap(gone->bytes, gone->size);
	free(gone);
}

/* Waits for all work of the context, as the real one does. */
EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct allocation **link;
	int device;

	NEED_CONTEXT(context);
	if (!address)
		return SUCCESS;
	for (device = 0; device < gpu_count; device++) {
		for (link = &allocations[device]; *link; link = &(*link)->next) {
			if ((*link)->address == address) {
				finish_context((*link)->context);
				free_allocation(link);
				return context->error;
			}
		}
	}
	return INVALID_VALUE;
}

EXPORT CUresult cuMemHostAlloc(void **bytes, size_t size, unsigned int flags)
{
	struct pinned *new;

	NEED_CONTEXT(context);
	if (!bytes || !size || flags & ~7u)
		return INVALID_VALUE;
	new = calloc(1, sizeof(*new));
	if (!new)
		return OUT_OF_MEMORY;
	new->size = size;
	new->bytes = map(size, PROT_READ | PROT_WRITE);
	if (!new->bytes) {
		free(new);
		return OUT_OF_MEMORY;
	}
	new->context = context;
	new->next = pinned;
	pinned = new;
	*bytes = new->bytes;
	return SUCCESS;
}

EXPORT CUresult cuMemAllocHost_v2(void **bytes, size_t size)
{
	return cuMemHostAlloc(bytes, size, 0);
}

static struct pinned **pinned_at(CUdeviceptr address, size_t size)
{
	struct pinned **link;

	for (link = &pinned; *link; link = &(*link)->next)
		if (address >= (uintptr_t)(*link)->bytes && address + size <= (uintptr_t)(*link)->bytes + (*link)->size)
			return link;
	return NULL;
}

int host_memory_at(CUdeviceptr address, size_t size)
{
	return pinned_at(address, size) != NULL;
}

static void free_pinned(struct pinned **link)
{
	struct pinned *gone = *link;

	finish_touching(gone->bytes, gone->size);
	*link = gone->next;
	munmap(gone->bytes, gone->size);
	free(gone);
}

EXPORT CUresult cuMemFreeHost(void *bytes)
{
	struct pinned **link;

	NEED_CONTEXT(context);
	link = pinned_at((uintptr_t)bytes, 1);
	if (!link || (*link)->bytes != bytes)
		return INVALID_VALUE;
	finish_context(context);
	free_pinned(link);
	return context->error;
}

/* One address for both sides, as on every 64-bit Linux. */
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *bytes, unsigned int flags)
{
	NEED_CONTEXT(context);
	if (!address || flags || !host_memory_at((uintptr_t)bytes, 1))
		return INVALID_VALUE;
	*address = (uintptr_t)bytes;
	return SUCCESS;
}

void free_memory_of(CUcontext context)
{
	struct allocation **link = &allocations[context->device];
	struct pinned **host = &pinned;

	while (*link) {
		if ((*link)->context == context)
			free_allocation(link);
		else
			link = &(*link)->next;
	}
	while (*host) {
		if ((*host)->context == context)
			free_pinned(host);
		else
			host = &(*host)->next;
	}
}

/* ---- where an address leads ---- */

void content_changed(struct allocation *memory)
{
	memory->version = ++versions;
}

CUdeviceptr window_of(CUdevice device)
{
	return windows[device];
}

static int in_a_window(CUdeviceptr address)
{
	int device;

	for (device = 0; device < gpu_count; device++)
		if (windows[device] && address - windows[device] < WINDOW)
			return 1;
	return 0;
}

static CUresult on_device(CUdeviceptr address, size_t size, struct place *place)
{
	struct allocation *one;
	int device;

	for (device = 0; device < gpu_count; device++) {
		for (one = allocations[device]; one; one = one->next) {
			if (address >= one->address && address - one->address < one->size) {
				if (size > one->size - (address - one->address))
					return INVALID_VALUE;
				place->memory = one;
				place->bytes = one->bytes + (address - one->address);
				place->pinned = 0;
				return SUCCESS;
			}
		}
	}
	return INVALID_VALUE;
}

static CUresult on_host(const void *bytes, size_t size, struct place *place)
{
	if (!bytes || in_a_window((uintptr_t)bytes))
		return INVALID_VALUE;
	place->memory = NULL;
	place->bytes = (char *)bytes;
	place->pinned = host_memory_at((uintptr_t)bytes, size);
	return SUCCESS;
}

static CUresult anywhere(CUdeviceptr address, size_t size, struct place *place)
{
	if (in_a_window(address))
		return on_device(address, size, place);
	return on_host((const void *)(uintptr_t)address, size, place);
}

/* ---- copies ---- */

typedef CUresult (*resolver)(CUdeviceptr, size_t, struct place *);

static CUresult host_address(CUdeviceptr address, size_t size, struct place *place)
{
	return on_host((const void *)(uintptr_t)address, size, place);
}

/* Put a copy into a stream. Memory of the host that is not pinned may be gone when the call has returned: it is done then. */
static CUresult copy(CUstream handle, CUdeviceptr to, resolver target, CUdeviceptr from, resolver source, size_t size, int wait)
{
	struct operation *operation;
	struct place ends[2];
	struct stream *stream;
	CUresult result = find_stream(handle, &stream);

	if (result || !size)
		return result;
	result = target(to, size, &ends[0]);
	if (!result)
		result = source(from, size, &ends[1]);
	if (result)
		return result;
	operation = enqueue(stream, COPY);
	operation->target = ends[0];
	operation->source = ends[1];
	operation->size = size;
	operation->direct = ends[0].memory && ends[1].memory && ends[0].memory->device != ends[1].memory->device
			    && reaches(stream->context, ends[0].memory->device, ends[0].memory->context)
			    && reaches(stream->context, ends[1].memory->device, ends[1].memory->context);
	number_copy(operation);
	if (ends[0].memory)
		raise_link(ends[0].memory->device);
	if (ends[1].memory)
		raise_link(ends[1].memory->device);
	if (wait || !(ends[0].memory || ends[0].pinned) || !(ends[1].memory || ends[1].pinned)) {
		finish_stream(stream);
		return stream->context->error;
	}
	return SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
	NEED_INIT();
	return copy(NULL, to, on_device, (uintptr_t)from, host_address, size, 1);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	NEED_INIT();
	return copy(stream, to, on_device, (uintptr_t)from, host_address, size, 0);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
	NEED_INIT();
	return copy(NULL, (uintptr_t)to, host_address, from, on_device, size, 1);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	NEED_INIT();
	return copy(stream, (uintptr_t)to, host_address, from, on_device, size, 0);
}

/* Copies within and between devices do not hold the host up, the ones without "Async" included. */
EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	NEED_INIT();
	return copy(NULL, to, on_device, from, on_device, size, 0);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	NEED_INIT();
	return copy(stream, to, on_device, from, on_device, size, 0);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	NEED_INIT();
	return copy(stream, to, anywhere, from, anywhere, size, 0);
}

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	NEED_INIT();
	return copy(NULL, to, anywhere, from, anywhere, size, !in_a_window(to) || !in_a_window(from));
}

static CUresult of_context(CUcontext context, CUdeviceptr address)
{
	struct place place;

	if (!context || !context_known(context) || !context->active)
		return INVALID_CONTEXT;
	if (on_device(address, 1, &place) || place.memory->device != context->device)
		return INVALID_VALUE;
	return context->error;
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
				  CUstream stream)
{
	CUresult result;

	NEED_INIT();
	result = of_context(to_context, to);
	if (!result)
		result = of_context(from_context, from);
	return result ? result : copy(stream, to, on_device, from, on_device, size, 0);
}

/* Begins after all work of three contexts, and all later work of these begins after it: so nothing else runs meanwhile. */
EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size)
{
	CUresult result;

	NEED_CONTEXT(context);
	result = of_context(to_context, to);
	if (!result)
		result = of_context(from_context, from);
	if (result)
		return result;
	finish_context(context);
	finish_context(to_context);
	finish_context(from_context);
	return copy(NULL, to, on_device, from, on_device, size, 1);
}

/* A copy has come to its end: the bytes, as whatever is wrong leaves them; the error that it ends with. */
CUresult move_bytes(struct operation *operation)
{
	struct allocation *to = operation->target.memory, *from = operation->source.memory;
	const char *source = operation->source.bytes;
	size_t offset = to ? (size_t)(operation->target.bytes - to->bytes) : 0;
	CUcontext context = operation->stream->context;
	CUresult error;

	if (operation->direct && deliver(operation, &error)) {
		content_changed(to);
		return error;
	}
	if (from && from->device != context->device && reaches(context, from->device, from->context)
	    && read_mirror(context->device, &operation->source, operation->target.bytes, operation->size)) {
		if (to)
			content_changed(to);
		return SUCCESS;
	}
	if (to && from && to->copied.version == to->version && to->copied.from_version == from->version
	    && to->copied.from == source && to->copied.offset == offset && to->copied.size == operation->size)
		return SUCCESS;
	memmove(operation->target.bytes, source, operation->size);
	if (!to)
		return SUCCESS;
	content_changed(to);
	to->copied.version = from && from != to ? to->version : 0;
	to->copied.from_version = from ? from->version : 0;
	to->copied.from = source;
	to->copied.offset = offset;
	to->copied.size = operation->size;
	return SUCCESS;
}

/* ---- fills ---- */

static CUresult fill(CUstream handle, CUdeviceptr to, uint32_t value, int width, size_t count)
{
	struct operation *operation;
	struct place place;
	struct stream *stream;
	CUresult result = find_stream(handle, &stream);

	if (result || !count)
		return result;
	if (to % width || count > WINDOW)
		return INVALID_VALUE;
	result = on_device(to, count * width, &place);
	if (result)
		return result;
	operation = enqueue(stream, FILL);
	operation->target = place;
	operation->size = count * width;
	operation->value = value;
	operation->width = width;
	return SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	NEED_INIT();
	return fill(stream, to, value, 1, count);
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	NEED_INIT();
	return fill(NULL, to, value, 1, count);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
	NEED_INIT();
	return fill(stream, to, value, 4, count);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
	NEED_INIT();
	return fill(NULL, to, value, 4, count);
}

void fill_bytes(struct operation *operation)
{
	uint32_t *words = (uint32_t *)operation->target.bytes;
	size_t i;

	content_changed(operation->target.memory);
	if (operation->width == 1) {
		memset(operation->target.bytes, (int)operation->value, operation->size);
		return;
	}
	for (i = 0; i < operation->size / 4; i++)
		words[i] = operation->value;
}

/* ---- what the library also exports under these names: the interface from before 64-bit addresses ---- */

EXPORT CUresult cuMemAlloc(unsigned int *address, unsigned int size)
{
	CUdeviceptr whole;
	CUresult result = cuMemAlloc_v2(&whole, size);

	if (!result) /* the old interface has no room for more */
		*address = (unsigned int)whole;
	return result;
}

EXPORT CUresult cuMemFree(unsigned int address)
{
	return cuMemFree_v2(address);
}

EXPORT CUresult cuMemcpyHtoD(unsigned int to, const void *from, unsigned int size)
{
	return cuMemcpyHtoD_v2(to, from, size);
}

EXPORT CUresult cuMemcpyDtoH(void *to, unsigned int from, unsigned int size)
{
	return cuMemcpyDtoH_v2(to, from, size);
}

/* ---- kernels: there is nothing here to run them ---- */

EXPORT CUresult cuModuleLoadData(void **module, const void *image)
{
	NEED_CONTEXT(context);
	return module && image ? NOT_SUPPORTED : INVALID_VALUE;
}

EXPORT CUresult cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
			       unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **parameters,
			       void **extra)
{
	NEED_CONTEXT(context);
	return NOT_SUPPORTED;
}
