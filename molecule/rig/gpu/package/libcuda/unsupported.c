/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls that the compiled libraries of PyTorch, SGLang and their like are linked to: they load beside this driver, and it says no to each of them. */
#include "driver.h"

#define UNSUPPORTED(name)                                                                                              \
	EXPORT CUresult name(void)                                                                                     \
	{                                                                                                              \
		return NOT_SUPPORTED;                                                                                  \
	}

/* Green contexts */
UNSUPPORTED(cuCtxFromGreenCtx)
UNSUPPORTED(cuDevResourceGenerateDesc)
UNSUPPORTED(cuDevSmResourceSplitByCount)
UNSUPPORTED(cuDeviceGetDevResource)
UNSUPPORTED(cuGreenCtxCreate)
UNSUPPORTED(cuGreenCtxDestroy)
UNSUPPORTED(cuGreenCtxGetDevResource)
/* Virtual memory */
UNSUPPORTED(cuMemAddressFree)
UNSUPPORTED(cuMemAddressReserve)
UNSUPPORTED(cuMemCreate)
UNSUPPORTED(cuMemGetAddressRange_v2)
UNSUPPORTED(cuMemMap)
UNSUPPORTED(cuMemRelease)
UNSUPPORTED(cuMemRetainAllocationHandle)
UNSUPPORTED(cuMemSetAccess)
UNSUPPORTED(cuMemUnmap)
UNSUPPORTED(cuPointerGetAttribute)
/* Modules and kernels */
UNSUPPORTED(cuFuncGetAttribute)
UNSUPPORTED(cuFuncSetAttribute)
UNSUPPORTED(cuFuncSetCacheConfig)
UNSUPPORTED(cuKernelGetAttribute)
UNSUPPORTED(cuLaunchCooperativeKernel)
UNSUPPORTED(cuLibraryUnload)
UNSUPPORTED(cuLinkAddData_v2)
UNSUPPORTED(cuLinkComplete)
UNSUPPORTED(cuLinkCreate_v2)
UNSUPPORTED(cuModuleGetFunction)
UNSUPPORTED(cuModuleLoad)
UNSUPPORTED(cuModuleLoadDataEx)
UNSUPPORTED(cuModuleUnload)
UNSUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
UNSUPPORTED(cuTensorMapEncodeTiled)
