/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long things take, by what lies between two GPUs. */
#include "driver.h"

#define MEMORY_RATE 700.0 /* GB/s of a copy within a device */
#define LINK_RATE 53.0

int can_access(CUdevice from, CUdevice to)
{
	return from != to;
}

double latency(const struct operation *operation)
{
	return operation->kind == COPY ? 400 : 0;
}

void share(struct operation **moving, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		const struct operation *one = moving[i];
		const struct allocation *to = one->target.memory, *from = one->source.memory;

		moving[i]->rate = one->kind == FILL || (to && from && to->device == from->device) ? MEMORY_RATE : LINK_RATE;
	}
}
