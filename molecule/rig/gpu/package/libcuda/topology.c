/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How fast bytes move, by what the PCI tree in sysfs has between two devices: the links they cross with speed and width, shared
 * with all that crosses them at the same time, and what the place of two GPUs to each other leaves of it. The figures are those
 * of machines with such GPUs: a link of 32 GT/s and 16 lanes carries 63.0 GB/s, of which copies see 50 to 54 (rtx6kpro,
 * the pages on hardware), 16 bytes take 0.4 to 1 us, and 14 us if they go through the memory of the host.
 */
#include "driver.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEPTH 12
#define MAX_LINKS 64
#define MAX_CROSSED (2 * MAX_DEPTH)

enum class { PIX, PXB, PHB, NODE, SYS };

/* What a copy sees of the slowest link on its way, by the class of the pair; its latency in ns. */
static const double efficiency[] = { 0.86, 0.855, 0.85, 0.845, 0.81 };
static const double latencies[] = { 380, 420, 450, 500, 900 };
/* Through the host's memory: within a socket, and across. */
static const double staged_efficiency[] = { 0.42, 0.33 };
#define STAGED_LATENCY 14000.0
#define PINNED_LATENCY 1000.0
#define PAGEABLE_LATENCY 5000.0
#define PAGEABLE_RATE 12.0
#define LOCAL_LATENCY 400.0
#define FILL_LATENCY 300.0
/* What all copies over a link get of it together, and of that if the other direction is busy too. */
#define LINK_EFFICIENCY 0.88
#define BOTH_WAYS 0.95
#define SOCKET_RATE 160.0 /* GB/s between two sockets, each way */
#define MEMORY_RATE 700.0 /* GB/s of copies within a device */

enum { UP, DOWN };

struct link {
	char below[16]; /* the device at its lower end */
	double raw;
};

static struct link links[MAX_LINKS];
static int link_count;

static struct position {
	int known, node, depth, link_count;
	char chain[MAX_DEPTH][16]; /* from the root complex down to the GPU */
	int links[MAX_DEPTH]; /* from the GPU up */
} positions[MAX_GPUS];

/* What can be crowded: both directions of each link, the way between sockets each way, the memory of each device. */
#define SOCKETS (2 * MAX_LINKS)
#define MEMORIES (SOCKETS + 2)
#define RESOURCES (MEMORIES + MAX_GPUS)

struct way {
	int resources[MAX_CROSSED + 2], count;
	double cap;
};

/* ---- the tree ---- */

static int attribute(const char *address, const char *name, char *text, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), ROOT "/sys/bus/pci/devices/%s/%s", address, name);
	return read_text(path, text, size);
}

/* GB/s that a generation carries per lane, after its line code. */
static double lane_rate(int gigatransfers)
{
	return gigatransfers <= 2    ? 2.5 * 0.8 / 8
	       : gigatransfers <= 5  ? 5 * 0.8 / 8
	       : gigatransfers <= 32 ? gigatransfers * 128.0 / 130 / 8
				     : gigatransfers * 242.0 / 256 / 8;
}

static double speed_of(const char *address, int gpu)
{
	struct link_fault fault = fault_of_link(address);
	char text[64];
	/* A GPU at rest shows a speed that it leaves as soon as it has to do something. */
	int speed = attribute(address, gpu ? "max_link_speed" : "current_link_speed", text, sizeof(text)) ? number(text, 10) : 32;
	int width = attribute(address, "current_link_width", text, sizeof(text)) ? number(text, 10) : 16;

	if (fault.gigatransfers)
		speed = fault.gigatransfers;
	if (fault.width)
		width = fault.width;
	return lane_rate(speed) * width;
}

/* The link between a device and the port above it: as good as the worse of its ends. */
static int link_above(const char *below, const char *above, int gpu)
{
	double raw, other;
	int i;

	for (i = 0; i < link_count; i++)
		if (!strcmp(links[i].below, below))
			return i;
	if (link_count == MAX_LINKS)
		abort();
	raw = speed_of(below, gpu);
	other = speed_of(above, 0);
	snprintf(links[link_count].below, sizeof(links[0].below), "%s", below);
	links[link_count].raw = other < raw ? other : raw;
	return link_count++;
}

static const struct position *position(CUdevice device)
{
	struct position *here = &positions[device];
	char path[PATH_MAX], whole[PATH_MAX], text[16];
	char *word, *next;
	int i;

	if (here->known)
		return here;
	here->known = 1;
	here->node = attribute(gpus[device].address, "numa_node", text, sizeof(text)) && text[0] != '-' ? number(text, 10) : -1;
	snprintf(path, sizeof(path), ROOT "/sys/bus/pci/devices/%s", gpus[device].address);
	word = realpath(path, whole) ? strstr(whole, "/pci0") : NULL;
	for (word = word ? word + 1 : NULL; word && here->depth < MAX_DEPTH; word = next) {
		next = strchr(word, '/');
		if (next)
			*next++ = 0;
		snprintf(here->chain[here->depth++], sizeof(here->chain[0]), "%.15s", word);
	}
	/* Below the root complex come a port and the device at its other end, a port and a device, and so on. */
	for (i = here->depth - 1; i >= 2; i -= 2)
		here->links[here->link_count++] = link_above(here->chain[i], here->chain[i - 1], i == here->depth - 1);
	return here;
}

/* How many of the chain's first members two GPUs have in common. */
static int shared_depth(const struct position *a, const struct position *b)
{
	int depth = 0;

	while (depth < a->depth && depth < b->depth && !strcmp(a->chain[depth], b->chain[depth]))
		depth++;
	return depth;
}

static enum class class_of(CUdevice from, CUdevice to)
{
	const struct position *a = position(from), *b = position(to);
	int depth = shared_depth(a, b);

	if (depth == 0)
		return a->node == b->node ? NODE : SYS;
	if (depth == 1)
		return PHB;
	/* One switch if both hang on ports of the deepest one that they share. */
	return a->depth - depth <= 2 && b->depth - depth <= 2 ? PIX : PXB;
}

/* ---- one copy's way ---- */

static void cross(struct way *way, int resource)
{
	way->resources[way->count++] = resource;
}

/* The links between a GPU and what it shares with the other end (0: nothing); the rate of the slowest. */
static double climb(struct way *way, CUdevice device, int shared, int direction)
{
	const struct position *here = position(device);
	double slowest = lane_rate(32) * 16;
	int i;

	for (i = 0; i < here->link_count && here->depth - 1 - 2 * i >= shared; i++) {
		cross(way, 2 * here->links[i] + direction);
		if (links[here->links[i]].raw < slowest)
			slowest = links[here->links[i]].raw;
	}
	return slowest;
}

static void find_way(const struct operation *operation, struct way *way)
{
	const struct allocation *to = operation->target.memory, *from = operation->source.memory;
	double up, down;
	enum class class;

	way->count = 0;
	if (operation->kind == FILL || (to && from && to->device == from->device)) {
		cross(way, MEMORIES + to->device);
		way->cap = MEMORY_RATE;
	} else if (to && from) {
		class = class_of(from->device, to->device);
		if (class == SYS)
			cross(way, SOCKETS + (position(from->device)->node < position(to->device)->node));
		if (operation->direct) {
			int shared = shared_depth(position(from->device), position(to->device));

			up = climb(way, from->device, shared, UP);
			down = climb(way, to->device, shared, DOWN);
			way->cap = (up < down ? up : down) * efficiency[class];
		} else {
			up = climb(way, from->device, 0, UP);
			down = climb(way, to->device, 0, DOWN);
			way->cap = (up < down ? up : down) * staged_efficiency[class == SYS];
		}
	} else if (to || from) {
		way->cap = climb(way, to ? to->device : from->device, 0, to ? DOWN : UP) * LINK_EFFICIENCY;
		if (!(to ? operation->source : operation->target).pinned)
			way->cap = way->cap < PAGEABLE_RATE ? way->cap : PAGEABLE_RATE;
	} else {
		way->cap = PAGEABLE_RATE;
	}
}

double latency(const struct operation *operation)
{
	const struct allocation *to = operation->target.memory, *from = operation->source.memory;

	if (operation->kind != COPY)
		return operation->kind == FILL ? FILL_LATENCY : 0;
	if (!to || !from)
		return (to ? operation->source : operation->target).pinned ? PINNED_LATENCY : PAGEABLE_LATENCY;
	if (to->device == from->device)
		return LOCAL_LATENCY;
	return operation->direct ? fault_of_latency(operation, latencies[class_of(from->device, to->device)]) : STAGED_LATENCY;
}

/* Whether a copy leaves this bridge's part of the tree, through a root port other than its own. */
static int leaves(CUdevice from, CUdevice to, const char *bridge)
{
	const struct position *a = position(from), *b = position(to);
	int i, below = 0;

	for (i = 0; i < a->depth; i++)
		below |= !strcmp(a->chain[i], bridge);
	return below && shared_depth(a, b) < 2;
}

/*
 * The collapse of posted writes: as soon as two GPUs below this bridge write to GPUs elsewhere at the same time, what all
 * of them get together is this. Reads, and one GPU alone, have the full rate.
 */
static void collapse(struct operation **moving, struct way *ways, int count)
{
	double gbps;
	const char *bridge;
	int nth, i, first, several, writers;

	for (nth = 0; (bridge = fault_of_bridge(nth, &gbps)); nth++) {
		first = -1, several = 0, writers = 0;
		for (i = 0; i < count; i++) {
			if (!writes_to_peer(moving[i]) || !leaves(moving[i]->source.memory->device, moving[i]->target.memory->device, bridge))
				continue;
			several |= first >= 0 && first != moving[i]->source.memory->device;
			first = moving[i]->source.memory->device;
			writers++;
		}
		for (i = 0; several && i < count; i++)
			if (writes_to_peer(moving[i]) && leaves(moving[i]->source.memory->device, moving[i]->target.memory->device, bridge)
			    && gbps / writers < ways[i].cap)
				ways[i].cap = gbps / writers;
	}
}

/* ---- all copies that run at the same time ---- */

/* Rates such that nobody can have more without one with less having even less (max-min fairness). */
void share(struct operation **moving, int count)
{
	static struct way *ways;
	static int room;
	double left[RESOURCES], limit, least;
	int users[RESOURCES] = { 0 }, i, j, resource, open = count;

	if (room < count) {
		room = count * 2;
		ways = realloc(ways, room * sizeof(*ways));
		if (!ways)
			abort();
	}
	for (i = 0; i < count; i++) {
		find_way(moving[i], &ways[i]);
		moving[i]->rate = -1;
	}
	count_together(moving, count);
	collapse(moving, ways, count);
	for (i = 0; i < count; i++) {
		/* Faults may say how fast it is, whatever else goes on. */
		if (fault_of_rate(moving[i], &ways[i].cap)) {
			moving[i]->rate = ways[i].cap;
			open--;
			continue;
		}
		for (j = 0; j < ways[i].count; j++)
			users[ways[i].resources[j]]++;
	}
	for (i = 0; i < link_count; i++) {
		left[2 * i] = left[2 * i + 1] = links[i].raw * LINK_EFFICIENCY * (users[2 * i] && users[2 * i + 1] ? BOTH_WAYS : 1);
	}
	left[SOCKETS] = left[SOCKETS + 1] = SOCKET_RATE;
	for (i = 0; i < MAX_GPUS; i++)
		left[MEMORIES + i] = MEMORY_RATE;
	while (open) {
		double limits[count];

		least = 1e300;
		for (i = 0; i < count; i++) {
			if (moving[i]->rate >= 0)
				continue;
			limit = ways[i].cap;
			for (j = 0; j < ways[i].count; j++) {
				resource = ways[i].resources[j];
				if (left[resource] / users[resource] < limit)
					limit = left[resource] / users[resource];
			}
			limits[i] = limit;
			if (limit < least)
				least = limit;
		}
		for (i = 0; i < count; i++) {
			if (moving[i]->rate >= 0 || limits[i] > least * 1.000001)
				continue;
			moving[i]->rate = least;
			open--;
			for (j = 0; j < ways[i].count; j++) {
				left[ways[i].resources[j]] -= least;
				users[ways[i].resources[j]]--;
			}
		}
	}
}

/* ---- what sysfs shows of the links of GPUs that work ---- */

static int raised[MAX_GPUS];

static void show_speed(CUdevice device, const char *speed)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), ROOT "/sys/bus/pci/devices/%s/current_link_speed", gpus[device].address);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return; /* there is no such bus */
	if (write(fd, speed, strlen(speed)) < 0)
		perror(path);
	close(fd);
}

/* A GPU that has something to do brings its link up. */
void raise_link(CUdevice device)
{
	struct link_fault fault;
	char speed[64] = "32.0 GT/s PCIe\n";

	if (raised[device])
		return;
	raised[device] = 1;
	fault = fault_of_link(gpus[device].address);
	if (fault.gigatransfers)
		snprintf(speed, sizeof(speed), "%s GT/s PCIe\n", fault.gigatransfers == 2 ? "2.5" : fault.text);
	else
		attribute(gpus[device].address, "max_link_speed", speed, sizeof(speed));
	show_speed(device, speed);
}

/* And lets it down again afterwards, unless the process is killed: then it stays up, which hardware has been seen to do. */
__attribute__((destructor)) static void lower_links(void)
{
	int i;

	for (i = 0; i < gpu_count; i++)
		if (raised[i] && owns_driver())
			show_speed(i, "2.5 GT/s PCIe\n");
}
