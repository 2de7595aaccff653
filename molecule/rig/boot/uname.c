/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * uname(2) of a node: the release of the kernel that its boot loader started, as in its /proc. Preloaded into each of its
 * programs (/etc/ld.so.preload), since a container's own release is no kernel feature.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int uname(struct utsname *name)
{
	char text[sizeof(name->release)];
	ssize_t length;
	int file;

	if (syscall(SYS_uname, name))
		return -1;
	file = open("/proc/sys/kernel/osrelease", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length > 1) {
		text[length - (text[length - 1] == '\n')] = '\0';
		memcpy(name->release, text, sizeof(text));
	}
	return 0;
}
