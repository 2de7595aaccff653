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
#elif defined(MODULE_vfio)
INFO(depends, "depends=");
INFO(name, "name=vfio");
INFO(parm, "parm=enable_unsafe_noiommu_mode:bool");
EXPORT(vfio_register_group_dev);
EXPORT(vfio_register_iommu_driver);
#elif defined(MODULE_vfio_iommu_type1)
INFO(depends, "depends=vfio");
INFO(name, "name=vfio_iommu_type1");
INFO(parm, "parm=allow_unsafe_interrupts:bool");
NEED(vfio_register_iommu_driver);
#elif defined(MODULE_vfio_pci_core)
INFO(depends, "depends=vfio");
INFO(name, "name=vfio_pci_core");
EXPORT(vfio_pci_core_register_device);
NEED(vfio_register_group_dev);
#elif defined(MODULE_vfio_pci)
INFO(depends, "depends=vfio-pci-core,vfio");
INFO(name, "name=vfio_pci");
INFO(alias, "alias=vfio_pci:v*d*sv*sd*bc*sc*i*");
INFO(parm, "parm=ids:Initial PCI IDs to add to the vfio driver (string)");
INFO(parm2, "parm=disable_vga:bool");
NEED(vfio_pci_core_register_device);
#endif
