/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contexts: which one a thread works in, and whose memory it may reach. */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 32

static struct context *contexts; /* none is ever freed, so that a handle of a destroyed one can be told from a wrong one */
static struct context *primaries[MAX_GPUS];
static uint32_t serials;
static __thread CUcontext stack[DEPTH];
static __thread int depth;

/* ---- the lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int entered;
static pid_t owner;

/* Take the lock, unless this thread has it: some calls of the API are made of others. */
CUresult enter(const char *call)
{
	if (!entered++)
		pthread_mutex_lock(&lock);
	if (!owner)
		owner = getpid();
	/* What a fork leaves of the driver is of no use to the child: as with the real one. */
	if (!owns_driver() && initialised)
		return NOT_INITIALIZED;
	read_faults();
	arrive_late();
	return fault_of_call(call, -1);
}

/* Not so in what a fork made of this process. */
int owns_driver(void)
{
	return owner == getpid();
}

void leave(int *held)
{
	(void)held;
	if (!--entered)
		pthread_mutex_unlock(&lock);
}

/* Let other threads and the host's writes go on while a call waits for them. */
void give_way(void)
{
	pthread_mutex_unlock(&lock);
	usleep(200);
	pthread_mutex_lock(&lock);
}

/* ---- contexts ---- */

int context_known(CUcontext context)
{
	struct context *one;

	for (one = contexts; one; one = one->next)
		if (one == context)
			return 1;
	return 0;
}

static CUresult sound(CUcontext context)
{
	if (!context || !context_known(context))
		return INVALID_CONTEXT;
	if (!context->active)
		return CONTEXT_IS_DESTROYED;
	return context->error;
}

/* The calling thread's context; its error if it has one. */
CUresult current_context(CUcontext *context)
{
	*context = depth ? stack[depth - 1] : NULL;
	return sound(*context);
}

/* Whether work of this context may touch memory of a device that belongs to this other context. */
int reaches(CUcontext context, CUdevice device, CUcontext other)
{
	return context->device == device || context->peers[device] == other->serial;
}

static struct context *new_context(CUdevice device, int primary)
{
	struct context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->device = device;
	context->primary = primary;
	context->serial = ++serials;
	context->standard.context = context;
	context->standard.blocking = 1;
	context->next = contexts;
	contexts = context;
	return context;
}

/* Everything that belongs to it goes. Peers that had access keep a number that no context will have again. */
static void end_context(CUcontext context)
{
	context->active = 0;
	drop_streams_of(context);
	drop_operations(&context->standard);
	settle_events_of(context);
	free_memory_of(context);
	memset(context->peers, 0, sizeof(context->peers));
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	NEED_DEVICE(device);
	if (!context)
		return INVALID_VALUE;
	if (!primaries[device])
		primaries[device] = new_context(device, 1);
	if (!primaries[device])
		return OUT_OF_MEMORY;
	/* A fault that left the context broken outlives it: only a new process gets rid of it. */
	if (primaries[device]->error)
		return primaries[device]->error;
	primaries[device]->retained++;
	if (!primaries[device]->active) {
		primaries[device]->active = 1;
		primaries[device]->serial = ++serials;
	}
	*context = primaries[device];
	return SUCCESS;
}

/* Ends it, but does not count as a release. */
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUcontext context;

	NEED_DEVICE(device);
	context = primaries[device];
	if (!context || !context->active)
		return SUCCESS;
	finish_context(context);
	end_context(context);
	return context->error;
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	NEED_DEVICE(device);
	if (!primaries[device] || !primaries[device]->retained)
		return INVALID_CONTEXT;
	return --primaries[device]->retained ? SUCCESS : cuDevicePrimaryCtxReset_v2(device);
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return cuDevicePrimaryCtxRelease_v2(device);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	NEED_DEVICE(device);
	if (!flags || !active)
		return INVALID_VALUE;
	*flags = 0;
	*active = primaries[device] && primaries[device]->active;
	return SUCCESS;
}

static CUresult push(CUcontext context)
{
	if (depth == DEPTH)
		return OUT_OF_MEMORY;
	stack[depth++] = context;
	return SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	NEED_DEVICE(device);
	if (!context || flags & ~0x7fu)
		return INVALID_VALUE;
	*context = new_context(device, 0);
	if (!*context)
		return OUT_OF_MEMORY;
	(*context)->active = 1;
	return push(*context);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
	NEED_INIT();
	if (!context || !context_known(context) || context->primary)
		return INVALID_CONTEXT;
	if (!context->active)
		return CONTEXT_IS_DESTROYED;
	finish_context(context);
	end_context(context);
	if (depth && stack[depth - 1] == context)
		depth--;
	return context->error;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
	NEED_INIT();
	if (context && !context_known(context))
		return INVALID_CONTEXT;
	if (context && !context->active)
		return CONTEXT_IS_DESTROYED;
	if (depth)
		depth--;
	return context ? push(context) : SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
	NEED_INIT();
	if (!context)
		return INVALID_VALUE;
	*context = depth ? stack[depth - 1] : NULL;
	return SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	NEED_CONTEXT(context);
	if (!device)
		return INVALID_VALUE;
	*device = context->device;
	return SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	CUresult result;

	NEED_INIT();
	result = sound(context);
	return result ? result : push(context);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	NEED_INIT();
	if (!depth)
		return INVALID_CONTEXT;
	depth--;
	if (context)
		*context = stack[depth];
	return SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
	NEED_CONTEXT(context);
	finish_context(context);
	return context->error;
}

/* ---- peers ---- */

EXPORT CUresult cuDeviceCanAccessPeer(int *value, CUdevice device, CUdevice peer)
{
	NEED_DEVICE(device);
	if (peer < 0 || peer >= gpu_count)
		return INVALID_DEVICE;
	if (!value)
		return INVALID_VALUE;
	*value = device != peer && can_access(device, peer);
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer)
{
	NEED_DEVICE(device);
	if (peer < 0 || peer >= gpu_count || peer == device)
		return INVALID_DEVICE;
	if (!value || attribute < 1 || attribute > 5)
		return INVALID_VALUE;
	/* ACCESS_SUPPORTED and CUDA_ARRAY_ACCESS_SUPPORTED; one rank for all, and no atomics over PCIe. */
	*value = (attribute == 2 || attribute == 4) && can_access(device, peer);
	return SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	NEED_CONTEXT(context);
	if (flags)
		return INVALID_VALUE;
	if (sound(peer) || peer == context)
		return INVALID_CONTEXT;
	if (peer->device == context->device || !can_access(context->device, peer->device))
		return PEER_ACCESS_UNSUPPORTED;
	if (fault_of_access(context->device, peer->device))
		return fault_of_access(context->device, peer->device);
	if (context->peers[peer->device] == peer->serial)
		return PEER_ACCESS_ALREADY_ENABLED;
	context->peers[peer->device] = peer->serial;
	return SUCCESS;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	NEED_CONTEXT(context);
	if (sound(peer))
		return INVALID_CONTEXT;
	if (context->peers[peer->device] != peer->serial)
		return PEER_ACCESS_NOT_ENABLED;
	finish_context(context);
	context->peers[peer->device] = 0;
	return context->error;
}
