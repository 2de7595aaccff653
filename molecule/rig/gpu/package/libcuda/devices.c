/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A simulated libcuda.so.1. What cuInit returns follows from what a process can see, as with the real one:
 *
 *   no driver in the kernel, or no GPU whose node opens      100  CUDA_ERROR_NO_DEVICE
 *   kernel driver of another version than this library       803  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
 *   /dev/nvidia-uvm absent, denied, or of another major      999  CUDA_ERROR_UNKNOWN
 *   HMM not disabled in nvidia_uvm                             3  CUDA_ERROR_NOT_INITIALIZED
 *
 * The real one would have a missing nvidia-uvm node made by the setuid nvidia-modprobe; this one does not.
 * After cuInit the process keeps the nodes open until it ends, so that the modules are in use.
 *
 * Given at build time: VERSION ("595.58.03"), CUDA_DRIVER_VERSION (13020), MEMORY_MIB, and in tests ROOT, a folder that
 * stands for /. No strtol or sscanf: newer C libraries bind those to symbols that older guests lack.
 */
#include "driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct gpu gpus[MAX_GPUS];
int gpu_count;
int initialised;
static int control_fd = -1, uvm_fd = -1;

/* ---- what the kernel shows ---- */

int read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = 0, got;

	if (fd < 0)
		return 0;
	while ((size_t)length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
		length += got;
	close(fd);
	text[length] = 0;
	return 1;
}

int number(const char *text, int base)
{
	int value = 0, digit;

	for (; *text; text++) {
		digit = *text >= '0' && *text <= '9'   ? *text - '0'
			: *text >= 'a' && *text <= 'f' ? *text - 'a' + 10
			: *text >= 'A' && *text <= 'F' ? *text - 'A' + 10
						       : 99;
		if (digit >= base)
			break;
		value = value * base + digit;
	}
	return value;
}

/* The major that a driver registered under this name, or -1. */
static int registered_major(const char *name)
{
	static char text[16384];
	char *line, *next, *word;

	if (!read_text(ROOT "/proc/devices", text, sizeof(text)))
		return -1;
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (strncmp(line, "Block", 5) == 0)
			return -1;
		while (*line == ' ')
			line++;
		word = strchr(line, ' ');
		if (word && strcmp(word + 1, name) == 0)
			return number(line, 10);
	}
	return -1;
}

/* A descriptor of a device node whose major is the one that the driver registered, or -1. */
static int open_node(const char *node, const char *driver)
{
	char path[256];
	struct stat status;
	int fd;

	snprintf(path, sizeof(path), ROOT "/dev/%s", node);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && (int)major(status.st_rdev) == registered_major(driver))
		return fd;
	close(fd);
	return -1;
}

/* The word after "Kernel Module  " in /proc/driver/nvidia/version (the open flavour says "... for x86_64  "). */
static int kernel_version_is(const char *version)
{
	char text[1024], *word;
	size_t length;

	if (!read_text(ROOT "/proc/driver/nvidia/version", text, sizeof(text)))
		return -1;
	word = strstr(text, "Kernel Module");
	if (!word)
		return 0;
	while (*word && !(word[-1] == ' ' && word[0] >= '0' && word[0] <= '9'))
		word++;
	length = strcspn(word, " \n");
	return strlen(version) == length && strncmp(word, version, length) == 0;
}

static void take_field(const char *text, const char *key, char *value, size_t size)
{
	const char *line = strstr(text, key);

	value[0] = 0;
	if (!line)
		return;
	line += strlen(key);
	line += strspn(line, " \t");
	snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* ---- which GPUs this process gets ---- */

static int by_address(const void *a, const void *b)
{
	return strcmp(((const struct gpu *)a)->address, ((const struct gpu *)b)->address);
}

/* All that the driver knows, in the order of the bus. */
static int find_gpus(struct gpu *found)
{
	char path[512], text[2048], minor[16];
	struct dirent *entry;
	DIR *folder = opendir(ROOT "/proc/driver/nvidia/gpus");
	int count = 0;

	while (folder && count < MAX_GPUS && (entry = readdir(folder))) {
		struct gpu *gpu = &found[count];

		if (entry->d_name[0] == '.' || strlen(entry->d_name) != 12)
			continue;
		snprintf(path, sizeof(path), ROOT "/proc/driver/nvidia/gpus/%s/information", entry->d_name);
		if (!read_text(path, text, sizeof(text)))
			continue;
		memset(gpu, 0, sizeof(*gpu));
		snprintf(gpu->address, sizeof(gpu->address), "%.12s", entry->d_name);
		gpu->domain = number(gpu->address, 16);
		gpu->bus = number(gpu->address + 5, 16);
		gpu->device = number(gpu->address + 8, 16);
		take_field(text, "Model:", gpu->name, sizeof(gpu->name));
		take_field(text, "GPU UUID:", gpu->uuid, sizeof(gpu->uuid));
		take_field(text, "Device Minor:", minor, sizeof(minor));
		gpu->minor = number(minor, 10);
		gpu->fd = -1;
		count++;
	}
	if (folder)
		closedir(folder);
	qsort(found, count, sizeof(*found), by_address);
	return count;
}

/* CUDA_VISIBLE_DEVICES: ordinals or UUID prefixes; the first that names nothing ends the list. */
static int select_visible(const struct gpu *all, int count, struct gpu *chosen)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int taken = 0, i;

	if (!list) {
		memcpy(chosen, all, count * sizeof(*all));
		return count;
	}
	while (*list && taken < MAX_GPUS) {
		size_t length = strcspn(list, ",");
		int match = -1;

		if (strncmp(list, "GPU-", 4) == 0) {
			for (i = 0; i < count && match < 0; i++)
				if (strncmp(all[i].uuid, list, length) == 0)
					match = i;
		} else if (length && strspn(list, "0123456789") == length) {
			match = number(list, 10);
		}
		if (match < 0 || match >= count)
			break;
		chosen[taken++] = all[match];
		list += length + (list[length] == ',');
	}
	return taken;
}

static CUresult initialise(void)
{
	struct gpu all[MAX_GPUS];
	char node[32], text[64];
	int count, usable = 0, i, same = kernel_version_is(VERSION);

	if (same < 0)
		return NO_DEVICE;
	control_fd = open_node("nvidiactl", "nvidiactl");
	if (control_fd < 0)
		return NO_DEVICE;
	if (!same)
		return SYSTEM_DRIVER_MISMATCH;
	count = find_gpus(all);
	for (i = 0; i < count; i++) {
		snprintf(node, sizeof(node), "nvidia%d", all[i].minor);
		all[i].fd = open_node(node, "nvidia");
		if (all[i].fd >= 0)
			all[usable++] = all[i];
	}
	gpu_count = select_visible(all, usable, gpus);
	if (!gpu_count)
		return NO_DEVICE;
	uvm_fd = open_node("nvidia-uvm", "nvidia-uvm");
	if (uvm_fd < 0)
		return UNKNOWN;
	if (read_text(ROOT "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm", text, sizeof(text)) && text[0] == 'N')
		return NOT_INITIALIZED;
	return SUCCESS;
}

/* ---- the driver API ---- */

static void release(void)
{
	int i;

	for (i = 0; i < gpu_count; i++)
		close(gpus[i].fd);
	close(control_fd);
	close(uvm_fd);
	control_fd = uvm_fd = -1;
	gpu_count = 0;
}

EXPORT CUresult cuInit(unsigned int flags)
{
	CUresult result;

	ENTER();
	if (flags)
		return INVALID_VALUE;
	if (initialised)
		return SUCCESS;
	result = initialise();
	if (result == SUCCESS)
		initialised = 1;
	else
		release();
	return result;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	ENTER();
	if (!version)
		return INVALID_VALUE;
	*version = CUDA_DRIVER_VERSION;
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
	NEED_INIT();
	if (!count)
		return INVALID_VALUE;
	*count = gpu_count;
	return SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	NEED_DEVICE(ordinal);
	if (!device)
		return INVALID_VALUE;
	*device = ordinal;
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	NEED_DEVICE(device);
	if (!name || length < 1)
		return INVALID_VALUE;
	snprintf(name, length, "%s", gpus[device].name);
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	const char *text;
	char pair[3] = "";
	int i = 0;

	NEED_DEVICE(device);
	if (!uuid)
		return INVALID_VALUE;
	for (text = gpus[device].uuid + 4; i < 16 && text[0] && text[1]; text += 2) {
		if (*text == '-')
			text++;
		pair[0] = text[0];
		pair[1] = text[1];
		uuid->bytes[i++] = (char)number(pair, 16);
	}
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

EXPORT CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
	NEED_DEVICE(device);
	if (!text || length < 13)
		return INVALID_VALUE;
	snprintf(text, length, "%04X:%02X:%02X.0", gpus[device].domain, gpus[device].bus, gpus[device].device);
	return SUCCESS;
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
	int i;

	NEED_INIT();
	if (!device || !text)
		return INVALID_VALUE;
	for (i = 0; i < gpu_count; i++) {
		if (strcasecmp(gpus[i].address, text) == 0) {
			*device = i;
			return SUCCESS;
		}
	}
	return INVALID_DEVICE;
}

static int numa_node(const struct gpu *gpu)
{
	char path[256], text[16];

	snprintf(path, sizeof(path), ROOT "/sys/bus/pci/devices/%s/numa_node", gpu->address);
	return read_text(path, text, sizeof(text)) && text[0] != '-' ? number(text, 10) : -1;
}

/* CUdevice_attribute -> value, for the ones that have one whatever the GPU's place. */
static const int attributes[][2] = {
	{ 1, 1024 },	 /* MAX_THREADS_PER_BLOCK */
	{ 2, 1024 },	 /* MAX_BLOCK_DIM_X */
	{ 3, 1024 },	 /* MAX_BLOCK_DIM_Y */
	{ 4, 64 },	 /* MAX_BLOCK_DIM_Z */
	{ 5, 2147483647 }, /* MAX_GRID_DIM_X */
	{ 6, 65535 },	 /* MAX_GRID_DIM_Y */
	{ 7, 65535 },	 /* MAX_GRID_DIM_Z */
	{ 8, 49152 },	 /* MAX_SHARED_MEMORY_PER_BLOCK */
	{ 9, 65536 },	 /* TOTAL_CONSTANT_MEMORY */
	{ 10, 32 },	 /* WARP_SIZE */
	{ 12, 65536 },	 /* MAX_REGISTERS_PER_BLOCK */
	{ 16, 188 },	 /* MULTIPROCESSOR_COUNT */
	{ 31, 1 },	 /* CONCURRENT_KERNELS */
	{ 32, 1 },	 /* ECC_ENABLED */
	{ 37, 512 },	 /* GLOBAL_MEMORY_BUS_WIDTH */
	{ 38, 134217728 }, /* L2_CACHE_SIZE */
	{ 39, 1536 },	 /* MAX_THREADS_PER_MULTIPROCESSOR */
	{ 40, 4 },	 /* ASYNC_ENGINE_COUNT */
	{ 41, 1 },	 /* UNIFIED_ADDRESSING */
	{ 75, 12 },	 /* COMPUTE_CAPABILITY_MAJOR */
	{ 76, 0 },	 /* COMPUTE_CAPABILITY_MINOR */
	{ 81, 102400 },	 /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
	{ 82, 65536 },	 /* MAX_REGISTERS_PER_MULTIPROCESSOR */
	{ 83, 1 },	 /* MANAGED_MEMORY */
	{ 89, 1 },	 /* CONCURRENT_MANAGED_ACCESS */
	{ 97, 101376 },	 /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
	{ 98, 1 },	 /* CAN_FLUSH_REMOTE_WRITES */
};

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	size_t i;

	NEED_DEVICE(device);
	if (!value || attribute < 1 || attribute > 160)
		return INVALID_VALUE;
	*value = attribute == 33    ? gpus[device].bus
		 : attribute == 34  ? gpus[device].device
		 : attribute == 50  ? gpus[device].domain
		 : attribute == 134 ? numa_node(&gpus[device])
				    : 0;
	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i][0] == attribute)
			*value = attributes[i][1];
	return SUCCESS;
}
