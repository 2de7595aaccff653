/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Streams at work, by a clock of their own. Nothing here takes the time that it says it took: work goes into its stream, and
 * when somebody waits for it, the clock runs on to its end, from one event to the next. Bytes move when a copy ends by this clock:
 * whoever looks before, sees what was there before. The clock also runs a little with each call, as a host takes time to make it.
 */
#include "driver.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define CALL 1500.0 /* ns that it takes to put something into a stream */
#define WAKE 2000.0 /* ns from the end of what somebody waits for until he knows */
#define QUEUE 1024 /* operations that a stream holds; whoever adds more waits */
#define STREAMS 4096
#define NEVER 1e300

static double now; /* ns since the process began, by the host's calls and what it waited for */
static uint64_t orders;
static struct stream *busy[STREAMS]; /* the streams that hold something */
static int busy_count;

/* ---- one operation ---- */

/* The default stream waits for all that was there before it in the blocking streams of its context, and they for it. */
static int may_start(const struct operation *operation)
{
	const struct stream *stream = operation->stream, *standard = &stream->context->standard;
	const uint32_t *word = (const uint32_t *)operation->target.bytes;
	int i;

	for (i = 0; i < busy_count; i++)
		if ((busy[i] == standard ? stream->blocking : stream == standard && busy[i]->blocking)
		    && busy[i]->context == stream->context && busy[i]->first->order < operation->order)
			return 0;
	if (operation->kind == WAIT_EVENT)
		return operation->event->reached >= operation->record;
	if (operation->kind == WAIT_VALUE) {
		uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);

		return operation->compare == 0	 ? (int32_t)(seen - operation->value) >= 0
		       : operation->compare == 1 ? seen == operation->value
		       : operation->compare == 2 ? (seen & operation->value) != 0
						 : (~(seen | operation->value)) != 0;
	}
	return 1;
}

static void take_out(struct stream *stream)
{
	struct operation *gone = stream->first;
	int i;

	stream->first = gone->next;
	stream->length--;
	free(gone);
	if (stream->first)
		return;
	stream->last = NULL;
	for (i = 0; busy[i] != stream; i++)
		;
	busy[i] = busy[--busy_count];
}

void drop_operations(struct stream *stream)
{
	while (stream->first)
		take_out(stream);
}

/* From now on every call in this context answers this, and what it still had to do is not done. */
static void break_context(CUcontext context, CUresult error)
{
	int i;

	context->error = error;
	for (i = busy_count - 1; i >= 0; i--)
		if (busy[i]->context == context)
			drop_operations(busy[i]);
	settle_events_of(context);
}

static void end(struct operation *operation)
{
	CUcontext context = operation->stream->context;
	CUresult error = SUCCESS;

	if (operation->kind == COPY) {
		error = move_bytes(operation);
	} else if (operation->kind == FILL) {
		fill_bytes(operation);
	} else if (operation->kind == RECORD) {
		if (operation->record > operation->event->reached)
			operation->event->reached = operation->record;
		operation->event->time = now;
	} else if (operation->kind == WRITE_VALUE) {
		__atomic_store_n((uint32_t *)operation->target.bytes, operation->value, __ATOMIC_RELEASE);
	}
	take_out(operation->stream);
	if (error)
		break_context(context, error);
}

static int moves_bytes(const struct operation *operation)
{
	return operation->kind == COPY || operation->kind == FILL;
}

/* ---- the clock ---- */

/* Begin all that can begin now. What takes no time also ends, which may let more begin. How many have ended. */
static int begin(void)
{
	int i = 0, ended = 0;

	while (i < busy_count) {
		struct operation *head = busy[i]->first;

		if (head->started || !may_start(head)) {
			i++;
			continue;
		}
		head->started = 1;
		head->ready = now + latency(head);
		head->remaining = head->size;
		if (!moves_bytes(head)) {
			end(head);
			ended++;
			i = 0;
		}
	}
	return ended;
}

/* Run to the next change, or to this time if there is none before: whether there was one. */
static int step(double limit)
{
	struct operation *moving[STREAMS];
	double next = NEVER, until;
	int count = 0, i;

	if (begin())
		return 1;
	for (i = 0; i < busy_count; i++)
		if (busy[i]->first->started && busy[i]->first->ready <= now)
			moving[count++] = busy[i]->first;
	share(moving, count);
	for (i = 0; i < busy_count; i++) {
		struct operation *head = busy[i]->first;

		if (!head->started)
			continue;
		if (head->ready > now)
			until = head->ready;
		else
			until = head->rate > 0 ? now + head->remaining / head->rate : NEVER;
		if (until < next)
			next = until;
	}
	if (next >= limit) {
		if (limit == NEVER)
			return 0;
		next = limit;
	}
	for (i = 0; i < count; i++)
		moving[i]->remaining -= moving[i]->rate * (next - now);
	now = next;
	/* Ended by less than a byte, which is what rounding leaves. One that ends may take others along: look again each time. */
	for (i = 0; i < busy_count; i++) {
		struct operation *head = busy[i]->first;

		if (head->started && head->ready <= now && head->remaining < 0.5) {
			end(head);
			i = -1;
		}
	}
	return next < limit || begin();
}

void pass(double nanoseconds)
{
	double limit = now + nanoseconds;

	while (step(limit))
		;
}

void until_next_end(void)
{
	step(NEVER);
}

/* ---- waiting ---- */

/* What a call does when the hardware does not answer: it sits in the kernel, where no signal but KILL reaches it. */
void hang(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (;;)
		pause();
}

/* One step further; where nothing can go on by itself, only a write of the host's can help. */
static void wait_on(void)
{
	int i;

	if (step(NEVER))
		return;
	for (i = 0; i < busy_count; i++)
		if (busy[i]->first->kind == WAIT_VALUE)
			break;
	if (i == busy_count)
		hang();
	give_way();
}

static void finish_up_to(struct stream *stream, uint64_t order)
{
	while (stream->first && stream->first->order <= order)
		wait_on();
}

void finish_stream(struct stream *stream)
{
	finish_up_to(stream, orders);
	pass(WAKE);
}

void finish_context(CUcontext context)
{
	struct stream *stream;
	uint64_t last = orders;

	finish_up_to(&context->standard, last);
	for (stream = all_streams(); stream; stream = stream->next)
		if (stream->context == context)
			finish_up_to(stream, last);
	pass(WAKE);
}

static int touches(const struct place *place, const char *bytes, size_t size)
{
	return place->bytes >= bytes && place->bytes < bytes + size;
}

/* Whoever gives memory back waits for all that works on it, in other contexts too. */
void finish_touching(const char *bytes, size_t size)
{
	struct operation *one;
	int i = 0;

	while (i < busy_count) {
		for (one = busy[i]->first; one; one = one->next)
			if (touches(&one->target, bytes, size) || touches(&one->source, bytes, size))
				break;
		if (one) {
			wait_on();
			i = 0;
		} else {
			i++;
		}
	}
}

void finish_record(CUevent event)
{
	uint64_t record = event->recorded;

	while (event->reached < record && !event->context->error)
		wait_on();
	pass(WAKE);
}

struct operation *enqueue(struct stream *stream, enum operation_kind kind)
{
	struct operation *operation = calloc(1, sizeof(*operation));

	while (stream->length >= QUEUE)
		wait_on();
	pass(CALL);
	if (!operation || busy_count == STREAMS)
		abort();
	operation->kind = kind;
	operation->stream = stream;
	operation->order = ++orders;
	if (stream->last)
		stream->last->next = operation;
	else
		(busy[busy_count++] = stream)->first = operation;
	stream->last = operation;
	stream->length++;
	return operation;
}
