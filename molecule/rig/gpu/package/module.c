/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A kernel module's file with nothing in it but what kmod reads: .modinfo, and the symbols from which depmod learns who
 * needs whom. Compiled once for each module, with MODULE_x, VERSION and LICENSE given.
 */
#define INFO(name, text) \
	static const char info_##name[] __attribute__((used, section(".modinfo"), aligned(1))) = text
#define EXPORT(symbol) \
	static const char export_##symbol[] __attribute__((used, section("__ksymtab_strings"), aligned(1))) = #symbol
#define NEED(symbol)     \
	extern int symbol; \
	int *need_##symbol = &symbol

INFO(start, "\0license=" LICENSE);
INFO(version, "version=" VERSION);

#if defined(MODULE_nvidia)
INFO(depends, "depends=");
INFO(name, "name=nvidia");
INFO(alias, "alias=pci:v000010DEd*sv*sd*bc03sc02i00*");
INFO(parm, "parm=NVreg_DeviceFileMode:int");
INFO(parm2, "parm=NVreg_RegistryDwords:charp");
EXPORT(nvidia_get_rm_ops);
EXPORT(nvUvmInterfaceRegisterUvmCallbacks);
#elif defined(MODULE_nvidia_uvm)
INFO(depends, "depends=nvidia");
INFO(name, "name=nvidia_uvm");
INFO(parm, "parm=uvm_disable_hmm:Force-disable HMM functionality in the UVM driver. (bool)");
NEED(nvUvmInterfaceRegisterUvmCallbacks);
#elif defined(MODULE_nvidia_modeset)
INFO(depends, "depends=nvidia");
INFO(name, "name=nvidia_modeset");
EXPORT(nvKmsKapiGetFunctionsTable);
NEED(nvidia_get_rm_ops);
#elif defined(MODULE_nvidia_drm)
INFO(depends, "depends=nvidia-modeset,nvidia");
INFO(name, "name=nvidia_drm");
INFO(parm, "parm=modeset:Enable atomic kernel modesetting (bool)");
NEED(nvKmsKapiGetFunctionsTable);
#endif
