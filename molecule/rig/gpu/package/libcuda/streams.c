/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams and events. Destroyed ones stay in the lists, so that what still waits for them finds them. */
#include "driver.h"

#include <stdlib.h>

#define NON_BLOCKING 1
#define DISABLE_TIMING 2

static struct stream *streams;
static struct event *events;

struct stream *all_streams(void)
{
	return streams;
}

/* A handle, 0 or 1 (the default stream of the current context) or 2 (the thread's default one, here the same). */
CUresult find_stream(CUstream handle, struct stream **stream)
{
	CUcontext context;
	CUresult state;

	if ((uintptr_t)handle <= 2) {
		state = current_context(&context);
		if (!state)
			*stream = &context->standard;
		return state;
	}
	for (*stream = streams; *stream; *stream = (*stream)->next)
		if (*stream == handle && !handle->destroyed)
			return handle->context->active ? handle->context->error : CONTEXT_IS_DESTROYED;
	return INVALID_HANDLE;
}

void drop_streams_of(CUcontext context)
{
	struct stream *stream;

	for (stream = streams; stream; stream = stream->next) {
		if (stream->context == context) {
			drop_operations(stream);
			stream->destroyed = 1;
		}
	}
}

/* What was to reach them is not done any more: nobody shall wait for it. */
void settle_events_of(CUcontext context)
{
	struct event *event;

	for (event = events; event; event = event->next)
		if (event->context == context)
			event->reached = event->recorded;
}

static CUresult find_event(CUevent handle)
{
	struct event *event;

	for (event = events; event; event = event->next)
		if (event == handle && !event->destroyed)
			return event->context->active ? SUCCESS : CONTEXT_IS_DESTROYED;
	return INVALID_HANDLE;
}

EXPORT CUresult cuStreamCreate(CUstream *handle, unsigned int flags)
{
	struct stream *stream;

	NEED_CONTEXT(context);
	if (!handle || flags & ~NON_BLOCKING)
		return INVALID_VALUE;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return OUT_OF_MEMORY;
	stream->context = context;
	stream->blocking = !(flags & NON_BLOCKING);
	stream->next = streams;
	streams = *handle = stream;
	return SUCCESS;
}

/* Work that is in the stream still ends. */
EXPORT CUresult cuStreamDestroy_v2(CUstream handle)
{
	struct stream *stream;
	CUresult result;

	NEED_INIT();
	if ((uintptr_t)handle <= 2)
		return INVALID_HANDLE;
	result = find_stream(handle, &stream);
	if (!result)
		stream->destroyed = 1;
	return result;
}

EXPORT CUresult cuStreamSynchronize(CUstream handle)
{
	struct stream *stream;
	CUresult result;

	NEED_INIT();
	result = find_stream(handle, &stream);
	if (result)
		return result;
	finish_stream(stream);
	return stream->context->error;
}

EXPORT CUresult cuStreamQuery(CUstream handle)
{
	struct stream *stream;
	CUresult result;

	NEED_INIT();
	result = find_stream(handle, &stream);
	if (result)
		return result;
	pass(1000);
	if (stream->first) {
		until_next_end();
		return stream->context->error ? stream->context->error : NOT_READY;
	}
	return stream->context->error;
}

EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
	struct operation *operation;
	struct stream *stream;
	CUresult result;

	NEED_INIT();
	result = find_stream(handle, &stream);
	if (!result)
		result = find_event(event);
	if (result)
		return result;
	if (flags & ~1u)
		return INVALID_VALUE;
	operation = enqueue(stream, WAIT_EVENT);
	operation->event = event;
	operation->record = event->recorded;
	return SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *handle, unsigned int flags)
{
	struct event *event;

	NEED_CONTEXT(context);
	if (!handle || flags & ~7u)
		return INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return OUT_OF_MEMORY;
	event->context = context;
	event->timed = !(flags & DISABLE_TIMING);
	event->next = events;
	events = *handle = event;
	return SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult result;

	NEED_INIT();
	result = find_event(event);
	if (!result)
		event->destroyed = 1;
	return result;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream handle)
{
	struct operation *operation;
	struct stream *stream;
	CUresult result;

	NEED_INIT();
	result = find_event(event);
	if (!result)
		result = find_stream(handle, &stream);
	if (result)
		return result;
	if (stream->context != event->context)
		return INVALID_HANDLE;
	operation = enqueue(stream, RECORD);
	operation->event = event;
	operation->record = ++event->recorded;
	return SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
	CUresult result;

	NEED_INIT();
	result = find_event(event);
	if (result)
		return result;
	pass(1000);
	if (event->reached < event->recorded) {
		until_next_end();
		return event->context->error ? event->context->error : NOT_READY;
	}
	return event->context->error;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
	CUresult result;

	NEED_INIT();
	result = find_event(event);
	if (result)
		return result;
	finish_record(event);
	return event->context->error;
}

/* In steps of half a microsecond, which is what the real one's clock resolves. */
EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
	CUresult result;

	NEED_INIT();
	result = find_event(start);
	if (!result)
		result = find_event(end);
	if (result)
		return result;
	if (!milliseconds)
		return INVALID_VALUE;
	if (!start->timed || !end->timed || start->context != end->context || !start->recorded || !end->recorded)
		return INVALID_HANDLE;
	if (start->reached < start->recorded || end->reached < end->recorded)
		return NOT_READY;
	*milliseconds = (float)((long long)((end->time - start->time) / 500 + 0.5) * 0.0005);
	return SUCCESS;
}

EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
	return cuEventElapsedTime(milliseconds, start, end);
}

/* ---- words in memory that a stream waits for or writes: what holds a stream back until the host lets it go ---- */

static CUresult word(CUstream handle, CUdeviceptr address, uint32_t value, unsigned int flags, enum operation_kind kind)
{
	struct operation *operation;
	struct stream *stream;
	CUresult result = find_stream(handle, &stream);

	if (result)
		return result;
	if (!address || address % 4 || flags > (kind == WAIT_VALUE ? 3 : 1))
		return INVALID_VALUE;
	operation = enqueue(stream, kind);
	operation->target.bytes = (char *)(uintptr_t)address;
	operation->value = value;
	operation->compare = flags;
	return SUCCESS;
}

/* flags: GEQ 0, EQ 1, AND 2, NOR 3. Only for words of the host, which is where a blocker has its flag. */
EXPORT CUresult cuStreamWaitValue32_v2(CUstream handle, CUdeviceptr address, uint32_t value, unsigned int flags)
{
	NEED_INIT();
	return host_memory_at(address, 4) ? word(handle, address, value, flags, WAIT_VALUE) : INVALID_VALUE;
}

EXPORT CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr address, uint32_t value, unsigned int flags)
{
	NEED_INIT();
	return host_memory_at(address, 4) ? word(handle, address, value, flags, WRITE_VALUE) : INVALID_VALUE;
}
