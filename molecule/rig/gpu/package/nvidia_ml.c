/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A placeholder: its file name and soname carry the version that nvidia-smi compares with the kernel's. */
const char *rig_nvml_version(void)
{
	return VERSION;
}
